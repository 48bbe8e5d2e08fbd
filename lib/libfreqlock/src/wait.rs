// SPDX-License-Identifier: MIT
//! Waiting for memory to change, by spinning first, then yielding, then sleeping.
//!
//! For code that spins until another thread has done its part, which is safe only while that
//! thread runs (Andreoli and Cucinotta, "Inducing Huge Tail Latency on a MongoDB deployment"). Three stages:
//!
//! 1. *Spin* for as long as nearly all waits at this site took, if that is less than what sleeping
//!    costs; else for a microsecond (`limits.rs`).
//! 2. *Yield* the CPU again and again, for as long as that and the cost of a sleep: the other thread
//!    may be waiting for this very CPU.
//! 3. *Sleep*, for 50 us at first, then twice as long each time, up to a millisecond: a writer
//!    that does not call [`wake`] is noticed that late. Who calls it ends the sleep at once.

use crate::limits::{Learned, SLEEP_COST};
use crate::os;
use crate::spin::spin_for;
use std::sync::atomic::{AtomicU32, Ordering::Acquire};

const SLEEP_FIRST: u64 = 50_000;
const SLEEP_MOST: u64 = 1_000_000;

/// What is known of the waits at one place of a program. All zero: nothing yet.
#[derive(Debug)]
#[repr(transparent)]
pub struct WaitSite(Learned);

impl WaitSite {
    /// Of a place where nobody has waited.
    pub const fn new() -> Self {
        WaitSite(Learned::new())
    }

    /// Waits until `is_over` returns true, for `timeout` ns at most; false if it did not.
    pub fn wait_for(&self, timeout: Option<u64>, is_over: impl FnMut() -> bool) -> bool {
        self.wait(timeout, is_over, os::sleep)
    }

    /// Waits until `*word == value`, for `timeout` ns at most; false if it was not.
    pub fn wait_until(&self, word: &AtomicU32, value: u32, timeout: Option<u64>) -> bool {
        let is_over = || word.load(Acquire) == value;
        self.wait(timeout, is_over, |ns| {
            let seen = word.load(Acquire);
            if seen != value {
                os::futex_wait(word, seen, Some(ns));
            }
        })
    }

    fn wait(
        &self,
        timeout: Option<u64>,
        mut is_over: impl FnMut() -> bool,
        mut sleep: impl FnMut(u64),
    ) -> bool {
        if is_over() {
            return true;
        }
        let began = os::now();
        let most = timeout.unwrap_or(u64::MAX);
        let spin = self.0.spin();
        let mut over = spin_for(spin.min(most), &mut is_over);
        let mut waited = os::now() - began;
        while !over && waited < most.min(2 * spin + SLEEP_COST) {
            os::yield_now();
            over = is_over();
            waited = os::now() - began;
        }
        let mut ns = SLEEP_FIRST;
        while !over && waited < most {
            sleep(ns.min(most - waited));
            over = is_over();
            waited = os::now() - began;
            ns = (ns * 2).min(SLEEP_MOST);
        }
        self.0.note(waited);
        over
    }
}

impl Default for WaitSite {
    fn default() -> Self {
        Self::new()
    }
}

/// Ends the sleep of all who wait for `word`, which has been changed.
pub fn wake(word: &AtomicU32) {
    os::futex_wake(word, i32::MAX as u32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Release;
    use std::thread;
    use std::time::{Duration, Instant};

    #[test]
    fn sees_a_value_that_is_there_and_one_that_comes() {
        let (site, word) = (WaitSite::new(), AtomicU32::new(0));
        assert!(site.wait_until(&word, 0, Some(0)));
        thread::scope(|scope| {
            scope.spawn(|| assert!(site.wait_until(&word, 7, None)));
            thread::sleep(Duration::from_millis(20));
            word.store(7, Release);
        });
    }

    #[test]
    fn ends_in_time() {
        let (site, word) = (WaitSite::new(), AtomicU32::new(0));
        for timeout in [0, 1_000, 30_000, 3_000_000] {
            let began = Instant::now();
            assert!(!site.wait_until(&word, 1, Some(timeout)));
            assert!(!site.wait_for(Some(timeout), || false));
            assert!(began.elapsed() >= Duration::from_nanos(2 * timeout));
        }
    }

    #[test]
    fn sleeps_rather_than_spins_where_waits_are_long() {
        let site = WaitSite::new();
        for _ in 0..4 {
            site.wait_for(Some(1_000_000), || false);
        }
        let mut looks = 0;
        site.wait_for(Some(200_000_000), || {
            looks += 1;
            false
        });
        // A millisecond's sleep each, after less than 20 us of spinning and yielding.
        assert!(looks < 2_000, "{looks}");
    }

    #[test]
    fn wake_ends_a_sleep() {
        let (site, word) = (WaitSite::new(), AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!(site.wait_until(&word, 1, None)));
            }
            thread::sleep(Duration::from_millis(5));
            word.store(1, Release);
            wake(&word);
        });
    }
}
