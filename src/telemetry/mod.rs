// SPDX-License-Identifier: GPL-2.0-only
//! What the scheduler knows of each task (`task`) and of priority inversions
//! (`inversion`); what the agent keeps of tasks that are gone (`collect`); figures
//! added up, chosen and sorted ([`line`]); and tables of that (`summary`).

mod collect;
mod cpu;
mod inversion;
mod line;
mod summary;
mod task;

pub use collect::{Collector, Exited, Telemetry};
pub use cpu::{Cpu, Cpus};
pub use inversion::Inversion;
pub use line::{By, Filter, Line, Order};
pub use summary::Report;
pub use task::{Task, TaskStat, TaskStats, TASK_STATS};
