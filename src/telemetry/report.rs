// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock report`: figures by task, process, command or cgroup, and the
//! latest priority inversions, as a table or as JSON.

use super::{Episode, Task, TaskStats, Telemetry, TASK_STATS};
use crate::cgroups::{is_below, Cgroups};
use crate::histogram;
use crate::interval;
use crate::stats::{self, target};
use crate::units::time;
use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use clap::ValueEnum;
use comfy_table::{presets, CellAlignment, Table};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Print what was counted of tasks: time on a CPU and waiting, locks, inversions
///
/// Tasks that exited count for their process while that lives, and for its command
/// and cgroup after. Times are since the scheduler started, or since a task was born.
#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// What makes a line
    #[arg(long, value_enum, default_value_t = By::Process)]
    pub by: By,

    /// What to sort by, the most first; --json has all of them
    #[arg(long, value_name = "FIGURE", default_value = "run_ns",
          value_parser = PossibleValuesParser::new(TASK_STATS.iter().map(|s| s.name)))]
    pub sort: String,

    /// So many lines at most
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,

    #[command(flatten)]
    pub filter: Filter,

    /// So many of the latest inversions
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub episodes: usize,

    /// Keep all figures in this file, for --since
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,

    /// Only what came since the figures in this file
    #[arg(long, value_name = "FILE", conflicts_with = "interval")]
    pub since: Option<PathBuf>,

    /// Print what came in each so many seconds, until interrupted
    #[arg(long, value_name = "SECONDS", value_parser = parse_interval)]
    pub interval: Option<Duration>,

    /// Print JSON, one document for each interval
    #[arg(long)]
    pub json: bool,
}

/// Which lines are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Filter {
    /// Only this process
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,

    /// Only names with this in them
    #[arg(long, value_name = "TEXT")]
    pub comm: Option<String>,

    /// Only this cgroup and those below
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<String>,
}

impl Filter {
    /// From one word: a PID, a cgroup if it begins with a slash, else a part of a name.
    pub fn parse(text: &str) -> Self {
        let mut filter = Self::default();
        if let Ok(pid) = text.parse() {
            filter.pid = Some(pid);
        } else if text.starts_with('/') {
            filter.cgroup = Some(text.into());
        } else if !text.is_empty() {
            filter.comm = Some(text.into());
        }
        filter
    }

    fn takes(&self, line: &Line) -> bool {
        self.pid.is_none_or(|pid| line.pid == pid)
            && (self.comm.as_ref()).is_none_or(|text| line.name.contains(text))
            && (self.cgroup.as_ref()).is_none_or(|path| is_below(&line.cgroup, path))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    Task,
    Process,
    Command,
    Cgroup,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    interval::parse(text, 0.1..=86_400.0)
}

/// One line; times in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Of a task or process its own, of all else 0.
    pub pid: u32,
    /// Of the task, process or command; empty for a cgroup.
    pub name: String,
    /// Of the task, or the first that was found.
    pub cgroup: String,
    /// Of the task, or the best among several.
    pub nice: i32,
    /// That live.
    pub tasks: u64,
    pub exited: u64,
    /// 0..1024 of full, the mean while on a CPU.
    pub speed: u64,
    #[serde(flatten)]
    pub stats: TaskStats,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Report<'a> {
    pub lines: Vec<Line>,
    /// The whole machine, whatever was chosen.
    total: Line,
    inversions: Inversions,
    episodes: Vec<&'a Episode>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Inversions {
    count: u64,
    p50_ns: u64,
    p99_ns: u64,
    holder_off_ns: u64,
    not_told: u64,
}

/// Prints once, or again and again until that fails or the scheduler ends.
pub fn print(args: &ReportArgs) -> Result<()> {
    let mut cgroups = Cgroups::default();
    let mut before: Option<Telemetry> = match &args.since {
        None => None,
        Some(file) => {
            Some(load(file).with_context(|| format!("{} holds no figures", file.display()))?)
        }
    };
    let mut now: Telemetry = stats::fetch(target::TASKS)?;
    if let Some(interval) = args.interval {
        loop {
            std::thread::sleep(interval);
            before = Some(now);
            now = stats::fetch(target::TASKS)?;
            show(args, &now, before.as_ref(), &mut cgroups)?;
        }
    }
    if let Some(file) = &args.save {
        let json = serde_json::to_vec(&now)?;
        std::fs::write(file, json).with_context(|| format!("cannot write {}", file.display()))?;
    }
    show(args, &now, before.as_ref(), &mut cgroups)
}

fn load(file: &PathBuf) -> Result<Telemetry> {
    Ok(serde_json::from_slice(&std::fs::read(file)?)?)
}

fn show(
    args: &ReportArgs,
    now: &Telemetry,
    before: Option<&Telemetry>,
    cgroups: &mut Cgroups,
) -> Result<()> {
    let report = Report::new(
        (args.by, &args.sort),
        (args.top, args.episodes),
        &args.filter,
        now,
        before,
        |inode| cgroups.path(inode),
    );
    let text = if args.json {
        serde_json::to_string(&report)? + "\n"
    } else {
        report.table(args.by) + &report.inversions_text()
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("cannot write to standard output")
}

impl<'a> Report<'a> {
    /// `by` whom and sorted by which figure; so many lines and episodes at most.
    pub fn new(
        (by, sort): (By, &str),
        (most_lines, most_episodes): (usize, usize),
        filter: &Filter,
        now: &'a Telemetry,
        before: Option<&Telemetry>,
        mut path: impl FnMut(u64) -> String,
    ) -> Self {
        let mut lines = lines(by, now, &mut path);
        let mut total = now.total();
        let mut inversions = (now.inversions, now.inversion_off_ns);
        let mut hist = now.inversion_hist.clone();
        let mut last = 0;
        if let Some(before) = before {
            let earlier = self::lines(by, before, &mut path);
            for (key, line) in &mut lines {
                if let Some(then) = earlier.get(key) {
                    line.take_off(then);
                }
            }
            total.take_off(&before.total());
            hist = histogram::since(&hist, &before.inversion_hist);
            inversions.0 -= before.inversions.min(inversions.0);
            inversions.1 -= before.inversion_off_ns.min(inversions.1);
            last = before.episodes.last().map_or(0, |e| e.at_ns);
        }
        let column = TASK_STATS.iter().position(|s| s.name == sort);
        let rank = |line: &Line| column.map_or(0, |i| line.stats.values()[i]);
        let wanted = |line: &Line| !line.stats.is_zero() && filter.takes(line);
        let mut lines: Vec<Line> = lines.into_values().filter(wanted).collect();
        lines.sort_by_key(|l| std::cmp::Reverse(rank(l)));
        lines.truncate(most_lines);
        for line in lines.iter_mut().chain([&mut total]) {
            line.speed = line.stats.speed();
        }
        let told = now.episodes.iter().filter(|e| e.at_ns > last);
        let mut episodes: Vec<&Episode> = told.rev().take(most_episodes).collect();
        episodes.reverse();
        Self {
            lines,
            total,
            inversions: Inversions {
                count: inversions.0,
                p50_ns: histogram::quantile(&hist, 0.5),
                p99_ns: histogram::quantile(&hist, 0.99),
                holder_off_ns: inversions.1,
                not_told: now.episodes_lost,
            },
            episodes,
        }
    }
}

impl Line {
    /// What was there before does not count.
    fn take_off(&mut self, then: &Self) {
        self.stats = self.stats.since(&then.stats);
        self.exited = self.exited.saturating_sub(then.exited);
    }
}

/// What a line stands for: an id, or a name.
type Key = (u64, u64, String);

fn lines(
    by: By,
    telemetry: &Telemetry,
    mut path: impl FnMut(u64) -> String,
) -> BTreeMap<Key, Line> {
    let mut lines: BTreeMap<Key, Line> = BTreeMap::new();
    let mut starts = HashMap::new();
    for task in &telemetry.tasks {
        starts.insert(task.tgid, task.process_start);
        let line = lines.entry(key_of(by, task)).or_insert_with(|| Line {
            nice: task.nice,
            cgroup: path(task.cgroup),
            ..Default::default()
        });
        match by {
            By::Task => (line.pid, line.name) = (task.pid, task.comm.clone()),
            By::Process => (line.pid, line.name) = (task.tgid, task.process.clone()),
            By::Command => line.name.clone_from(&task.process),
            By::Cgroup => {}
        }
        line.nice = line.nice.min(task.nice);
        line.tasks += 1;
        line.stats.add(&task.stats);
    }
    for gone in &telemetry.exited {
        let key = match by {
            By::Task => continue,
            By::Process => match starts.get(&gone.tgid) {
                Some(start) => (gone.tgid.into(), *start, String::new()),
                None => continue,
            },
            By::Command => (0, 0, gone.process.clone()),
            By::Cgroup => (gone.cgroup, 0, String::new()),
        };
        let line = lines.entry(key).or_insert_with(|| Line {
            name: if by == By::Command {
                gone.process.clone()
            } else {
                String::new()
            },
            cgroup: path(gone.cgroup),
            ..Default::default()
        });
        line.exited += gone.tasks;
        line.stats.add(&gone.stats);
    }
    lines
}

fn key_of(by: By, task: &Task) -> Key {
    match by {
        By::Task => (task.pid.into(), task.start, String::new()),
        By::Process => (task.tgid.into(), task.process_start, String::new()),
        By::Command => (0, 0, task.process.clone()),
        By::Cgroup => (task.cgroup, 0, String::new()),
    }
}

impl Telemetry {
    /// The whole machine.
    pub(crate) fn total(&self) -> Line {
        let mut total = Line {
            tasks: self.tasks.len() as u64,
            exited: self.lost,
            stats: self.lost_stats,
            ..Default::default()
        };
        for task in &self.tasks {
            total.stats.add(&task.stats);
        }
        for gone in &self.exited {
            total.exited += gone.tasks;
            total.stats.add(&gone.stats);
        }
        total
    }
}

const COLUMNS: [&str; 13] = [
    "nice",
    "tasks",
    "exited",
    "run",
    "speed",
    "wait",
    "picked",
    "moved",
    "preempted",
    "lock wait",
    "held",
    "spin",
    "inverted",
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
                By::Task | By::Process => vec![line.pid.to_string(), line.name.clone()],
                By::Command => vec![line.name.clone()],
                By::Cgroup => vec![line.cgroup.clone()],
            };
            let stats = &line.stats;
            cells.extend([
                line.nice.to_string(),
                line.tasks.to_string(),
                line.exited.to_string(),
                time(stats.run_ns),
                format!("{}%", 100 * line.speed / 1024),
                time(stats.wait_ns),
                stats.picked.to_string(),
                stats.moved.to_string(),
                stats.preempted.to_string(),
                time(stats.lock_wait_ns),
                time(stats.hold_ns),
                time(stats.spin_ns),
                time(stats.inversion_ns),
            ]);
            table.add_row(cells);
        }
        for column in table.column_iter_mut().skip(words.len()) {
            column.set_cell_alignment(CellAlignment::Right);
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
        "{} priority inversions, p50 {}, p99 {}, holders off CPU for {}; {} that should have been told were lost\n",
        inversions.count,
        time(inversions.p50_ns),
        time(inversions.p99_ns),
        time(inversions.holder_off_ns),
        inversions.not_told
    );
        for episode in &self.episodes {
            let _ = writeln!(out, "  {episode}");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Exited;
    use clap::Parser;

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
            comm: format!("t{pid}"),
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
            episodes: vec![Episode {
                at_ns: 50,
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    fn of<'a>(args: &ReportArgs, now: &'a Telemetry, before: Option<&Telemetry>) -> Report<'a> {
        let by = (args.by, args.sort.as_str());
        let most = (args.top, args.episodes);
        Report::new(by, most, &args.filter, now, before, |inode| {
            format!("/g/{inode}")
        })
    }

    fn shown(words: &[&str]) -> Vec<(u32, String, u64)> {
        let telemetry = telemetry();
        let report = of(&args(words), &telemetry, None);
        let of = |l: &Line| (l.pid, l.name.clone(), l.stats.run_ns);
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
        assert_eq!(shown(&["--by=command", "--comm=cc1"]).len(), 1);
        assert_eq!(shown(&["--cgroup=/g/1"]).len(), 1);
        assert_eq!(shown(&["--by=task", "--top=2"]).len(), 2);
        assert_eq!(shown(&["--by=task", "--sort=work_ns"])[0].0, 2);
    }

    #[test]
    fn the_total_has_all_and_a_difference_what_came_since() {
        let mut now = telemetry();
        let then = telemetry();
        let all = of(&args(&[]), &then, None);
        assert_eq!((all.total.stats.run_ns, all.total.exited), (1139, 5));
        assert_eq!((all.total.speed, all.episodes.len()), (511, 1));

        now.tasks[1].stats = ran(26);
        now.inversions = 5;
        let since = of(&args(&["--by=task"]), &now, Some(&then));
        assert_eq!(since.lines.len(), 1, "the others did nothing");
        assert_eq!((since.lines[0].pid, since.lines[0].stats.run_ns), (2, 6));
        assert_eq!((since.total.stats.run_ns, since.inversions.count), (6, 3));
        assert!(since.episodes.is_empty());
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
    fn wrong_usage_is_refused() {
        for bad in ["--by=user", "--sort=name", "--interval=0", "--top=-1"] {
            assert!(Command::try_parse_from(["report", bad]).is_err(), "{bad}");
        }
    }
}
