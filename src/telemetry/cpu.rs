// SPDX-License-Identifier: GPL-2.0-only
//! CPUs as they are at one moment.

use scx_stats_derive::{stat_doc, Stats};
use serde::{Deserialize, Serialize};

/// A CPU at the moment of asking.
#[stat_doc]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stats)]
pub struct Cpu {
    #[stat(desc = "Its number")]
    pub id: u64,
    #[stat(desc = "0..1024 of the machine's largest")]
    pub capacity: u32,
    #[stat(desc = "Speed now, 0..1024 of the machine's fastest at its best")]
    pub speed: u32,
    #[stat(desc = "Share of the time in which it was busy of late, 0..1024")]
    pub util: u32,
    #[stat(desc = "The task on it; 0 for none of ours")]
    pub running: u32,
    #[stat(desc = "1 if it is busy or was within nest_idle_us")]
    pub warm: u32,
    #[stat(desc = "Work that waits there, ns at full speed")]
    pub queued_ns: u64,
}

/// The answer of the target `cpus`.
#[stat_doc]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stats)]
#[stat(desc = "The CPUs")]
pub struct Cpus {
    #[stat(desc = "Each that was online when the scheduler started")]
    pub cpus: Vec<Cpu>,
}
