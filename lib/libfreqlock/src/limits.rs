// SPDX-License-Identifier: MIT
//! How long to spin before sleeping, learned from how long waits last.
//!
//! Who spins for as long as sleeping and waking costs, then sleeps, pays at most twice what
//! the best choice would have cost in hindsight (Karlin, Manasse, McGeoch and Owicki,
//! "Competitive Randomized Algorithms for Nonuniform Problems", SODA 1990, which also gives the
//! improvement by what is known of the waits). Where waits are known to be short, spinning until
//! nearly all of them are over is better; where they are known to be long, spinning is wasted.

use crate::sync::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// What a sleep and the wake-up after it cost both sides together, about.
pub(crate) const SLEEP_COST: u64 = 10_000;
/// Spinning that is tried whatever is known, so that shorter waits are noticed.
pub(crate) const SPIN_LEAST: u64 = 1_000;
/// How often who is not the head spins for SPIN_LEAST, at most and while the head is awake: as long
/// as some holds of microseconds and their handoffs take. With half of it most of eight threads,
/// each on a CPU of its own, slept, and the lock had a third of the throughput.
pub(crate) const QUEUE_SPINS: u32 = 50;
/// Where nearly all waits end within this, spinning is worth it.
const SPIN_MOST: u64 = 2 * SLEEP_COST;
/// Longer waits count as this, so that one behind a preempted holder is soon forgotten.
const SAMPLE_MOST: u64 = 4 * SLEEP_COST;

/// Mean and mean deviation of waits in ns, 16 bits each; all zero: nothing is known.
/// Updates that race may lose one another: each is a sample of many.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Learned(AtomicU32);

impl Learned {
    crate::sync::const_in_std! {
        /// Nothing is known.
        pub(crate) fn new() -> Self {
            Learned(AtomicU32::new(0))
        }
    }

    /// A wait is over that lasted for `ns`. The averages move as those of TCP's round trips do (RFC 6298).
    pub(crate) fn note(&self, ns: u64) {
        let sample = ns.clamp(1, SAMPLE_MOST) as i64;
        let (mean, deviation) = self.get();
        let (mean, deviation) = if mean == 0 {
            (sample, sample / 2)
        } else {
            let off = sample - mean;
            (mean + off / 8, deviation + (off.abs() - deviation) / 4)
        };
        self.0
            .store((mean as u32) << 16 | deviation as u32, Relaxed);
    }

    /// Within how many ns nearly all waits end, or what to try where few do.
    pub(crate) fn spin(&self) -> u64 {
        let (mean, deviation) = self.get();
        let nearly_all = (mean + 2 * deviation) as u64;
        match nearly_all {
            0 => SLEEP_COST,
            1..=SPIN_MOST => nearly_all.max(SPIN_LEAST),
            _ => SPIN_LEAST,
        }
    }

    fn get(&self) -> (i64, i64) {
        let packed = self.0.load(Relaxed);
        (i64::from(packed >> 16), i64::from(packed & 0xffff))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn after(waits: &[u64]) -> u64 {
        let learned = Learned::new();
        waits.iter().for_each(|&ns| learned.note(ns));
        learned.spin()
    }

    #[test]
    fn nothing_known_is_what_sleeping_costs() {
        assert_eq!(after(&[]), SLEEP_COST);
    }

    #[test]
    fn short_waits_are_spun_out() {
        let spin = after(&[3_000; 50]);
        assert!((3_000..4_000).contains(&spin), "{spin}");
    }

    #[test]
    fn long_waits_are_slept_out() {
        assert_eq!(after(&[200_000; 50]), SPIN_LEAST);
    }

    #[test]
    fn one_long_wait_among_short_ones_is_soon_forgotten() {
        let mut waits = vec![2_000; 50];
        waits.push(10_000_000);
        waits.extend([2_000; 20]);
        assert!(after(&waits) < 2 * SLEEP_COST && after(&waits) > 2_000);
    }

    proptest! {
        #[test]
        fn limits_are_bounded_whatever_was_seen(waits in prop::collection::vec(any::<u64>(), 0..100)) {
            let spin = after(&waits);
            prop_assert!((SPIN_LEAST..=2 * SLEEP_COST).contains(&spin));
        }
    }
}
