// SPDX-License-Identifier: GPL-2.0-only
//! A task's figures as they come from the BPF side, bpf/taskstats.h.

use crate::foreign::Foreign;
use crate::intf;
use crate::raw::{read, text};
use scx_stats_derive::{stat_doc, Stats};
use serde::{Deserialize, Serialize};

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskStat {
    /// As JSON and columns have it.
    pub name: &'static str,
    /// A time in ns; else a number of times.
    pub is_time: bool,
    /// A sentence for people.
    pub desc: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/task_stats.rs"));

impl TaskStats {
    /// Adds the figures of another task.
    pub fn add(&mut self, other: &Self) {
        let mut values = self.values();
        for (sum, value) in values.iter_mut().zip(other.values()) {
            *sum += value;
        }
        *self = Self::from_values(&values);
    }

    /// What came since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut values = self.values();
        for (now, then) in values.iter_mut().zip(earlier.values()) {
            *now = now.saturating_sub(then);
        }
        Self::from_values(&values)
    }

    /// Whether nothing was counted.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Mean speed of the CPUs while it ran, 0..1024; full where it did not run.
    pub fn speed(&self) -> u64 {
        let full = intf::fl_consts_FL_FULL_SPEED;
        // In 64 bits the product would be too large after 208 days of CPU time.
        let speed = (u128::from(self.work_ns) * u128::from(full))
            .checked_div(u128::from(self.run_ns))
            .unwrap_or(full.into());
        speed.min(full.into()) as u64
    }
}

/// A thread.
#[stat_doc]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stats)]
pub struct Task {
    #[stat(desc = "Its id")]
    pub pid: u32,
    #[stat(desc = "Its process")]
    pub tgid: u32,
    #[stat(desc = "Nice value; 20 stands for the policy SCHED_IDLE")]
    pub nice: i32,
    #[stat(desc = "User")]
    pub uid: u32,
    #[stat(desc = "cgroup: the inode of its folder")]
    pub cgroup: u64,
    #[stat(desc = "When it was born, ns since boot")]
    pub start: u64,
    #[stat(desc = "When its process was, ns since boot")]
    pub process_start: u64,
    #[stat(desc = "Name")]
    pub comm: Foreign,
    #[stat(desc = "Name of its process")]
    pub process: Foreign,
    #[stat(desc = "What was counted of it, as a list in the order of TaskStats")]
    #[serde(with = "as_list")]
    pub stats: TaskStats,
}

/// Figures without their names: there may be thousands of tasks each second.
pub(super) mod as_list {
    use super::{TaskStats, TASK_STATS};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(stats: &TaskStats, to: S) -> Result<S::Ok, S::Error> {
        stats.values().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TaskStats, D::Error> {
        let values = <[u64; TASK_STATS.len()]>::deserialize(from)?;
        Ok(TaskStats::from_values(&values))
    }
}

impl Task {
    /// From a `struct fl_task_record`; none if it has not that size.
    pub fn from_record(bytes: &[u8]) -> Option<Self> {
        let raw: intf::fl_task_record = read(bytes)?;
        // SAFETY: the struct is made of u64 alone, one for each line of the table.
        let values: [u64; TASK_STATS.len()] = unsafe { std::mem::transmute(raw.stats) };
        Some(Self {
            pid: raw.pid,
            tgid: raw.tgid,
            nice: raw.nice,
            uid: raw.uid,
            cgroup: raw.cgroup,
            start: raw.start,
            process_start: raw.process_start,
            comm: text(&raw.comm),
            process: text(&raw.process),
            stats: TaskStats::from_values(&values),
        })
    }

    /// All in a stream of records.
    pub fn from_records(bytes: &[u8]) -> Vec<Self> {
        let records = bytes.chunks_exact(size_of::<intf::fl_task_record>());
        records.filter_map(Self::from_record).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_field_by_field() {
        // SAFETY: made of integers alone.
        let mut raw: intf::fl_task_record = unsafe { std::mem::zeroed() };
        (raw.pid, raw.tgid, raw.nice) = (7, 5, -3);
        raw.stats.run = 11;
        raw.stats.inversion = 13;
        raw.comm[0] = b'x' as _;
        // SAFETY: the struct has no padding, so that every byte of it is written.
        let bytes: [u8; size_of::<intf::fl_task_record>()] = unsafe { std::mem::transmute(raw) };
        let task = Task::from_record(&bytes).unwrap();
        assert_eq!((task.pid, task.tgid, task.nice), (7, 5, -3));
        assert_eq!((task.stats.run_ns, task.stats.inversion_ns), (11, 13));
        assert_eq!(task.comm.raw(), "x");
        assert_eq!(Task::from_record(&bytes[1..]), None);
        assert_eq!(Task::from_records(&[bytes, bytes].concat()).len(), 2);
    }

    #[test]
    fn figures_go_as_a_list_and_come_back() {
        let task = Task {
            pid: 7,
            stats: TaskStats::from_values(&std::array::from_fn(|i| i as u64)),
            ..Default::default()
        };
        let json = serde_json::to_string(&task).unwrap();
        assert!(json.contains("\"stats\":[0,1,2,"), "{json}");
        assert_eq!(serde_json::from_str::<Task>(&json).unwrap(), task);
        let other = json.replace("[0,", "[0,0,");
        assert!(
            serde_json::from_str::<Task>(&other).is_err(),
            "of another version"
        );
    }

    #[test]
    fn figures_are_added_and_taken_from_each_other() {
        let values = std::array::from_fn(|i| 10 * i as u64);
        let mut sum = TaskStats::from_values(&values);
        sum.add(&TaskStats::from_values(&values));
        assert_eq!(sum.values()[3], 60);
        assert_eq!(sum.since(&TaskStats::from_values(&values)).values(), values);
        let half = TaskStats {
            run_ns: 100,
            work_ns: 50,
            ..Default::default()
        };
        assert_eq!(half.speed(), 512);
        assert_eq!(TaskStats::default().speed(), 1024);
        const DAY: u64 = 86_400_000_000_000;
        for days in [207, 209, 208 * 1024] {
            let many = TaskStats {
                run_ns: days * DAY,
                work_ns: days * DAY / 4,
                ..Default::default()
            };
            assert_eq!(many.speed(), 256, "{days} days");
        }
    }
}
