// SPDX-License-Identifier: GPL-2.0-only
//! policy/learn.h: what is learned of bursts and leaving.

use crate::{any_time, config, policy, sys, FULL};
use proptest::prelude::*;

const MAX: u64 = sys::LEARN_MAX_NS as u64;
const SLOTS: u32 = sys::FL_HIST_SLOTS;

/// Steps after which an average must have forgotten its past: 0.75^100 < 1e-12.
const MANY: usize = 100;

/// A quarter of a number rounds down by at most 3/4: what stays of the past.
const ROUNDING: u64 = 4;

fn learned(samples: impl Iterator<Item = u64>) -> sys::learned {
    let mut l = sys::learned { avg: 0, dev: 0 };
    for sample in samples {
        policy!(learn_time(&mut l, sample));
    }
    l
}

proptest! {
    #![proptest_config(config())]

    /// What was seen of an idle CPU, however wrong, is forgotten within 67 ms.
    #[test]
    fn an_idle_exit_fades_to_the_usual(seen in any_time(), usual in 0..1_000_000u64, a in any_time(), b in any_time()) {
        let seen = seen.min(1_000_000);
        let exit = |past| policy!(learn_exit(seen, past, usual));
        let (a, b) = (a.min(b), a.max(b));
        prop_assert!(exit(b) <= exit(a));
        prop_assert_eq!(exit(0), if seen == 0 { usual } else { seen });
        prop_assert_eq!(exit(1 << 26), if seen == 0 { usual } else { seen.min(usual) });
    }

    #[test]
    fn average_is_between_old_and_new(old in 1..=MAX, sample in any_time()) {
        let got = policy!(learn_average(old, sample));
        let sample = sample.clamp(1, MAX);
        prop_assert!((old.min(sample)..=old.max(sample)).contains(&got));
    }

    #[test]
    fn the_first_sample_is_taken_whole(sample in any_time()) {
        prop_assert_eq!(policy!(learn_average(0, sample)), sample.clamp(1, MAX));
    }

    #[test]
    fn average_converges(old in 1..=MAX, sample in any_time()) {
        let got = (0..MANY).fold(old, |avg, _| policy!(learn_average(avg, sample)));
        prop_assert!(got.abs_diff(sample.clamp(1, MAX)) <= ROUNDING, "{got}");
    }

    /// One outlier moves it by no more than a quarter of the difference.
    #[test]
    fn an_outlier_counts_for_a_quarter(old in 1..=MAX, sample in any_time()) {
        let got = policy!(learn_average(old, sample));
        prop_assert!(got.abs_diff(old) <= old.abs_diff(sample.clamp(1, MAX)) / 4 + 1);
    }

    #[test]
    fn average_grows_with_the_sample(old in 0..=MAX, a in any_time(), b in any_time()) {
        let (a, b) = (a.min(b), a.max(b));
        prop_assert!(policy!(learn_average(old, a)) <= policy!(learn_average(old, b)));
    }

    /// What is always alike is expected to be so again, with nothing added.
    #[test]
    fn a_steady_time_has_no_deviation(first in 1..=MAX, steady in 1..=MAX) {
        let l = learned(std::iter::once(first).chain(std::iter::repeat_n(steady, MANY)));
        prop_assert!(policy!(learn_most(&l)).abs_diff(steady) <= 3 * ROUNDING);
    }

    /// Of times that take turns some are later than the average: more is expected.
    #[test]
    fn what_varies_is_expected_later_than_its_average(low in 1000..MAX / 4, far in 2..4u64) {
        let high = low * far;
        let l = learned([low, high].into_iter().cycle().take(MANY * 2));
        prop_assert!(policy!(learn_most(&l)) > (low + high) / 2, "{l:?}");
        prop_assert!(u64::from(l.dev) <= high - low, "{l:?}");
    }

    #[test]
    fn deviation_stays_in_bounds(samples in prop::collection::vec(any_time(), 1..50)) {
        let l = learned(samples.iter().copied());
        let (avg, dev) = (u64::from(l.avg), u64::from(l.dev));
        prop_assert!((1..=MAX).contains(&avg) && dev <= MAX, "{l:?}");
        prop_assert_eq!(policy!(learn_most(&l)), avg + dev);
    }

    #[test]
    fn a_known_burst_ends_when_expected(burst in any_time(), ran in any_time()) {
        let rest = policy!(learn_rest(burst, ran));
        if ran < burst {
            prop_assert_eq!(rest, burst - ran);
        } else {
            prop_assert!(rest >= ran, "a burst that outlived its average is not about to end");
        }
    }

    #[test]
    fn work_is_time_at_speed(ran in 0..(1u64 << 50), speed in 0..=FULL) {
        let want = (u128::from(ran) * u128::from(speed) / u128::from(FULL)) as u64;
        prop_assert_eq!(policy!(work_of(ran, speed)), want);
    }

    #[test]
    fn work_never_wraps(a in any_time(), b in any_time(), speed in 0..=FULL) {
        let (a, b) = (a.min(b), a.max(b));
        prop_assert!(policy!(work_of(a, speed)) <= policy!(work_of(b, speed)));
        prop_assert!(policy!(work_of(a, speed)) <= a);
    }

    /// Slot 0 is below a microsecond, slot n is [2^(n-1), 2^n) us, the last is open.
    #[test]
    fn slots_are_powers_of_two_of_microseconds(ns in any_time()) {
        let want = match ns / 1000 {
            0 => 0,
            us => (us.ilog2() + 1).min(SLOTS - 1),
        };
        prop_assert_eq!(policy!(hist_slot(ns)), want);
    }
}
