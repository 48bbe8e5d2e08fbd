// SPDX-License-Identifier: GPL-2.0-only
//! What the agent keeps: figures of tasks that exited, by process while that lives,
//! then by its name and cgroup, so that nothing is lost and memory is bounded; and
//! the latest inversions.

use super::inversion::Inversion;
use super::task::{Task, TaskStats};
use crate::foreign::Foreign;
use scx_stats_derive::{stat_doc, Stats};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet, VecDeque};

/// Processes whose threads exited, until they are looked at.
const MOST_PROCESSES: usize = 4096;
/// Pairs of name and cgroup; what comes after them is added up as one.
const MOST_GROUPS: usize = 4096;
/// Inversions that are remembered.
const MOST_EVENTS: usize = 1000;

/// Tasks that are gone, added up.
#[stat_doc]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stats)]
pub struct Exited {
    #[stat(desc = "The process, if it lives still, else 0")]
    pub tgid: u32,
    #[stat(desc = "Name of the process; empty for what is beyond the names remembered")]
    pub process: Foreign,
    #[stat(desc = "cgroup: the inode of its folder")]
    pub cgroup: u64,
    #[stat(desc = "Number of tasks")]
    pub tasks: u64,
    #[stat(desc = "What was counted of them, as a list in the order of TaskStats")]
    #[serde(with = "super::task::as_list")]
    pub stats: TaskStats,
}

/// All that is known of tasks.
#[stat_doc]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stats)]
#[stat(desc = "What was counted of each task, and priority inversions")]
pub struct Telemetry {
    #[stat(desc = "The tasks that there are")]
    pub tasks: Vec<Task>,
    #[stat(desc = "Those that are gone")]
    pub exited: Vec<Exited>,
    #[stat(desc = "Tasks that exited while the buffer for it was full")]
    pub lost: u64,
    #[stat(desc = "What was counted of those")]
    pub lost_stats: TaskStats,
    #[stat(desc = "Inversions, all of them")]
    pub inversions: u64,
    #[stat(desc = "Time of them in which the holder was not on a CPU, ns")]
    pub inversion_off_ns: u64,
    #[stat(desc = "Histogram of their lengths: bucket and count in turn, without the empty ones")]
    pub inversion_hist: Vec<u64>,
    #[stat(desc = "The latest of those that lasted inversion_us and longer, oldest first")]
    pub inversion_events: Vec<Inversion>,
    #[stat(desc = "Such inversions that were lost because the buffer was full")]
    pub inversion_events_lost: u64,
}

/// A process: its id and when it was born.
type ProcessKey = (u32, u64);

/// What the agent keeps of tasks that exited and of inversions, bounded in number.
#[derive(Default)]
pub struct Collector {
    processes: HashMap<ProcessKey, Exited>,
    /// By name and cgroup.
    groups: HashMap<(Foreign, u64), Exited>,
    inversions: VecDeque<Inversion>,
}

impl Collector {
    /// A task is gone.
    pub fn exited(&mut self, task: &Task) {
        let key = (task.tgid, task.process_start);
        if self.processes.len() >= MOST_PROCESSES && !self.processes.contains_key(&key) {
            // Some may live still: what they had so far is then reported by name only.
            self.fold(|_| false);
        }
        let process = self.processes.entry(key).or_insert_with(|| Exited {
            tgid: task.tgid,
            process: task.process.clone(),
            cgroup: task.cgroup,
            ..Default::default()
        });
        process.tasks += 1;
        process.stats.add(&task.stats);
    }

    /// An inversion is over; the oldest makes room for it.
    pub fn inversion(&mut self, event: Inversion) {
        if self.inversions.len() >= MOST_EVENTS {
            self.inversions.pop_front();
        }
        self.inversions.push_back(event);
    }

    /// What is known while these tasks live. The caller adds what BPF counts itself.
    pub fn telemetry(&mut self, tasks: Vec<Task>) -> Telemetry {
        let living: HashSet<ProcessKey> = tasks.iter().map(|t| (t.tgid, t.process_start)).collect();
        self.fold(|key| living.contains(key));
        let mut exited: Vec<Exited> = self.processes.values().cloned().collect();
        exited.extend(self.groups.values().cloned());
        Telemetry {
            tasks,
            exited,
            inversion_events: self.inversions.iter().cloned().collect(),
            ..Default::default()
        }
    }

    /// Processes that are not kept are reported by name and cgroup from now on.
    fn fold(&mut self, keep: impl Fn(&ProcessKey) -> bool) {
        for (_, gone) in self.processes.extract_if(|key, _| !keep(key)) {
            let mut key = (gone.process, gone.cgroup);
            if self.groups.len() >= MOST_GROUPS && !self.groups.contains_key(&key) {
                key = Default::default();
            }
            let (process, cgroup) = key.clone();
            let group = self.groups.entry(key).or_insert_with(|| Exited {
                process,
                cgroup,
                ..Default::default()
            });
            group.tasks += gone.tasks;
            group.stats.add(&gone.stats);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(tgid: u32, process: &str, run_ns: u64) -> Task {
        Task {
            pid: tgid,
            tgid,
            process: process.into(),
            cgroup: 9,
            stats: TaskStats {
                run_ns,
                ..Default::default()
            },
            ..Default::default()
        }
    }

    fn run_ns(exited: &[Exited]) -> u64 {
        exited.iter().map(|e| e.stats.run_ns).sum()
    }

    #[test]
    fn threads_count_for_their_process_and_then_for_its_name() {
        let mut collector = Collector::default();
        collector.exited(&task(5, "cc1", 10));
        collector.exited(&task(5, "cc1", 20));
        collector.exited(&task(6, "cc1", 40));
        let alive = collector.telemetry(vec![task(5, "cc1", 100)]);
        let of = |tgid| alive.exited.iter().find(|e| e.tgid == tgid).unwrap();
        assert_eq!((of(5).tasks, of(5).stats.run_ns), (2, 30));
        assert_eq!((of(0).tasks, of(0).stats.run_ns), (1, 40));
        let gone = collector.telemetry(vec![]).exited;
        assert_eq!(gone.len(), 1);
        assert_eq!((gone[0].process.raw(), gone[0].cgroup), ("cc1", 9));
        assert_eq!((gone[0].tasks, run_ns(&gone)), (3, 70));
    }

    #[test]
    fn a_process_with_a_number_that_was_used_before_is_another() {
        let mut collector = Collector::default();
        collector.exited(&task(5, "old", 10));
        let new = Task {
            process_start: 1,
            ..task(5, "new", 20)
        };
        collector.exited(&new);
        let exited = collector.telemetry(vec![new]).exited;
        let new = exited.iter().find(|e| e.tgid == 5).unwrap();
        assert_eq!((new.process.raw(), new.tasks), ("new", 1));
    }

    #[test]
    fn memory_is_bounded_and_nothing_is_lost() {
        let mut collector = Collector::default();
        let most = 3 * MOST_GROUPS as u32;
        for i in 0..most {
            collector.exited(&task(i, &i.to_string(), 1));
            assert!(collector.processes.len() <= MOST_PROCESSES);
        }
        let exited = collector.telemetry(vec![]).exited;
        assert!(exited.len() <= MOST_GROUPS + 1, "{}", exited.len());
        assert_eq!(run_ns(&exited), u64::from(most));
        assert_eq!(exited.iter().map(|e| e.tasks).sum::<u64>(), u64::from(most));
    }

    #[test]
    fn the_latest_inversions_are_remembered() {
        let mut collector = Collector::default();
        for at_ns in 0..MOST_EVENTS as u64 + 5 {
            collector.inversion(Inversion {
                at_ns,
                ..Default::default()
            });
        }
        let events = collector.telemetry(vec![]).inversion_events;
        assert_eq!(events.len(), MOST_EVENTS);
        assert_eq!((events[0].at_ns, events[1].at_ns), (5, 6));
    }
}
