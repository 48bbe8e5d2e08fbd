// SPDX-License-Identifier: GPL-2.0-only
//! Priority inversions: a task waited for a lock that a task of lesser weight held.

use crate::foreign::Foreign;
use crate::intf;
use crate::raw::{read, text};
use crate::units::time;
use scx_stats_derive::{stat_doc, Stats};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One that lasted for long enough to be reported.
#[stat_doc]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stats)]
pub struct Inversion {
    #[stat(desc = "When it ended, ns of the monotonic clock")]
    pub at_ns: u64,
    #[stat(desc = "How long the waiter slept, ns")]
    pub length_ns: u64,
    #[stat(desc = "For how long of it the holder was not on a CPU, ns")]
    pub holder_off_ns: u64,
    #[stat(desc = "The lock's number in the graph")]
    pub lock: u64,
    #[stat(desc = "handed off, passed on: by another than that holder, or given up")]
    pub end: String,
    #[stat(desc = "Who waited")]
    pub waiter: u32,
    #[stat(desc = "Its process")]
    pub waiter_tgid: u32,
    #[stat(desc = "Its name")]
    pub waiter_comm: Foreign,
    #[stat(desc = "Its nice value; 20 stands for the policy SCHED_IDLE")]
    pub waiter_nice: i32,
    #[stat(desc = "Who held the lock when the wait began")]
    pub holder: u32,
    #[stat(desc = "Its process; 0 if it is gone")]
    pub holder_tgid: u32,
    #[stat(desc = "Its name")]
    pub holder_comm: Foreign,
    #[stat(desc = "Its nice value; 20 stands for the policy SCHED_IDLE")]
    pub holder_nice: i32,
}

impl Inversion {
    /// From a `struct fl_inversion`; none if it has not that size.
    pub fn from_event(bytes: &[u8]) -> Option<Self> {
        let raw: intf::fl_inversion = read(bytes)?;
        Some(Self {
            at_ns: raw.at,
            length_ns: raw.length,
            holder_off_ns: raw.holder_off,
            lock: raw.lock,
            end: end_name(raw.end).into(),
            waiter: raw.waiter,
            waiter_tgid: raw.waiter_tgid,
            waiter_comm: text(&raw.waiter_comm),
            waiter_nice: raw.waiter_nice.into(),
            holder: raw.holder,
            holder_tgid: raw.holder_tgid,
            holder_comm: text(&raw.holder_comm),
            holder_nice: raw.holder_nice.into(),
        })
    }
}

impl fmt::Display for Inversion {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "{} {} (nice {}) waited {} for {} {} (nice {}), which was off CPU for {} of it: {}",
            self.waiter_comm,
            self.waiter,
            self.waiter_nice,
            time(self.length_ns),
            self.holder_comm,
            self.holder,
            self.holder_nice,
            time(self.holder_off_ns),
            self.end
        )
    }
}

fn end_name(end: u32) -> &'static str {
    match end {
        intf::fl_inversion_end_FL_END_HANDED => "handed off",
        intf::fl_inversion_end_FL_END_PASSED => "passed on",
        _ => "given up",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_and_reported() {
        // SAFETY: made of integers alone.
        let mut raw: intf::fl_inversion = unsafe { std::mem::zeroed() };
        raw.length = 2_000_000;
        raw.holder_off = 1_500_000;
        raw.end = intf::fl_inversion_end_FL_END_PASSED;
        (raw.waiter, raw.waiter_nice) = (3, -5);
        (raw.holder, raw.holder_nice) = (4, 19);
        raw.waiter_comm[0] = b'w' as _;
        raw.holder_comm[0] = b'h' as _;
        // SAFETY: the struct has no padding, so that every byte of it is written.
        let bytes: [u8; size_of::<intf::fl_inversion>()] = unsafe { std::mem::transmute(raw) };
        let event = Inversion::from_event(&bytes).unwrap();
        assert_eq!(
            event.to_string(),
            "w 3 (nice -5) waited 2.00 ms for h 4 (nice 19), which was off CPU for 1.50 ms of it: passed on"
        );
        assert_eq!(Inversion::from_event(&bytes[8..]), None);
    }
}
