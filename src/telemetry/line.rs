// SPDX-License-Identifier: GPL-2.0-only
//! Lines of a report: figures of tasks added up by task, process, command or cgroup, of
//! those that are wanted, in an order.

use super::collect::Telemetry;
use super::task::{Task, TaskStats, TASK_STATS};
use crate::cgroups::is_below;
use crate::foreign::{Escaped, Foreign};
use crate::number::whole;
use clap::ValueEnum;
use serde::Serialize;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// Whose figures are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Filter {
    /// Only this process
    #[arg(long, value_name = "PID", value_parser = whole(1..=i32::MAX as u32))]
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

    /// Whether it takes all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// True for what is of this process, has one of these names, and is in the cgroup
    /// whose path `path` gives.
    pub fn takes(&self, pid: u32, names: &[&Foreign], path: impl FnOnce() -> Foreign) -> bool {
        self.pid.is_none_or(|wanted| pid == wanted)
            && (self.comm.as_ref())
                .is_none_or(|text| names.iter().any(|name| name.raw().contains(text)))
            && (self.cgroup.as_ref()).is_none_or(|above| is_below(path().raw(), above))
    }
}

/// As it would be typed, harmless.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let texts = [&self.comm, &self.cgroup].into_iter().flatten();
        let words: Vec<String> = (self.pid.iter().map(ToString::to_string))
            .chain(texts.map(|text| Escaped(text).to_string()))
            .collect();
        f.write_str(&words.join(" "))
    }
}

/// What makes a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// A thread.
    #[value(help = None)]
    Task,
    /// All threads of a process, and those of it that exited.
    #[value(help = None)]
    Process,
    /// All processes of one name.
    #[value(help = None)]
    Command,
    /// All tasks of a cgroup, without those of cgroups below.
    #[value(help = None)]
    Cgroup,
}

/// What lines are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Of a task or process, the least first.
    Pid,
    /// Of the task, process or command, by its bytes.
    Name,
    /// By the path.
    Cgroup,
    /// The best first.
    Nice,
    /// How many live, the most first.
    Tasks,
    /// How many exited, the most first.
    Exited,
    /// The fastest first.
    Speed,
    /// A place in [`TASK_STATS`].
    Figure(usize),
}

/// By the time on a CPU.
impl Default for Order {
    fn default() -> Self {
        Self::Figure(0)
    }
}

impl Order {
    /// Every one of them, figures first.
    pub fn all() -> impl Iterator<Item = Self> {
        let figures = (0..TASK_STATS.len()).map(Self::Figure);
        figures.chain([
            Self::Pid,
            Self::Name,
            Self::Cgroup,
            Self::Nice,
            Self::Tasks,
            Self::Exited,
            Self::Speed,
        ])
    }

    /// That of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::all().find(|order| order.name() == name)
    }

    /// As --sort takes it.
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// What it is, for people.
    pub fn desc(self) -> &'static str {
        self.words().1
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Pid => ("pid", "The number of the task or process, the least first"),
            Self::Name => ("name", "The name of the task, process or command"),
            Self::Cgroup => ("cgroup", "The path of the cgroup"),
            Self::Nice => ("nice", "The nice value, the best first"),
            Self::Tasks => ("tasks", "Tasks that live"),
            Self::Exited => ("exited", "Tasks that exited"),
            Self::Speed => ("speed", "Mean speed of the CPUs while on them"),
            Self::Figure(i) => (TASK_STATS[i].name, TASK_STATS[i].desc),
        }
    }

    /// Sorts; of numbers that count something the most first.
    pub fn sort(self, lines: &mut [Line]) {
        lines.sort_by(|a, b| self.compare(a, b));
    }

    fn compare(self, a: &Line, b: &Line) -> Ordering {
        let most = |of: fn(&Line) -> u64| Reverse(of(a)).cmp(&Reverse(of(b)));
        match self {
            Self::Pid => a.pid.cmp(&b.pid),
            Self::Name => a.name.cmp(&b.name),
            Self::Cgroup => a.cgroup.cmp(&b.cgroup),
            Self::Nice => a.nice.cmp(&b.nice),
            Self::Tasks => most(|line| line.tasks),
            Self::Exited => most(|line| line.exited),
            Self::Speed => most(|line| line.speed),
            Self::Figure(i) => {
                let figure = |line: &Line| Reverse(line.stats.values()[i]);
                figure(a).cmp(&figure(b))
            }
        }
    }
}

/// One line; times in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Of a task or process its own, of all else 0.
    pub pid: u32,
    /// Of the task, process or command; empty for a cgroup.
    pub name: Foreign,
    /// Of the task, or the first that was found.
    pub cgroup: Foreign,
    /// Of the task, or the best among several.
    pub nice: i32,
    /// That live.
    pub tasks: u64,
    /// Tasks that exited.
    pub exited: u64,
    /// 0..1024 of full, the mean while on a CPU.
    pub speed: u64,
    /// Each by its name.
    #[serde(flatten)]
    pub stats: TaskStats,
}

impl Line {
    /// What was there before does not count.
    pub(super) fn take_off(&mut self, then: &Self) {
        self.stats = self.stats.since(&then.stats);
        self.exited = self.exited.saturating_sub(then.exited);
    }
}

/// What a line stands for: an id, or a name.
pub(super) type Key = (u64, u64, Foreign);

/// The lines of what is wanted; `path` gives that of a cgroup.
pub(super) fn lines(
    by: By,
    filter: &Filter,
    telemetry: &Telemetry,
    mut path: impl FnMut(u64) -> Foreign,
) -> BTreeMap<Key, Line> {
    let mut lines: BTreeMap<Key, Line> = BTreeMap::new();
    let mut starts = HashMap::new();
    for task in &telemetry.tasks {
        starts.insert(task.tgid, task.process_start);
        // A process is all of its threads, whatever they call themselves.
        let own = if by == By::Task {
            &task.comm
        } else {
            &task.process
        };
        let names = [own, &task.process];
        if !filter.takes(task.tgid, &names, || path(task.cgroup)) {
            continue;
        }
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
        if !filter.takes(gone.tgid, &[&gone.process], || path(gone.cgroup)) {
            continue;
        }
        let key = match by {
            By::Task => continue,
            By::Process => match starts.get(&gone.tgid) {
                Some(start) => (gone.tgid.into(), *start, Foreign::default()),
                None => continue,
            },
            By::Command => (0, 0, gone.process.clone()),
            By::Cgroup => (gone.cgroup, 0, Foreign::default()),
        };
        let line = lines.entry(key).or_insert_with(|| Line {
            name: if by == By::Command {
                gone.process.clone()
            } else {
                Foreign::default()
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
        By::Task => (task.pid.into(), task.start, Foreign::default()),
        By::Process => (task.tgid.into(), task.process_start, Foreign::default()),
        By::Command => (0, 0, task.process.clone()),
        By::Cgroup => (task.cgroup, 0, Foreign::default()),
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
