// SPDX-License-Identifier: GPL-2.0-only
//! Figures by task, process, command or cgroup, and the latest priority inversions: since
//! an earlier look, or since the scheduler started.

use super::collect::Telemetry;
use super::inversion::Inversion;
use super::line::{lines, By, Filter, Line, Order};
use crate::foreign::Foreign;
use crate::histogram;
use crate::units::time;
use comfy_table::{presets, CellAlignment, Table};
use serde::Serialize;
use std::fmt::Write as _;

/// A report, with what it takes from the telemetry.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Report<'a> {
    /// In the order asked for, at most as many as asked for.
    pub lines: Vec<Line>,
    /// The whole machine, whatever was chosen.
    total: Line,
    inversions: Inversions,
    inversion_events: Vec<&'a Inversion>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Inversions {
    count: u64,
    p50_ns: u64,
    p99_ns: u64,
    holder_off_ns: u64,
    lost: u64,
}

impl<'a> Report<'a> {
    /// `by` whom and in which order; at most this many lines and inversion events.
    pub fn new(
        (by, order): (By, Order),
        (most_lines, most_events): (usize, usize),
        filter: &Filter,
        now: &'a Telemetry,
        before: Option<&Telemetry>,
        mut path: impl FnMut(u64) -> Foreign,
    ) -> Self {
        let mut found = lines(by, filter, now, &mut path);
        let mut total = now.total();
        let mut inversions = (now.inversions, now.inversion_off_ns);
        let mut hist = now.inversion_hist.clone();
        let mut last = 0;
        if let Some(before) = before {
            let earlier = lines(by, filter, before, &mut path);
            for (key, line) in &mut found {
                if let Some(then) = earlier.get(key) {
                    line.take_off(then);
                }
            }
            total.take_off(&before.total());
            hist = histogram::since(&hist, &before.inversion_hist);
            inversions.0 -= before.inversions.min(inversions.0);
            inversions.1 -= before.inversion_off_ns.min(inversions.1);
            last = before.inversion_events.last().map_or(0, |e| e.at_ns);
        }
        found.retain(|_, line| !line.stats.is_zero());
        let mut lines: Vec<Line> = found.into_values().collect();
        for line in lines.iter_mut().chain([&mut total]) {
            line.speed = line.stats.speed();
        }
        order.sort(&mut lines);
        lines.truncate(most_lines);
        let reported = now.inversion_events.iter().filter(|e| e.at_ns > last);
        let mut events: Vec<&Inversion> = reported.rev().take(most_events).collect();
        events.reverse();
        Self {
            lines,
            total,
            inversions: Inversions {
                count: inversions.0,
                p50_ns: histogram::quantile(&hist, 0.5),
                p99_ns: histogram::quantile(&hist, 0.99),
                holder_off_ns: inversions.1,
                lost: now.inversion_events_lost,
            },
            inversion_events: events,
        }
    }
}

/// First what no other tool shows, which fits into 80 columns.
const COLUMNS: [&str; 13] = [
    "run",
    "speed",
    "wait",
    "inverted",
    "lock wait",
    "held",
    "spin",
    "nice",
    "tasks",
    "exited",
    "picked",
    "migrated",
    "preempted",
];

impl Report<'_> {
    /// The total, and the lines.
    pub fn table(&self, by: By) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        let words: &[&str] = match by {
            By::Task | By::Process => &["pid", "name"],
            By::Command => &["command"],
            By::Cgroup => &["cgroup"],
        };
        table.set_header(words.iter().chain(&COLUMNS));
        for line in &self.lines {
            let mut cells = match by {
                By::Task | By::Process => vec![line.pid.to_string(), line.name.to_string()],
                By::Command => vec![line.name.to_string()],
                By::Cgroup => vec![line.cgroup.to_string()],
            };
            let stats = &line.stats;
            cells.extend([
                time(stats.run_ns),
                format!("{}%", 100 * line.speed / 1024),
                time(stats.wait_ns),
                time(stats.inversion_ns),
                time(stats.lock_wait_ns),
                time(stats.hold_ns),
                time(stats.spin_ns),
                line.nice.to_string(),
                line.tasks.to_string(),
                line.exited.to_string(),
                stats.picked.to_string(),
                stats.migrated.to_string(),
                stats.preempted.to_string(),
            ]);
            table.add_row(cells);
        }
        for (place, column) in table.column_iter_mut().enumerate() {
            column.set_padding((u16::from(place == 0), 1));
            if place >= words.len() {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let total = &self.total;
        format!(
        "{} tasks and {} that exited: {} on a CPU at {}% of full speed, {} waiting for one\n{table}\n",
        total.tasks,
        total.exited,
        time(total.stats.run_ns),
        100 * total.speed / 1024,
        time(total.stats.wait_ns)
    )
    }

    /// How many there were, and the latest.
    pub fn inversions_text(&self) -> String {
        let inversions = &self.inversions;
        let mut out = format!(
        "{} priority inversions, p50 {}, p99 {}, holders off CPU for {}; {} that should have been reported were lost\n",
        inversions.count,
        time(inversions.p50_ns),
        time(inversions.p99_ns),
        time(inversions.holder_off_ns),
        inversions.lost
    );
        for event in &self.inversion_events {
            let _ = writeln!(out, "  {event}");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::task_table::ReportArgs;
    use crate::foreign::tests::{assert_harmless, HOSTILE};
    use crate::telemetry::{Exited, Task, TaskStats};
    use clap::{Parser, ValueEnum};

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: ReportArgs,
    }

    fn args(words: &[&str]) -> ReportArgs {
        let words = std::iter::once("report").chain(words.iter().copied());
        Command::try_parse_from(words).unwrap().args
    }

    fn ran(run_ns: u64) -> TaskStats {
        TaskStats {
            run_ns,
            work_ns: run_ns / 2,
            ..Default::default()
        }
    }

    fn task(pid: u32, tgid: u32, run_ns: u64) -> Task {
        Task {
            pid,
            tgid,
            nice: pid as i32,
            cgroup: u64::from(tgid),
            comm: format!("t{pid}").into(),
            process: "make".into(),
            stats: ran(run_ns),
            ..Default::default()
        }
    }

    fn telemetry() -> Telemetry {
        let gone = |tgid, process: &str, run_ns| Exited {
            tgid,
            process: process.into(),
            cgroup: 7,
            tasks: 1,
            stats: ran(run_ns),
        };
        Telemetry {
            tasks: vec![task(1, 1, 10), task(2, 1, 20), task(7, 7, 5)],
            exited: vec![gone(1, "make", 100), gone(0, "cc1", 1000)],
            lost: 3,
            lost_stats: ran(4),
            inversions: 2,
            inversion_hist: vec![0, 2],
            inversion_events: vec![Inversion {
                at_ns: 50,
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    fn of<'a>(args: &ReportArgs, now: &'a Telemetry, before: Option<&Telemetry>) -> Report<'a> {
        let by = (args.by, args.sort);
        let most = (args.top, args.inversions);
        Report::new(by, most, &args.filter, now, before, |inode| {
            format!("/g/{inode}").into()
        })
    }

    fn shown(words: &[&str]) -> Vec<(u32, String, u64)> {
        let telemetry = telemetry();
        let report = of(&args(words), &telemetry, None);
        let of = |l: &Line| (l.pid, l.name.to_string(), l.stats.run_ns);
        report.lines.iter().map(of).collect()
    }

    #[test]
    fn the_dead_count_for_their_process_command_or_cgroup() {
        let line = |pid, name: &str, run_ns| (pid, name.to_string(), run_ns);
        assert_eq!(
            shown(&["--by=task"]),
            [line(2, "t2", 20), line(1, "t1", 10), line(7, "t7", 5)]
        );
        assert_eq!(shown(&[]), [line(1, "make", 130), line(7, "make", 5)]);
        assert_eq!(
            shown(&["--by=command"]),
            [line(0, "cc1", 1000), line(0, "make", 135)]
        );
        assert_eq!(
            shown(&["--by=cgroup"]),
            [line(0, "", 1105), line(0, "", 30)]
        );
    }

    #[test]
    fn lines_are_chosen_and_few() {
        assert_eq!(shown(&["--by=task", "--pid=7"]).len(), 1);
        assert_eq!(shown(&["--by=task", "--pid=1"]).len(), 2, "its threads");
        assert_eq!(shown(&["--by=command", "--pid=1"])[0].2, 130);
        assert_eq!(shown(&["--by=task", "--comm=make"]).len(), 3);
        assert_eq!(shown(&["--by=task", "--comm=t2"]).len(), 1);
        assert_eq!(shown(&["--by=process", "--comm=t2"]).len(), 0);
        assert_eq!(shown(&["--by=cgroup", "--comm=cc1"])[0].2, 1000);
        assert_eq!(shown(&["--by=command", "--comm=cc1"]).len(), 1);
        assert_eq!(shown(&["--cgroup=/g/1"]).len(), 1);
        assert_eq!(shown(&["--by=task", "--top=2"]).len(), 2);
        assert_eq!(shown(&["--by=task", "--sort=work_ns"])[0].0, 2);
    }

    #[test]
    fn lines_are_sorted_by_any_column() {
        let first = |sort: &str| shown(&["--by=task", &format!("--sort={sort}")])[0].0;
        assert_eq!((first("pid"), first("name"), first("cgroup")), (1, 1, 1));
        assert_eq!(
            (first("nice"), first("run_ns"), first("wait_ns")),
            (1, 2, 1)
        );
        let first = |sort: &str| shown(&["--by=process", &format!("--sort={sort}")])[0].0;
        assert_eq!((first("tasks"), first("exited")), (1, 1));
        let slow = shown(&["--by=task", "--sort=speed"]);
        assert_eq!(
            slow.last().map(|line| line.0),
            Some(7),
            "2 of 5 is the least"
        );
        for order in Order::all() {
            assert_eq!(Order::of(order.name()), Some(order));
        }
    }

    #[test]
    fn the_total_has_all_and_a_difference_what_came_since() {
        let mut now = telemetry();
        let then = telemetry();
        let all = of(&args(&[]), &then, None);
        assert_eq!((all.total.stats.run_ns, all.total.exited), (1139, 5));
        assert_eq!((all.total.speed, all.inversion_events.len()), (511, 1));

        now.tasks[1].stats = ran(26);
        now.inversions = 5;
        let since = of(&args(&["--by=task"]), &now, Some(&then));
        assert_eq!(since.lines.len(), 1, "the others did nothing");
        assert_eq!((since.lines[0].pid, since.lines[0].stats.run_ns), (2, 6));
        assert_eq!((since.total.stats.run_ns, since.inversions.count), (6, 3));
        assert!(since.inversion_events.is_empty());
    }

    #[test]
    fn the_text_names_what_it_shows() {
        let telemetry = telemetry();
        let report = of(&args(&[]), &telemetry, None);
        let text = report.table(By::Process) + &report.inversions_text();
        assert!(
            text.starts_with("3 tasks and 5 that exited: 1.14 us on a CPU at 49%"),
            "{text}"
        );
        assert!(text.contains("2 priority inversions"), "{text}");
        let widths: Vec<usize> = text.lines().map(str::len).collect();
        assert!(widths[1] <= 140, "{text}");
    }

    #[test]
    fn names_of_others_are_shown_harmless() {
        let mut telemetry = telemetry();
        for task in &mut telemetry.tasks {
            (task.process, task.comm) = (HOSTILE.into(), HOSTILE.into());
        }
        telemetry.inversion_events[0].waiter_comm = HOSTILE.into();
        telemetry.inversion_events[0].holder_comm = HOSTILE.into();
        for by in By::value_variants() {
            let mut args = args(&[]);
            args.by = *by;
            let most = (args.top, args.inversions);
            let by = (args.by, args.sort);
            let report = Report::new(by, most, &args.filter, &telemetry, None, |_| HOSTILE.into());
            assert_harmless(&report.table(args.by));
            assert_harmless(&report.inversions_text());
        }
    }

    #[test]
    fn wrong_usage_is_refused() {
        for bad in ["--by=user", "--sort=no", "--interval=0", "--top=-1"] {
            assert!(Command::try_parse_from(["report", bad]).is_err(), "{bad}");
        }
    }
}
