// SPDX-License-Identifier: GPL-2.0-only
//! The manual page of the file of contexts, scx_freqlock-contexts(5).

use clap::ValueEnum;
use clap_mangen::roff::{bold, italic, roman, Inline, Roff};
use freqlock::context::{DEFAULT_FILE, MAX_CONTEXTS};
use freqlock::knobs::KNOBS;
use freqlock::mode::Mode;

/// Installed beside the documents, and the page's example.
const EXAMPLE: &str = include_str!("../../../services/contexts.toml");

/// What a table of the file may have, beside knobs.
const KEYS: [(&str, &str); 3] = [
    (
        "name",
        "A text for people, which explain and adapt print. No two contexts may have the same.",
    ),
    (
        "match",
        "Which tasks it is for: a table of command, cgroup and user, one of them at least. \
         A task matches if all that are given do.",
    ),
    (
        "mode",
        "The mode of placement, by its name in quotes. --adapt leaves the mode of such a \
         context alone.",
    ),
];

const MATCH: [(&str, &str); 3] = [
    (
        "command",
        "A pattern for the name of the task, as ps -L -o comm prints it: 15 bytes at most, \
         where the kernel cuts it. A task may take any name: what must be kept from others \
         has to ask for a cgroup or a user.",
    ),
    (
        "cgroup",
        "A pattern for the path of its cgroup in the unified hierarchy (cgroup v2), as \
         /proc/PID/cgroup has it. It matches all cgroups below, too.",
    ),
    (
        "user",
        "The real user of the task, by name or by number. A name that this machine does not \
         know is an error.",
    ),
];

const NOTES: [&str; 4] = [
    "The first matching context applies; a task that matches none has the knobs that flags \
     and scx_freqlock set give to all. A knob that a context does not name is that of all \
     tasks, also after set.",
    "A task is matched before the first decision about it, and again when its name, cgroup \
     or user changes: a running one within a tick.",
    "SIGHUP and scx_freqlock reload have the running scheduler read the file again. An error \
     is reported with line and column, and changes nothing; at the start it is exit status 2. \
     The file has to be a plain file of at most 1 MiB. Where --contexts names no file and \
     this one is not there, there are no contexts.",
    "scx_freqlock contexts checks a file without a scheduler, and scx_freqlock explain says \
     which context a task is in, why, and what its values are.",
];

/// All of the page.
pub fn page() -> Roff {
    let mut roff = Roff::new();
    let version = concat!("scx_freqlock ", env!("CARGO_PKG_VERSION"));
    // Without a date, as all of them.
    roff.control(
        "TH",
        ["scx_freqlock-contexts", "5", "", version, "scx_freqlock"],
    );
    section(
        &mut roff,
        "NAME",
        [roman(
            "scx_freqlock-contexts - knobs of scx_freqlock for some tasks",
        )],
    );
    section(&mut roff, "SYNOPSIS", [italic(DEFAULT_FILE)]);
    section(
        &mut roff,
        "DESCRIPTION",
        [roman(format!(
            "A TOML file that gives the tasks of a command, a cgroup or a user other values of \
             knobs. Each context is a table [[context]], {MAX_CONTEXTS} at most:"
        ))],
    );
    terms(&mut roff, KEYS);
    roff.control("TP", []);
    roff.text([italic("KNOB")]);
    roff.text([roman(
        "Its value: a whole number, or true and false for what is on or off. The knobs below \
         can be set; the others are the same for all tasks.",
    )]);
    roff.control("SH", ["MATCH"]);
    terms(&mut roff, MATCH);
    roff.control("PP", []);
    roff.text([roman(
        "A * stands for any characters and a ? for one, in paths without /.",
    )]);
    knobs(&mut roff);
    roff.control("SH", ["NOTES"]);
    for (number, note) in NOTES.iter().enumerate() {
        if number > 0 {
            roff.control("PP", []);
        }
        roff.text([roman(*note)]);
    }
    example(&mut roff);
    section(
        &mut roff,
        "SEE ALSO",
        [
            bold("scx_freqlock"),
            roman("(1), "),
            bold("scx_freqlock-contexts"),
            roman("(1), "),
            bold("scx_freqlock-explain"),
            roman("(1), "),
            bold("scx_freqlock-knobs"),
            roman("(1), "),
            bold("scx_freqlock-reload"),
            roman("(1)"),
        ],
    );
    roff
}

fn section(roff: &mut Roff, heading: &str, text: impl Into<Vec<Inline>>) {
    roff.control("SH", [heading]);
    roff.text(text);
}

fn terms<const N: usize>(roff: &mut Roff, terms: [(&str, &str); N]) {
    for (term, meaning) in terms {
        roff.control("TP", []);
        roff.text([bold(term)]);
        roff.text([roman(meaning)]);
    }
}

/// Those that a context can set.
fn knobs(roff: &mut Roff) {
    roff.control("SH", ["KNOBS"]);
    let modes: Vec<_> = Mode::value_variants().iter().map(|m| m.name()).collect();
    roff.control("TP", []);
    roff.text([bold("mode"), roman(format!(" ({})", modes.join(", ")))]);
    roff.text([roman(
        "Where forked and woken tasks go: see scx_freqlock(1).",
    )]);
    for knob in KNOBS.iter().filter(|knob| knob.task) {
        let values = match knob.is_switch() {
            true => " (true or false)".into(),
            false => format!(" ({}, {} to {})", knob.unit, knob.min, knob.max),
        };
        roff.control("TP", []);
        roff.text([bold(knob.name), roman(values)]);
        roff.text([roman(format!("{}.", knob.meaning))]);
    }
}

fn example(roff: &mut Roff) {
    roff.control("SH", ["EXAMPLES"]);
    roff.text([roman(
        "It is installed as examples/contexts.toml in the folder of the documents.",
    )]);
    roff.control("PP", []);
    roff.control("nf", []);
    let lines = EXAMPLE.lines().skip_while(|line| line.contains("SPDX"));
    for line in lines {
        match line {
            "" => roff.control("sp", []),
            line => roff.text([roman(line)]),
        };
    }
    roff.control("fi", []);
}

#[cfg(test)]
mod tests {
    use super::*;
    use freqlock::context::Contexts;
    use std::path::Path;

    #[test]
    fn the_installed_example_is_a_file_that_is_taken() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../services/contexts.toml");
        let contexts = Contexts::load(Path::new(path)).unwrap();
        assert!(contexts.0.len() >= 4);
        let asks = |what: &str| {
            let mut all = contexts.0.iter().flat_map(|context| context.rule.asks());
            all.any(|(name, _)| name == what)
        };
        assert!(asks("command") && asks("cgroup") && asks("user"));
    }

    #[test]
    fn the_page_has_every_knob_of_contexts_and_no_other() {
        let page = page().to_roff();
        for knob in KNOBS {
            let line = format!("\\fB{}\\fR (", knob.name);
            assert_eq!(page.contains(&line), knob.task, "{}", knob.name);
        }
        assert!(page.contains("[[context]]") && page.contains("/runner.slice/*"));
    }
}
