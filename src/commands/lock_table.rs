// SPDX-License-Identifier: GPL-2.0-only
//! Which locks, in which order, and the table of them, for `scx_freqlock locks` and `top`.

use crate::foreign::Foreign;
use crate::interval;
use crate::locks::{LockProfile, LockProfiles, Names};
use crate::number::whole;
use crate::output;
use crate::stats::{self, target};
use crate::telemetry::Filter;
use crate::units::time;
use anyhow::Result;
use clap::ValueEnum;
use comfy_table::{presets, CellAlignment, Table};
use serde::Serialize;
use std::time::Duration;

/// Print the locks that tasks waited for
///
/// For each: how long, and what became of the holders. A wait counts when a task
/// sleeps for a lock whose holder is known, or when its threads report it by hints.
/// Times are of waits that are over; p50 and p99 are up to a quarter too long.
#[derive(Debug, clap::Args)]
pub struct LocksArgs {
    /// Print what happened in each interval of this many seconds, until interrupted, instead of
    /// what happened since the scheduler started
    #[arg(long, value_name = "SECONDS", value_parser = interval::of_reports)]
    pub interval: Option<Duration>,

    /// Which locks, in which order.
    #[command(flatten)]
    pub choice: Choice,

    /// Print how long waiters of each lock should spin before they sleep, and what that would save
    #[arg(long, conflicts_with = "json")]
    pub adaptive_futex: bool,

    /// Print JSON, one document for each interval
    #[arg(long)]
    pub json: bool,
}

/// Which locks. Process, name and cgroup are those of the first that waited.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Choice {
    /// Whose locks.
    #[command(flatten)]
    pub filter: Filter,

    /// Only locks with this in their name: module+offset, or a symbol of the kernel
    #[arg(long, value_name = "TEXT")]
    pub lock: Option<String>,

    /// Only locks whose first waiter waited in a function with this in its name
    #[arg(long, value_name = "TEXT")]
    pub function: Option<String>,

    /// What to sort by, the most first
    #[arg(long, value_enum, default_value_t = Sort::Total)]
    pub sort: Sort,

    /// Print at most this many locks
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole(0..=usize::MAX))]
    pub top: usize,
}

/// What locks are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Time waited by all together
    #[default]
    Total,
    /// Number of waits
    #[value(help = None)]
    Waits,
    /// Median length of a wait
    #[value(help = None)]
    P50,
    /// 99th percentile of the length of a wait
    #[value(help = None)]
    P99,
    /// The longest wait
    #[value(help = None)]
    Longest,
    /// Mean time from the first wait to the handoff
    Hold,
    /// Holders preempted while somebody waited
    Preempted,
    /// Share of holds that ended on a CPU that is not of the largest capacity
    Small,
}

impl Sort {
    /// As the command line has it.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or(String::new(), |value| value.get_name().into())
    }
}

/// One lock with names for its numbers; times in ns.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Line {
    lock: Foreign,
    kind: String,
    function: Option<Foreign>,
    pid: Option<u64>,
    comm: Foreign,
    cgroup: Foreign,
    waits: u64,
    wait_total_ns: u64,
    wait_p50_ns: u64,
    wait_p99_ns: u64,
    wait_longest_ns: u64,
    holds: u64,
    hold_mean_ns: u64,
    hold_p50_ns: u64,
    spin_ns: Option<u64>,
    spin_saves_percent: Option<u64>,
    holds_on_small_cpus: u64,
    #[serde(skip)]
    small_percent: u64,
    holders_preempted: u64,
}

/// Prints once, or again and again until that fails or the scheduler ends.
pub fn print(args: &LocksArgs) -> Result<()> {
    let mut names = Names::default();
    let mut now: LockProfiles = stats::fetch(target::LOCKS)?;
    let Some(interval) = args.interval else {
        return show(args, &now, &mut names);
    };
    loop {
        std::thread::sleep(interval);
        let before = now;
        now = stats::fetch(target::LOCKS)?;
        names.forget_processes();
        show(args, &now.since(&before), &mut names)?;
    }
}

fn show(args: &LocksArgs, profiles: &LockProfiles, names: &mut Names) -> Result<()> {
    if !args.json && !args.adaptive_futex {
        return Ok(output::print(table(profiles, &args.choice, names))?);
    }
    let lines = select(&args.choice, profiles, |lock| line(lock, names));
    Ok(output::print(if args.json {
        output::json(&lines, false)?
    } else {
        advice(&lines)
    })?)
}

/// What is chosen, for people.
pub fn table(profiles: &LockProfiles, choice: &Choice, names: &mut Names) -> String {
    text(
        profiles,
        &select(choice, profiles, |lock| line(lock, names)),
    )
}

/// Cheap tests first, names for what is left only, and those in order.
fn select(
    choice: &Choice,
    profiles: &LockProfiles,
    mut line: impl FnMut(&LockProfile) -> Line,
) -> Vec<Line> {
    // The path comes with the names.
    let early = Filter {
        cgroup: None,
        ..choice.filter.clone()
    };
    let late = Filter {
        cgroup: choice.filter.cgroup.clone(),
        ..Filter::default()
    };
    let mut locks: Vec<&LockProfile> = (profiles.locks.iter())
        .filter(|l| early.takes(l.tgid as u32, &[&l.comm], Foreign::default))
        .collect();
    locks.sort_by_key(|l| (std::cmp::Reverse(rank(choice.sort, l)), l.tgid, l.addr));
    locks
        .into_iter()
        .map(&mut line)
        .filter(|l| late.takes(0, &[], || l.cgroup.clone()))
        .filter(|l| (choice.lock.as_ref()).is_none_or(|text| l.lock.raw().contains(text)))
        .filter(|l| match (&choice.function, &l.function) {
            (Some(text), Some(function)) => function.raw().contains(text),
            (wanted, _) => wanted.is_none(),
        })
        .take(choice.top)
        .collect()
}

fn rank(sort: Sort, lock: &LockProfile) -> u64 {
    match sort {
        Sort::Total => lock.wait_ns,
        Sort::Waits => lock.waits,
        Sort::P50 => lock.wait_quantile_ns(0.5),
        Sort::P99 => lock.wait_quantile_ns(0.99),
        Sort::Longest => lock.wait_longest_ns,
        Sort::Hold => lock.hold_mean_ns(),
        Sort::Preempted => lock.preempted,
        Sort::Small => lock.small_percent(),
    }
}

fn line(lock: &LockProfile, names: &mut Names) -> Line {
    let limit = lock.spin_limit();
    Line {
        lock: names.lock(lock),
        kind: lock.kind.clone(),
        function: names.function(lock),
        pid: (!lock.is_kernel()).then_some(lock.tgid),
        comm: lock.comm.clone(),
        cgroup: names.cgroups.path(lock.cgroup),
        waits: lock.waits,
        wait_total_ns: lock.wait_ns,
        wait_p50_ns: lock.wait_quantile_ns(0.5),
        wait_p99_ns: lock.wait_quantile_ns(0.99),
        wait_longest_ns: lock.wait_longest_ns,
        holds: lock.holds,
        hold_mean_ns: lock.hold_mean_ns(),
        hold_p50_ns: lock.hold_p50_ns(),
        spin_ns: limit.map(|limit| limit.spin_ns),
        spin_saves_percent: limit.map(|limit| limit.saves_percent),
        holds_on_small_cpus: lock.holds_small,
        small_percent: lock.small_percent(),
        holders_preempted: lock.preempted,
    }
}

/// How long to spin, a line for each lock of which that is known.
fn advice(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        let (Some(spin), Some(saves), Some(pid)) =
            (line.spin_ns, line.spin_saves_percent, line.pid)
        else {
            continue;
        };
        let what = match spin {
            0 => "sleep at once".into(),
            _ => format!(
                "spin {}, would save {saves}% of its context switches",
                time(spin)
            ),
        };
        text += &format!(
            "{} of {} {pid}: hold p50 {}, {what}\n",
            line.lock,
            line.comm,
            time(line.hold_p50_ns)
        );
    }
    if text.is_empty() {
        text +=
            "no lock of user space was handed to waiters often enough to say how long to spin\n";
    }
    text
}

const HEADER: [&str; 11] = [
    "lock",
    "kind",
    "in",
    "process",
    "waits",
    "total",
    "p50",
    "p99",
    "longest",
    "held",
    "preempted",
];
/// Where only some CPUs are large.
const HEADER_SMALL: &str = "on small";
/// Columns of words.
const LEFT: usize = 4;

fn text(profiles: &LockProfiles, lines: &[Line]) -> String {
    let listed = profiles.locks.len() as u64;
    let forgotten = match profiles.seen.saturating_sub(listed) {
        0 => String::new(),
        n => format!(", {n} more are quiet or forgotten"),
    };
    if lines.is_empty() {
        return format!("no lock to show; {listed} were waited for{forgotten}\n");
    }
    let capacity_differs = profiles.capacity_differs != 0;
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let small = capacity_differs.then_some(HEADER_SMALL);
    table.set_header(HEADER.into_iter().chain(small));
    for line in lines {
        let process = match line.pid {
            Some(pid) => format!("{} {pid}", line.comm),
            None => format!("{}, kernel", line.comm),
        };
        let mut cells = vec![
            line.lock.to_string(),
            line.kind.clone(),
            (line.function.as_ref()).map_or("?".into(), ToString::to_string),
            process,
            line.waits.to_string(),
            time(line.wait_total_ns),
            time(line.wait_p50_ns),
            time(line.wait_p99_ns),
            time(line.wait_longest_ns),
            time(line.hold_mean_ns),
            line.holders_preempted.to_string(),
        ];
        if capacity_differs {
            cells.push(format!("{}%", line.small_percent));
        }
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(LEFT) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!(
        "{} of {listed} locks that were waited for{forgotten}\n{table}\n",
        lines.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::tests::{assert_harmless, HOSTILE};
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: LocksArgs,
    }

    fn args(words: &[&str]) -> LocksArgs {
        let words = std::iter::once("locks").chain(words.iter().copied());
        Command::try_parse_from(words).unwrap().args
    }

    fn lock(addr: u64, tgid: u64, waits: u64, longest: u64) -> LockProfile {
        LockProfile {
            addr,
            tgid,
            comm: format!("p{tgid}").into(),
            kind: "futex".into(),
            waits,
            wait_ns: waits * 10,
            wait_longest_ns: longest,
            ..Default::default()
        }
    }

    fn profiles() -> LockProfiles {
        LockProfiles {
            locks: vec![lock(1, 7, 5, 900), lock(2, 7, 9, 100), lock(3, 8, 7, 500)],
            seen: 5,
            capacity_differs: 0,
        }
    }

    fn shown(words: &[&str]) -> Vec<String> {
        let name = |lock: &LockProfile| Line {
            lock: format!("mod+{:#x}", lock.addr).into(),
            function: (lock.addr != 3).then(|| format!("fn{}", lock.addr).into()),
            cgroup: format!("/slice/{}", lock.tgid).into(),
            ..line(lock, &mut Names::default())
        };
        let lines = select(&args(words).choice, &profiles(), name);
        lines.into_iter().map(|l| l.lock.to_string()).collect()
    }

    #[test]
    fn the_most_waited_for_comes_first() {
        assert_eq!(shown(&[]), ["mod+0x2", "mod+0x3", "mod+0x1"]);
        assert_eq!(
            shown(&["--sort=longest"]),
            ["mod+0x1", "mod+0x3", "mod+0x2"]
        );
        assert_eq!(shown(&["--top=1"]), ["mod+0x2"]);
        for sort in Sort::value_variants() {
            assert_eq!(shown(&[&format!("--sort={}", sort.name())]).len(), 3);
        }
    }

    #[test]
    fn locks_are_chosen_by_process_cgroup_name_and_function() {
        assert_eq!(shown(&["--pid=8"]), ["mod+0x3"]);
        assert_eq!(shown(&["--comm=p7"]), ["mod+0x2", "mod+0x1"]);
        assert_eq!(shown(&["--cgroup=/slice/8"]), ["mod+0x3"]);
        assert_eq!(shown(&["--cgroup=/slice/"]).len(), 3);
        assert_eq!(shown(&["--cgroup=/"]).len(), 3);
        assert_eq!(shown(&["--cgroup=/sli"]).len(), 0);
        assert_eq!(shown(&["--lock=0x1"]), ["mod+0x1"]);
        assert_eq!(shown(&["--function=fn"]), ["mod+0x2", "mod+0x1"]);
        assert_eq!(shown(&["--function=fn2", "--pid=8"]).len(), 0);
    }

    #[test]
    fn advice_says_how_long_to_spin() {
        let mut short = lock(1, 7, 5, 900);
        short.hold_hist = vec![6, 62, 60, 100];
        let mut long = lock(2, 8, 5, 900);
        long.hold_hist = vec![60, 500];
        let unknown = lock(3, 9, 5, 900);
        let mut lines: Vec<Line> = [&short, &long, &unknown]
            .map(|l| line(l, &mut Names::default()))
            .into();
        for (at, line) in lines.iter_mut().enumerate() {
            line.lock = format!("m+{at}").into();
        }
        assert_eq!(
            advice(&lines),
            "m+0 of p7 7: hold p50 21.0 ms, spin 1.79 us, would save 38% of its context switches\n\
             m+1 of p8 8: hold p50 21.0 ms, sleep at once\n"
        );
        assert!(advice(&lines[2..]).starts_with("no lock"));
    }

    #[test]
    fn the_table_says_what_was_forgotten() {
        let lines = select(&args(&["--top=2"]).choice, &profiles(), |l| {
            line(l, &mut Names::default())
        });
        let table = text(&profiles(), &lines);
        assert!(table.starts_with("2 of 3 locks"), "{table}");
        assert!(table.contains("2 more are quiet or forgotten"), "{table}");
        assert!(!table.contains(HEADER_SMALL), "{table}");
        let hybrid = LockProfiles {
            capacity_differs: 1,
            ..profiles()
        };
        assert!(text(&hybrid, &lines).contains(HEADER_SMALL));
        assert!(text(&hybrid, &[]).starts_with("no lock to show"));
    }

    #[test]
    fn names_of_others_are_shown_harmless() {
        let hostile = Line {
            lock: HOSTILE.into(),
            function: Some(HOSTILE.into()),
            cgroup: HOSTILE.into(),
            comm: HOSTILE.into(),
            ..line(&lock(1, 7, 5, 900), &mut Names::default())
        };
        assert_harmless(&text(&profiles(), &[hostile]));
    }

    #[test]
    fn wrong_usage_is_refused() {
        for bad in ["--interval=0", "--interval=x", "--top=-1", "--sort=name"] {
            assert!(Command::try_parse_from(["locks", bad]).is_err(), "{bad}");
        }
        assert!(Command::try_parse_from(["locks", "--json", "--adaptive-futex"]).is_err());
    }
}
