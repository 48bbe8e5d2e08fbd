// SPDX-License-Identifier: GPL-2.0-only
//! Examples for the manual pages: what to type, and what for. A test parses each.

/// A command line, and what it is for.
pub type Example = (&'static str, &'static str);

/// Those of a page; none for pages whose synopsis says it all.
pub fn of(page: &str) -> &'static [Example] {
    let found = EXAMPLES.iter().find(|(name, _)| *name == page);
    found.map_or(&[], |(_, examples)| examples)
}

const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "scx_freqlock",
        &[
            ("scx_freqlock", "Schedule in mode auto until Ctrl-C."),
            (
                "scx_freqlock --mode=nest --slice-us=2000 --stats 1",
                "Another mode, shorter slices, and statistics each second.",
            ),
            (
                "scx_freqlock --contexts ./contexts.toml --metrics 9977",
                "Other knobs for some tasks, and figures for Prometheus.",
            ),
            (
                "scx_freqlock --adapt",
                "Find out while the load runs which mode is best for it.",
            ),
            (
                "scx_freqlock --partial",
                "Only for what `scx_freqlock run` starts; all else stays with the kernel's.",
            ),
            (
                "scx_freqlock --locks 0 --verbose",
                "Where it does not load: without the hooks of locks, with all that libbpf says.",
            ),
            (
                "scx_freqlock --monitor 1",
                "From another terminal: statistics of the running one.",
            ),
        ],
    ),
    (
        "scx_freqlock-status",
        &[(
            "scx_freqlock status --json",
            "As reports of faults should have it.",
        )],
    ),
    (
        "scx_freqlock-run",
        &[(
            "scx_freqlock run -- make -j4",
            "A build for a scheduler that runs with --partial.",
        )],
    ),
    (
        "scx_freqlock-top",
        &[
            (
                "scx_freqlock top --by cgroup --interval 5",
                "Cgroups, every five seconds.",
            ),
            (
                "scx_freqlock top --view locks --comm postgres",
                "The locks of one command's processes.",
            ),
        ],
    ),
    (
        "scx_freqlock-report",
        &[
            (
                "scx_freqlock report --by command --sort wait_ns --top 10",
                "Commands whose tasks waited most for a CPU.",
            ),
            (
                "scx_freqlock report --save before.json",
                "Keep the figures of now;",
            ),
            (
                "scx_freqlock report --since before.json",
                "and print later what happened since.",
            ),
        ],
    ),
    (
        "scx_freqlock-locks",
        &[
            (
                "scx_freqlock locks --interval 1",
                "The locks that were waited for in each second.",
            ),
            (
                "scx_freqlock locks --comm mysqld --sort preempted --top 5",
                "Locks whose holders lost their CPU most often while others waited.",
            ),
        ],
    ),
    (
        "scx_freqlock-cpus",
        &[
            ("scx_freqlock cpus 1893", "Of a process."),
            (
                "scx_freqlock cpus --cgroup /system.slice --json",
                "Of a cgroup, for a program.",
            ),
        ],
    ),
    (
        "scx_freqlock-counters",
        &[("scx_freqlock counters --json", "For a program.")],
    ),
    (
        "scx_freqlock-predictions",
        &[(
            "scx_freqlock predictions",
            "Predicted beside real waits and bursts.",
        )],
    ),
    (
        "scx_freqlock-memory",
        &[(
            "scx_freqlock memory --cpus 128 --tasks 50000",
            "What it would take on a larger machine.",
        )],
    ),
    (
        "scx_freqlock-knobs",
        &[("scx_freqlock knobs --json", "For a program.")],
    ),
    (
        "scx_freqlock-get",
        &[
            ("scx_freqlock get", "All that is in force."),
            ("scx_freqlock get mode slice_us", "Two of them."),
        ],
    ),
    (
        "scx_freqlock-set",
        &[
            (
                "scx_freqlock set mode=nest slice_us=2000",
                "Both, or neither if one is refused.",
            ),
            (
                "scx_freqlock set cpus_ms=100",
                "Begin to write the page of CPUs that processes can count on.",
            ),
        ],
    ),
    (
        "scx_freqlock-undo",
        &[("scx_freqlock undo", "Take back what set did last.")],
    ),
    (
        "scx_freqlock-changes",
        &[("scx_freqlock changes", "What undo would take back.")],
    ),
    (
        "scx_freqlock-adapt",
        &[(
            "scx_freqlock adapt",
            "What the trials of a scheduler started with --adapt found.",
        )],
    ),
    (
        "scx_freqlock-explain",
        &[(
            "scx_freqlock explain 1893",
            "Why this task has the knobs that it has.",
        )],
    ),
    (
        "scx_freqlock-contexts",
        &[(
            "scx_freqlock contexts ./contexts.toml",
            "Check a file before it is put in place.",
        )],
    ),
    (
        "scx_freqlock-reload",
        &[("scx_freqlock reload", "After the file of contexts was changed.")],
    ),
    (
        "scx_freqlock-observe",
        &[
            (
                "scx_freqlock observe -- make -j4",
                "How the tasks of a build ran, under the scheduler in charge.",
            ),
            (
                "scx_freqlock observe --json --output out.json -- ./configure",
                "The same as JSON, in a file.",
            ),
        ],
    ),
    (
        "scx_freqlock-record",
        &[
            (
                "scx_freqlock record -o make.trace -- make -j4",
                "All of a build, for analyze.",
            ),
            (
                "scx_freqlock record --overwrite --buffer 64M",
                "A flight recorder: until Ctrl-C, then the latest 2 million events of each CPU.",
            ),
            (
                "scx_freqlock record --dump",
                "What the one that runs has now, in its FILE.1; it goes on.",
            ),
            (
                "scx_freqlock record --overwrite --dump-on inversion,wait=10ms",
                "The same by itself, whenever a task waits too long.",
            ),
            (
                "scx_freqlock record --cpus 0-3 --events switch,wakeup -- sleep 1",
                "A second of four CPUs.",
            ),
        ],
    ),
    (
        "scx_freqlock-analyze",
        &[
            (
                "scx_freqlock analyze make.trace",
                "Time of CPUs, waits, wake-ups by speed, and the longest waits.",
            ),
            (
                "scx_freqlock analyze --diff eevdf.trace auto.trace",
                "The figures of two traces beside each other, with the change.",
            ),
            (
                "scx_freqlock analyze --plot pictures make.trace",
                "Speeds of CPUs and distributions of waits as SVG and PNG, too.",
            ),
            (
                "scx_freqlock analyze --plot pictures --compared auto.json",
                "Bars of what compare --json wrote.",
            ),
        ],
    ),
    (
        "scx_freqlock-export",
        &[
            (
                "scx_freqlock export --csv make.trace",
                "For a spreadsheet, or a script.",
            ),
            (
                "scx_freqlock export --perfetto make.trace -o make.pftrace",
                "For Perfetto's viewer and its SQL.",
            ),
            (
                "scx_freqlock export --parquet make.trace -o make.parquet",
                "For DuckDB, pandas and what else reads tables of Parquet's.",
            ),
        ],
    ),
    (
        "scx_freqlock-view",
        &[
            (
                "scx_freqlock view make.trace -o make.html",
                "A page for a browser, with all that was recorded.",
            ),
            (
                "scx_freqlock view --serve make.trace",
                "The same for a trace of any length: a server gives the events in sight.",
            ),
        ],
    ),
    (
        "scx_freqlock-cost",
        &[(
            "scx_freqlock cost -- make -j4",
            "The time that BPF programs of the scheduler took meanwhile.",
        )],
    ),
    (
        "scx_freqlock-policy-load",
        &[
            (
                "scx_freqlock policy load protect-process.bpf.c -D 'PROGRAM=\"mysqld\"'",
                "Compile and load an example, for the program that it is to protect.",
            ),
            (
                "scx_freqlock policy load pack.bpf.c --context build",
                "Another one, for the tasks of a context.",
            ),
            (
                "scx_freqlock policy load other.o --name protect-process",
                "Another one in its stead.",
            ),
        ],
    ),
    (
        "scx_freqlock-policy-check",
        &[(
            "scx_freqlock policy check protect-process.bpf.c",
            "Errors of the compiler and of the kernel, with their lines.",
        )],
    ),
    (
        "scx_freqlock-policy-list",
        &[(
            "scx_freqlock policy list",
            "What is loaded, and what a call takes.",
        )],
    ),
    (
        "scx_freqlock-policy-unload",
        &[(
            "scx_freqlock policy unload protect-process",
            "The scheduler decides by itself again.",
        )],
    ),
    (
        "scx_freqlock-policy-header",
        &[(
            "scx_freqlock policy header",
            "What a policy is told and may answer.",
        )],
    ),
    (
        "scx_freqlock-compare",
        &[
            (
                "scx_freqlock compare --workloads kbuild,configure --schedulers eevdf,auto,scx_bpfland",
                "On this machine, ten rounds in turn.",
            ),
            (
                "scx_freqlock compare --workloads hackbench --schedulers auto,auto:--slice-us=8000 --baseline auto --runs 20",
                "What a knob does.",
            ),
            (
                "scx_freqlock compare --machine e7-8870v4 --workloads configure --schedulers eevdf,auto,limit --seeds 6",
                "On a simulated machine, from the folder of the sources.",
            ),
            (
                "scx_freqlock compare --campaign bench/campaign.toml --results out --minutes 480",
                "Many workloads, machines and seeds in a night; the same line goes on with what is left.",
            ),
        ],
    ),
    (
        "scx_freqlock-machine-run",
        &[(
            "scx_freqlock machine run e7-8870v4 --scheduler auto --record out -- bench/configure/run",
            "One run; out/timeline.svg shows the frequency of each CPU.",
        )],
    ),
    (
        "scx_freqlock-machine-check",
        &[(
            "scx_freqlock machine check quick --kit target/machine/x86_64/kit.toml",
            "Compare the times of tests/times/quick.toml; scripts/machine check calls this.",
        )],
    ),
    (
        "scx_freqlock-machine-gate",
        &[(
            "scx_freqlock machine gate target/gate/base .",
            "What changed since a commit; scripts/gate calls this.",
        )],
    ),
    (
        "scx_freqlock-machine-calibrate",
        &[(
            "scx_freqlock machine calibrate --write out/machine.toml out/measured.txt",
            "What scripts/calibrate out has measured, as a description; that calls this.",
        )],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opts;
    use std::collections::BTreeSet;

    #[test]
    fn every_example_is_a_command_line_that_is_taken() {
        for (page, examples) in EXAMPLES {
            assert!(!examples.is_empty(), "{page}");
            for (line, what) in *examples {
                let words: Vec<_> = line.split_whitespace().collect();
                let taken = opts::command().try_get_matches_from(&words);
                taken.unwrap_or_else(|why| panic!("{line}: {why}"));
                assert!(what.ends_with(['.', ';']), "{what}");
                // Of the page that it is on.
                let command = page.replace('-', " ");
                assert!(line.starts_with(&command), "{line} on the page {page}");
            }
        }
    }

    #[test]
    fn every_page_is_named_once() {
        let names: BTreeSet<_> = EXAMPLES.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), EXAMPLES.len());
        assert!(of("scx_freqlock-nothing").is_empty());
    }
}
