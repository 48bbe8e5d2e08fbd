// SPDX-License-Identifier: GPL-2.0-only
//! What the scheduler counted of each lock, as it comes from the BPF side and
//! goes over the statistics socket.

use crate::foreign::Foreign;
use crate::histogram;
use crate::intf;
use crate::locks::SpinLimit;
use crate::raw;
use scx_stats_derive::{stat_doc, Stats};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// One lock for which somebody waited.
#[stat_doc]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stats)]
pub struct LockProfile {
    #[stat(desc = "Address, in the process or in the kernel")]
    pub addr: u64,
    #[stat(desc = "Process of a lock in user space, 0 for the kernel's own")]
    pub tgid: u64,
    #[stat(desc = "futex, PI futex, mutex, rwsem, mmap_lock, or hint: reported by its threads")]
    pub kind: String,
    #[stat(desc = "Command of its first waiter")]
    pub comm: Foreign,
    #[stat(desc = "cgroup of its first waiter: the inode of its folder")]
    pub cgroup: u64,
    #[stat(
        desc = "Of the first waiter, words from the top of its stack; of the kernel's locks, the callers"
    )]
    pub stack: Vec<u64>,
    #[stat(desc = "Waits that are over")]
    pub waits: u64,
    #[stat(desc = "All of them together, ns, until the waiter ran again")]
    pub wait_ns: u64,
    #[stat(desc = "The longest, ns")]
    pub wait_longest_ns: u64,
    #[stat(desc = "Holds that ended with the holder waking a waiter")]
    pub holds: u64,
    #[stat(desc = "All of them together, ns, from when somebody began to wait")]
    pub hold_ns: u64,
    #[stat(desc = "Of these, ended on a CPU that is not of the largest capacity")]
    pub holds_small: u64,
    #[stat(desc = "Times when a holder lost its CPU while somebody waited")]
    pub preempted: u64,
    #[stat(desc = "Histogram of waits: bucket and count in turn, without the empty ones")]
    pub wait_hist: Vec<u64>,
    #[stat(desc = "Histogram of holds, in the same way")]
    pub hold_hist: Vec<u64>,
}

/// All that are remembered.
#[stat_doc]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stats)]
#[stat(desc = "Locks that tasks waited for since the scheduler started")]
pub struct LockProfiles {
    #[stat(desc = "The locks")]
    pub locks: Vec<LockProfile>,
    #[stat(desc = "Locks that there were; more than are listed if some were forgotten")]
    pub seen: u64,
    #[stat(desc = "1 if CPUs differ in capacity")]
    pub capacity_differs: u64,
}

impl LockProfile {
    /// From a value of the map `lock_profiles`; none where it is not filled yet.
    pub fn from_map(value: &[u8]) -> Option<Self> {
        let raw: intf::fl_lock_profile = raw::read(value)?;
        Some(Self {
            addr: raw.addr,
            tgid: raw.tgid.into(),
            kind: kind_name(raw.kind)?.into(),
            comm: raw::text(&raw.comm),
            cgroup: raw.cgroup,
            stack: raw.stack.to_vec(),
            waits: raw.waits,
            wait_ns: raw.wait_ns,
            wait_longest_ns: raw.wait_longest_ns,
            holds: raw.holds,
            hold_ns: raw.hold_ns,
            holds_small: raw.holds_small,
            preempted: raw.preempted,
            wait_hist: histogram::pairs(raw.wait_slot.iter().map(|n| u64::from(*n))),
            hold_hist: histogram::pairs(raw.hold_slot.iter().map(|n| u64::from(*n))),
        })
    }

    /// True if it belongs to the kernel.
    pub fn is_kernel(&self) -> bool {
        self.tgid == 0
    }

    /// The time that a share of the waits stays within, ns: where their bucket
    /// ends, so up to a quarter too long and never too short.
    pub fn wait_quantile_ns(&self, share: f64) -> u64 {
        histogram::quantile(&self.wait_hist, share).min(self.wait_longest_ns)
    }

    /// Mean time from when somebody began to wait to the handoff, ns.
    pub fn hold_mean_ns(&self) -> u64 {
        self.hold_ns.checked_div(self.holds).unwrap_or(0)
    }

    /// Half of the holds ended within this time after somebody began to wait, ns; as
    /// `wait_quantile_ns` otherwise.
    pub fn hold_p50_ns(&self) -> u64 {
        histogram::quantile(&self.hold_hist, 0.5)
    }

    /// How long its waiters should spin before they sleep; none if that cannot be told, or is
    /// not theirs to choose, in the kernel and where they report that they spin.
    pub fn spin_limit(&self) -> Option<SpinLimit> {
        let sleeps = matches!(self.kind.as_str(), "futex" | "PI futex");
        sleeps.then(|| SpinLimit::of(&self.hold_hist)).flatten()
    }

    /// Of its holds those that ended on a CPU that is not of the largest capacity, %.
    pub fn small_percent(&self) -> u64 {
        100 * self.holds_small / self.holds.max(1)
    }

    /// What happened since `earlier`. The longest wait is taken from the histogram
    /// where no new record was set.
    fn since(&self, earlier: &Self) -> Self {
        let hist = histogram::since(&self.wait_hist, &earlier.wait_hist);
        let longest = if self.wait_longest_ns > earlier.wait_longest_ns {
            self.wait_longest_ns
        } else {
            histogram::quantile(&hist, 1.0).min(self.wait_longest_ns)
        };
        Self {
            waits: self.waits.saturating_sub(earlier.waits),
            wait_ns: self.wait_ns.saturating_sub(earlier.wait_ns),
            wait_longest_ns: longest,
            holds: self.holds.saturating_sub(earlier.holds),
            hold_ns: self.hold_ns.saturating_sub(earlier.hold_ns),
            holds_small: self.holds_small.saturating_sub(earlier.holds_small),
            preempted: self.preempted.saturating_sub(earlier.preempted),
            wait_hist: hist,
            hold_hist: histogram::since(&self.hold_hist, &earlier.hold_hist),
            ..self.clone()
        }
    }
}

impl LockProfiles {
    /// What happened since `earlier`: of locks waited for in between alone. One that
    /// was forgotten and seen again counts from then.
    pub fn since(&self, earlier: &Self) -> Self {
        let before: HashMap<(u64, u64), &LockProfile> =
            (earlier.locks.iter().map(|l| ((l.tgid, l.addr), l))).collect();
        let locks = self
            .locks
            .iter()
            .map(|lock| match before.get(&(lock.tgid, lock.addr)) {
                Some(then) if then.waits <= lock.waits => lock.since(then),
                _ => lock.clone(),
            });
        Self {
            locks: locks.filter(|l| l.waits > 0 || l.preempted > 0).collect(),
            seen: self.seen,
            capacity_differs: self.capacity_differs,
        }
    }
}

fn kind_name(kind: u32) -> Option<&'static str> {
    Some(match kind {
        intf::fl_lock_kind_FL_LOCK_FUTEX => "futex",
        intf::fl_lock_kind_FL_LOCK_PI => "PI futex",
        intf::fl_lock_kind_FL_LOCK_MUTEX => "mutex",
        intf::fl_lock_kind_FL_LOCK_RWSEM => "rwsem",
        intf::fl_lock_kind_FL_LOCK_MMAP => "mmap_lock",
        intf::fl_lock_kind_FL_LOCK_HINT => "hint",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::bucket_begins;

    fn lock(addr: u64, hist: &[u64], longest: u64) -> LockProfile {
        LockProfile {
            addr,
            waits: hist.iter().skip(1).step_by(2).sum(),
            wait_longest_ns: longest,
            wait_hist: hist.to_vec(),
            ..Default::default()
        }
    }

    #[test]
    fn a_value_of_the_map_is_read_whole() {
        // SAFETY: made of integers alone.
        let mut raw: intf::fl_lock_profile = unsafe { std::mem::zeroed() };
        raw.addr = 0x1234;
        raw.tgid = 7;
        raw.kind = intf::fl_lock_kind_FL_LOCK_PI;
        raw.comm[0] = b'x' as _;
        raw.waits = 3;
        raw.wait_slot[5] = 2;
        raw.wait_slot[127] = 1;
        raw.hold_slot[6] = 4;
        // SAFETY: the bytes of a struct without gaps that were not written.
        let bytes =
            unsafe { std::slice::from_raw_parts((&raw const raw).cast::<u8>(), size_of_val(&raw)) };
        let lock = LockProfile::from_map(bytes).unwrap();
        assert_eq!((lock.addr, lock.tgid, lock.waits), (0x1234, 7, 3));
        assert_eq!((lock.kind.as_str(), lock.comm.raw()), ("PI futex", "x"));
        assert_eq!(lock.wait_hist, [5, 2, 127, 1]);
        assert_eq!(lock.hold_hist, [6, 4]);
        assert_eq!(LockProfile::from_map(&bytes[1..]), None);
        let unfilled = vec![0; bytes.len()];
        assert_eq!(LockProfile::from_map(&unfilled), None);
    }

    #[test]
    fn quantiles_are_where_their_bucket_ends() {
        let many = lock(1, &[10, 98, 40, 2], 1 << 40);
        assert_eq!(many.wait_quantile_ns(0.5), bucket_begins(11));
        assert_eq!(many.wait_quantile_ns(0.98), bucket_begins(11));
        assert_eq!(many.wait_quantile_ns(0.99), bucket_begins(41));
        let capped = lock(1, &[10, 98, 40, 2], bucket_begins(40) + 1);
        assert_eq!(capped.wait_quantile_ns(1.0), bucket_begins(40) + 1);
        assert_eq!(lock(1, &[], 0).wait_quantile_ns(0.5), 0);
    }

    #[test]
    fn since_is_the_difference_and_leaves_out_the_quiet() {
        let of = |locks: &[LockProfile]| LockProfiles {
            locks: locks.to_vec(),
            ..Default::default()
        };
        let then = of(&[lock(1, &[10, 5, 20, 1], 9000), lock(2, &[10, 5], 700)]);
        let now = of(&[
            lock(1, &[10, 7, 20, 1], 9000),
            lock(2, &[10, 5], 700),
            lock(3, &[4, 1], 300),
        ]);
        let since = now.since(&then);
        let addrs: Vec<u64> = since.locks.iter().map(|l| l.addr).collect();
        assert_eq!(addrs, [1, 3]);
        assert_eq!(since.locks[0].wait_hist, [10, 2]);
        assert_eq!(since.locks[0].waits, 2);
        // The record was set before.
        assert_eq!(since.locks[0].wait_longest_ns, bucket_begins(11));
        // Forgotten in between: its counts began anew.
        let since = then.since(&now);
        assert_eq!(since.locks[0].waits, 6);
    }
}
