// SPDX-License-Identifier: GPL-2.0-only
//! policy/warmset.h: how many CPUs a load keeps warm.

use crate::{any_time, config, policy, sys, FULL};
use proptest::prelude::*;

const ONE: u64 = sys::WARM_ONE as u64;
const MOST: u64 = sys::FL_MAX_CPUS as u64;

prop_compose! {
    /// Any machine that the knobs allow.
    fn machine()(
        ramp_ns in 1_000..=10_000_000_000u64,
        cool_ns in 1_000..=20_000_000_000u64,
        floor in 1..=FULL,
    ) -> sys::warm_machine {
        sys::warm_machine { ramp_ns, cool_ns, floor }
    }
}

prop_compose! {
    /// Machines as there are.
    fn usual()(
        ramp_ns in 2_000_000..=100_000_000u64,
        cool_ns in 2_000_000..=100_000_000u64,
        floor in 200..800u32,
    ) -> sys::warm_machine {
        sys::warm_machine { ramp_ns, cool_ns, floor }
    }
}

/// The share of its time for which a CPU has to be busy to stay warm.
fn threshold(m: &sys::warm_machine) -> f64 {
    m.ramp_ns as f64 / (m.ramp_ns + m.cool_ns) as f64
}

/// Its speed, 0..1024, once it has been busy for this share of each tenth of a window for long.
fn settles_at(m: &sys::warm_machine, busy: f64) -> u32 {
    let model = sys::speed_model {
        ramp_ns: m.ramp_ns,
        hold_ns: 0,
        decay_ns: m.cool_ns,
        floor: m.floor,
    };
    let period = policy!(warm_window(m)) / 50;
    let ran = (period as f64 * busy) as u64;
    (0..4000).fold(FULL << sys::SPEED_SHIFT, |speed, _| {
        let fallen = policy!(speed_fall(speed, period - ran, &model));
        policy!(speed_rise(fallen, ran, &model))
    }) >> sys::SPEED_SHIFT
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn is_a_part_of_the_machine_or_all(size in 0..=2048u32, deserved in any_time(), nr in 0..=1024u32) {
        let size = policy!(warm_size(size, deserved.min(1 << 60), nr));
        prop_assert!(size == 0 || size < nr);
    }

    /// From any set that there can be: one of all CPUs is none, as the first property says.
    #[test]
    fn stays_where_it_is_if_nothing_changes(
        size in 0..=1024u32, deserved in 0..=MOST * ONE, nr in 1..=1024u32
    ) {
        let size = size % nr;
        let once = policy!(warm_size(size, deserved, nr));
        prop_assert_eq!(policy!(warm_size(once, deserved, nr)), once);
    }

    /// A load that comes and goes about a whole number does not change the set each time.
    #[test]
    fn has_hysteresis(n in 1..=1000u64, off in 0..ONE / 8) {
        let (below, above) = (n * ONE - off, n * ONE + off + 1);
        let size = policy!(warm_size(0, above, 1024));
        let smaller = policy!(warm_size(size, below, 1024));
        prop_assert_eq!(smaller, size);
    }

    #[test]
    fn has_as_many_as_the_load_deserves_and_one_more_at_most(
        size in 0..=1024u32, deserved in ONE..=MOST * ONE
    ) {
        let got = u64::from(policy!(warm_size(size, deserved, u32::MAX)));
        prop_assert!(got * ONE >= deserved);
        prop_assert!(got <= deserved.div_ceil(ONE) + 1);
    }

    /// On too few CPUs, which are never idle, the set grows by at least one, or ends.
    #[test]
    fn a_set_that_is_always_busy_grows(m in usual(), size in 1..=64u32) {
        let deserved = policy!(warm_deserved(u64::from(size) * ONE, &m));
        let next = policy!(warm_size(size, deserved, 64));
        prop_assert!(next > size || next == 0, "{next}");
    }

    /// Waiting for CPUs that are just warm, against none and cold ones: M/M/2.
    #[test]
    fn pays_where_the_queue_is_shorter_than_a_cold_cpu_is_slow(m in usual()) {
        let stay = 1.0 / (1.0 - threshold(&m).powi(2));
        let cold = f64::from(FULL) / f64::from(m.floor);
        prop_assume!((stay / cold - 1.0).abs() > 0.02);
        prop_assert_eq!(policy!(warm_pays(&m)), stay < cold);
        let fixed = sys::warm_machine { floor: FULL, ..m };
        prop_assert!(!policy!(warm_pays(&fixed)));
    }

    /// Requests and answers of a few µs are not, commands of a script are.
    #[test]
    fn confines_bursts_longer_than_a_wake_up(burst in any_time()) {
        prop_assert_eq!(policy!(warm_confines(burst)), burst > 20_000);
    }

    #[test]
    fn a_load_that_warms_no_cpu_is_not_confined(m in machine(), size in 0..=1024u32) {
        let work = (threshold(&m) * 0.74 * ONE as f64) as u64;
        let deserved = policy!(warm_deserved(work, &m));
        prop_assert_eq!(policy!(warm_size(size, deserved, 1024)), 0);
    }

    /// A chain goes where it went without a set, and two that run side by side have two warm CPUs.
    #[test]
    fn what_runs_beside_keeps_another_cpu_warm(
        a in 0..=MOST * ONE, b in 0..=MOST * ONE, least in 0..=FULL
    ) {
        let invest = |work: u64| policy!(warm_invest(work, least));
        prop_assert!(invest(a.min(b)) <= invest(a.max(b)));
        prop_assert_eq!(invest(ONE), least);
        prop_assert_eq!(invest(0), least);
        prop_assert_eq!(invest(2 * ONE), FULL);
    }

    #[test]
    fn work_is_that_of_so_many_cpus(cpus in 0..=MOST, ns in 1_000..=17_000_000_000u64) {
        let work = policy!(warm_work(cpus * ns, ns));
        prop_assert_eq!(work, cpus * ONE);
    }

    #[test]
    fn nothing_overflows(m in machine(), done in any_time(), ns in any_time(), old in 0..=MOST * ONE) {
        let window = policy!(warm_window(&m));
        let work = policy!(warm_work(done, ns));
        prop_assert!(work <= MOST * ONE);
        let average = policy!(warm_average(old, work, ns, window));
        prop_assert!((old.min(work)..=old.max(work)).contains(&average));
        let deserved = policy!(warm_deserved(average, &m));
        policy!(warm_size(1, deserved, 1024));
    }

    #[test]
    fn a_window_forgets_what_was_before(m in machine(), old in 0..=MOST * ONE, work in 0..=MOST * ONE) {
        let window = policy!(warm_window(&m));
        prop_assert_eq!(policy!(warm_average(old, work, window, window)), work);
    }

    #[test]
    fn nobody_waits_longer_than_a_slice_or_half_a_ramp(m in machine(), slice in any_time()) {
        let wait = policy!(warm_wait(&m, slice));
        prop_assert!(wait <= slice && wait <= m.ramp_ns / 2 + 1);
        let fixed = sys::warm_machine { floor: FULL, ..m };
        prop_assert_eq!(policy!(warm_wait(&fixed, slice)), 0);
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 100, ..config() })]

    /// What all of this is derived from: above the threshold warm, below it cold.
    #[test]
    fn a_cpu_is_warm_or_cold(m in usual(), off in 0.02..0.2f64) {
        let u = threshold(&m);
        if u + off < 1.0 {
            prop_assert!(settles_at(&m, u + off) >= FULL - 2);
        }
        if u - off > 0.0 {
            prop_assert!(settles_at(&m, u - off) <= m.floor + FULL / 20);
        }
    }
}
