// SPDX-License-Identifier: GPL-2.0-only
//! What the scheduler knows of each task ([`task`]) and of priority inversions
//! ([`episode`]); what the agent keeps of tasks that are gone ([`collect`]); and
//! the tables of it for people and scripts ([`report`]).

mod collect;
mod cpu;
mod episode;
mod look;
mod report;
mod task;

pub use collect::{Collector, Exited, Telemetry};
pub use cpu::{Cpu, Cpus};
pub use episode::Episode;
pub use look::Look;
pub use report::{print, By, Filter, Report, ReportArgs};
pub use task::{Task, TaskStat, TaskStats, TASK_STATS};

/// A struct of intf.h, of which all are made of integers alone; none if `bytes` has
/// another size.
fn read<T: Copy>(bytes: &[u8]) -> Option<T> {
    // SAFETY: there are as many bytes as the struct has, and any are valid for integers.
    (bytes.len() == size_of::<T>()).then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// A string of C, as far as it goes.
fn text(chars: &[i8]) -> String {
    let bytes: Vec<u8> = (chars.iter().map(|c| *c as u8))
        .take_while(|c| *c != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into()
}
