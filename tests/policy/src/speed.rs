// SPDX-License-Identifier: GPL-2.0-only
//! policy/speed.h: the recency model and what is asked of schedutil.

use crate::{any_time, config, policy, sys, FULL};
use proptest::prelude::*;
use proptest::test_runner::Config;

/// Full speed in the model's fixed point.
const ONE: u32 = FULL << sys::SPEED_SHIFT;

prop_compose! {
    /// Any model that the knobs allow.
    fn model()(
        ramp_ns in 1_000..=10_000_000_000u64,
        hold_ns in 0..=10_000_000_000u64,
        decay_ns in 1_000..=10_000_000_000u64,
        floor in 1..=FULL,
    ) -> sys::speed_model {
        sys::speed_model { ramp_ns, hold_ns, decay_ns, floor }
    }
}

fn floor_of(m: &sys::speed_model) -> u32 {
    m.floor << sys::SPEED_SHIFT
}

/// Where a straight line over the whole span within `full_ns` leads.
fn line(m: &sys::speed_model, ns: u64, full_ns: u64) -> f64 {
    f64::from(ONE - floor_of(m)) * ns as f64 / full_ns as f64
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn stays_between_floor_and_full(m in model(), speed in 0..=ONE, ns in any_time()) {
        for after in [policy!(speed_rise(speed, ns, &m)), policy!(speed_fall(speed, ns, &m))] {
            prop_assert!((floor_of(&m)..=ONE).contains(&after));
        }
    }

    #[test]
    fn busy_never_slows_and_idle_never_speeds_up(m in model(), speed in 0..=ONE, ns in any_time()) {
        let speed = speed.max(floor_of(&m));
        prop_assert!(policy!(speed_rise(speed, ns, &m)) >= speed);
        prop_assert!(policy!(speed_fall(speed, ns, &m)) <= speed);
    }

    #[test]
    fn grows_with_speed_and_time(
        m in model(), a in 0..=ONE, b in 0..=ONE, s in any_time(), t in any_time()
    ) {
        let (a, b, s, t) = (a.min(b), a.max(b), s.min(t), s.max(t));
        prop_assert!(policy!(speed_rise(a, s, &m)) <= policy!(speed_rise(b, s, &m)));
        prop_assert!(policy!(speed_rise(a, s, &m)) <= policy!(speed_rise(a, t, &m)));
        prop_assert!(policy!(speed_fall(a, s, &m)) <= policy!(speed_fall(b, s, &m)));
        prop_assert!(policy!(speed_fall(a, s, &m)) >= policy!(speed_fall(a, t, &m)));
    }

    #[test]
    fn full_after_the_ramp_and_floor_after_the_decay(m in model(), speed in 0..=ONE) {
        prop_assert_eq!(policy!(speed_rise(speed, m.ramp_ns, &m)), ONE);
        prop_assert_eq!(policy!(speed_fall(speed, m.hold_ns + m.decay_ns, &m)), floor_of(&m));
    }

    /// Speeds follow the line of the model, to one part in a million.
    #[test]
    fn is_the_line_of_the_model(m in model(), speed in 0..=ONE, ns in 0..10_000_000_000u64) {
        let speed = speed.max(floor_of(&m));
        let up = (f64::from(speed) + line(&m, ns, m.ramp_ns)).min(f64::from(ONE));
        let down = (f64::from(speed) - line(&m, ns.saturating_sub(m.hold_ns), m.decay_ns)).max(f64::from(floor_of(&m)));
        prop_assert!((f64::from(policy!(speed_rise(speed, ns, &m))) - up).abs() <= 1.0);
        prop_assert!((f64::from(policy!(speed_fall(speed, ns, &m))) - down).abs() <= 1.0);
    }

    /// Two steps of time are one step of their sum, but for rounding.
    #[test]
    fn steps_add_up(
        m in model(), speed in 0..=ONE, a in 0..10_000_000_000u64, b in 0..10_000_000_000u64
    ) {
        let up = policy!(speed_rise(speed, a, &m));
        let twice = policy!(speed_rise(up, b, &m));
        prop_assert!(twice.abs_diff(policy!(speed_rise(speed, a + b, &m))) <= 1);
        // Each period without work has a hold of its own.
        let down = policy!(speed_fall(speed, a + m.hold_ns, &m));
        let twice = policy!(speed_fall(down, b + m.hold_ns, &m));
        prop_assert!(twice.abs_diff(policy!(speed_fall(speed, a + b + m.hold_ns, &m))) <= 1);
    }

    #[test]
    fn keeps_its_speed_for_a_while(m in model(), speed in 0..=ONE) {
        let speed = speed.max(floor_of(&m));
        prop_assert_eq!(policy!(speed_fall(speed, m.hold_ns, &m)), speed);
    }

    #[test]
    fn effective_speed_is_a_share_of_full(
        speed in 0..=ONE, capacity in 0..=FULL, busy: bool, share in 1..=FULL
    ) {
        let got = policy!(speed_effective(speed, capacity, busy, share));
        let part = f64::from(speed) / f64::from(ONE) * f64::from(capacity)
            * if busy { f64::from(share) / f64::from(FULL) } else { 1.0 };
        prop_assert!((1..=FULL).contains(&got));
        prop_assert!((f64::from(got) - part.max(1.0)).abs() <= 2.0, "{got} for {part}");
    }

    #[test]
    fn a_busy_sibling_never_helps(speed in 0..=ONE, capacity in 0..=FULL, share in 1..=FULL) {
        prop_assert!(
            policy!(speed_effective(speed, capacity, true, share))
                <= policy!(speed_effective(speed, capacity, false, share))
        );
    }

    #[test]
    fn utilisation_rises_when_busy_and_falls_when_idle(util in 0..=ONE, ns in any_time()) {
        let busy = policy!(util_update(util, ns, true));
        let idle = policy!(util_update(util, ns, false));
        prop_assert!((util..=ONE).contains(&busy));
        prop_assert!(idle <= util);
    }

    #[test]
    fn utilisation_arrives(util in 0..=ONE, more in any_time()) {
        let long = (200 * 1_000_000u64).saturating_add(more);
        prop_assert_eq!(policy!(util_update(util, long, true)), ONE);
        prop_assert_eq!(policy!(util_update(util, long, false)), 0);
    }

    #[test]
    fn asks_for_a_quarter_more_than_is_used(util in 0..=ONE) {
        let want = f64::from(util) / f64::from(ONE) * f64::from(FULL) * 1.25;
        let got = f64::from(policy!(util_request(util)));
        prop_assert!((got - want.min(f64::from(FULL))).abs() <= 1.0, "{got} for {want}");
    }
}

proptest! {
    #![proptest_config(Config { cases: 50, ..config() })]

    /// Half a second of work is seen as such, however finely it is cut.
    #[test]
    fn short_bursts_add_up(util in 0..=ONE, burst in 10_000..4_000_000u64) {
        let after = |busy| (0..500_000_000 / burst)
            .fold(util, |util, _| policy!(util_update(util, burst, busy)));
        prop_assert!(after(true) > ONE / 100 * 97);
        prop_assert!(after(false) < ONE / 100 * 3);
    }
}

/// Cycles in an interval of a millisecond to a second.
fn cycles() -> impl Strategy<Value = u64> {
    1_000_000..=10_000_000_000u64
}

const NOMINAL: u64 = sys::RATIO_ONE as u64;
const FORGETS: u64 = sys::RATIO_FORGETS_NS;

fn top(ratio: u64, at: u64) -> sys::ratio_top {
    sys::ratio_top { ratio, at }
}

proptest! {
    #![proptest_config(config())]

    /// Wherever the counters stand, also as they wrap, the ratio is that of their progress.
    #[test]
    fn ratio_is_that_of_the_progress(a: u64, m: u64, da in cycles(), dm in cycles()) {
        let mut last = sys::speed_counters { aperf: a, mperf: m };
        let (aperf, mperf) = (a.wrapping_add(da), m.wrapping_add(dm));
        let got = policy!(counters_ratio(&mut last, aperf, mperf)) as f64;
        let want = da as f64 / dm as f64 * NOMINAL as f64;
        prop_assert!((got - want).abs() <= 1.0 + want * 1e-9, "{got} {want}");
        prop_assert_eq!((last.aperf, last.mperf), (aperf, mperf));
    }

    /// What is too short counts with the next sample; counters that began anew give none.
    #[test]
    fn ratio_is_not_known_of_too_little_or_too_much(a: u64, m: u64, short in 0..10_000u64) {
        let mut last = sys::speed_counters { aperf: a, mperf: m };
        prop_assert_eq!(policy!(counters_ratio(&mut last, a.wrapping_add(5), m.wrapping_add(short))), 0);
        prop_assert_eq!((last.aperf, last.mperf), (a, m));
        let mut old = sys::speed_counters { aperf: 1 << 50, mperf: 1 << 50 };
        prop_assert_eq!(policy!(counters_ratio(&mut old, 100, 100)), 0);
        let next = policy!(counters_ratio(&mut old, 100_100, 50_100));
        prop_assert_eq!(next, 2 * NOMINAL);
    }

    /// The top is no less than what is seen now, and rises at once.
    #[test]
    fn top_is_at_least_what_is_seen(old: u32, at in any_time(), ratio: u32, now in any_time()) {
        let (old, ratio) = (u64::from(old), u64::from(ratio));
        let mut seen = top(old, at);
        let got = policy!(ratio_top_update(&mut seen, ratio, now));
        prop_assert!(got >= ratio && got <= old.max(ratio).max(NOMINAL));
        prop_assert_eq!(seen.ratio, got);
    }

    /// However often it is looked at, a top that is not reached again loses a 64th in ten
    /// seconds, and nothing in less; nominal speed stays.
    #[test]
    fn top_is_forgotten_slowly(
        factor in 1.0..8f64, step_ms in 1..20_000u64, minutes in 0..60u64
    ) {
        let first = (NOMINAL as f64 * factor) as u64;
        let mut seen = top(first, 0);
        let (mut now, end) = (0, minutes * 60_000_000_000);
        while now < end {
            now += step_ms * 1_000_000;
            policy!(ratio_top_update(&mut seen, NOMINAL / 2, now));
        }
        // Time short of a whole period is lost with each look that forgets.
        let period = FORGETS.max(step_ms * 1_000_000);
        let most = (now / FORGETS) as i32;
        let least = (now / (period + step_ms * 1_000_000)) as i32;
        let after = |steps| (first as f64 * (63.0f64 / 64.0).powi(steps)).max(NOMINAL as f64);
        let got = seen.ratio as f64;
        prop_assert!(got >= after(most) - 1.0, "{got} {}", after(most));
        prop_assert!(got <= after(least) + 64.0 * f64::from(least) + 1.0, "{got} {}", after(least));
    }
}

#[test]
fn a_false_top_is_half_forgotten_in_eight_minutes() {
    let mut seen = top(4 * NOMINAL, 0);
    for second in 1..=480 {
        policy!(ratio_top_update(&mut seen, NOMINAL, second * 1_000_000_000));
    }
    assert!(seen.ratio < 2 * NOMINAL, "{}", seen.ratio);
}
