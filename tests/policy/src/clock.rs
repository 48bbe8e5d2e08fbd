// SPDX-License-Identifier: GPL-2.0-only
//! Clocks that go back or jump: elapsed(), and what policy/deadline.h makes of such times.

use crate::{any_time, config, policy, sys};
use proptest::prelude::*;

const FAR: i64 = 1 << 62;

/// From one look at a clock to the next: on, a little back, or a jump.
fn step() -> impl Strategy<Value = i64> {
    prop_oneof![
        0..100_000_000i64,
        -100_000..0i64,
        Just(FAR),
        Just(-FAR),
        -FAR..=FAR,
    ]
}

/// A time from which no such step wraps.
fn time() -> impl Strategy<Value = u64> {
    FAR as u64..1 << 63
}

fn weight() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(sys::WEIGHT_IDLE as u64),
        (100..=139).prop_map(|prio| policy!(weight_of_prio(prio)))
    ]
}

proptest! {
    #![proptest_config(config())]

    /// Whatever the clocks of two CPUs say, near each other or not, up to half of their range.
    #[test]
    fn no_time_is_negative(from: u64, to: u64, near in time(), step in step()) {
        prop_assert_eq!(policy!(elapsed(from, to)), (to.wrapping_sub(from) as i64).max(0) as u64);
        let then = near.wrapping_add(step as u64);
        prop_assert_eq!(policy!(elapsed(near, then)), step.max(0) as u64);
    }

    /// Any two clocks, half of their range apart or more.
    #[test]
    fn lag_is_bounded_wherever_the_clocks_are(
        vtime: u64, vclock: u64, lag in 0..1_000_000_000u64, slice in 100_000..100_000_000u64,
        weight in weight()
    ) {
        let credit = policy!(vtime_charge(lag, weight)) as i64;
        let debt = policy!(vtime_charge(lag.max(slice), weight)) as i64;
        let ahead = policy!(vtime_clamp(vtime, vclock, lag, slice, weight)).wrapping_sub(vclock) as i64;
        prop_assert!((-credit..=debt).contains(&ahead), "{ahead}");
    }

    /// Asleep beside a clock that went back or jumped, nobody earns anything.
    #[test]
    fn sleep_earns_nothing_whatever_passed(ahead: i64, passed in any_time()) {
        let after = policy!(lag_at_wake(ahead as u64, passed)) as i64;
        prop_assert!(after <= ahead.max(0));
        prop_assert!(after >= ahead.min(0));
    }

    #[test]
    fn nobody_is_late_since_a_moment_to_come(
        since in time(), step in step(), starves_ms in 10..=20_000i64
    ) {
        let starves = starves_ms * 1_000_000;
        let now = since.wrapping_add(step as u64);
        prop_assert_eq!(policy!(is_late(since, now, starves as u64)), step >= starves / 2);
        let first = policy!(late_goes_first(since, now, starves as u64, true));
        prop_assert_eq!(first, step >= starves - starves / 4);
    }

    /// A task that runs by such a clock, turn after turn: its lag, its deadline, its request
    /// and the clock of its CPU stay within their bounds, and what it was served does not wrap.
    #[test]
    fn a_task_by_a_bad_clock_stays_within_bounds(
        start in time(), steps in prop::collection::vec(step(), 1..20), vclock: u64,
        lag in 0..1_000_000_000u64, slice in 100_000..100_000_000u64, weight in weight()
    ) {
        let credit = policy!(vtime_charge(lag, weight)) as i64;
        let debt = policy!(vtime_charge(lag.max(slice), weight)) as i64;
        let turn = policy!(vtime_charge(slice, weight)) as i64;
        let (mut vtime, mut vclock, mut served, mut request) = (vclock, vclock, 0u64, slice);
        for step in steps {
            let ran = policy!(elapsed(start, start.wrapping_add(step as u64)));
            let cost = policy!(vtime_charge(ran, weight));
            served = policy!(served_faded(served, ran)).checked_add(cost).unwrap();
            request = policy!(request_left(request, ran, slice));
            prop_assert!(request <= slice);
            vtime = policy!(vtime_clamp(vtime.wrapping_add(cost), vclock, lag, slice, weight));
            let deadline = policy!(vtime_deadline(vtime, request, slice, weight));
            let due = deadline.wrapping_sub(vclock) as i64;
            prop_assert!((-credit..=debt + turn).contains(&due), "{due}");
            let after = policy!(vclock_after(vclock, vtime, vtime));
            prop_assert!((0..=debt).contains(&(after.wrapping_sub(vclock) as i64)));
            vclock = after;
        }
    }
}
