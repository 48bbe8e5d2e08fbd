// SPDX-License-Identifier: GPL-2.0-only
//! policy/bandwidth.h: what a cgroup with a quota may use.

use crate::{config, policy, sys};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const MOST: u64 = 1 << 44;

proptest! {
    #![proptest_config(config())]

    /// Tasks take grants, use some of them and give the rest back, at any times.
    #[test]
    fn over_any_time_no_more_is_used_than_the_quota_of_its_periods_and_one_more_and_the_burst(
        quota in 1u64..500 * MS, period in 1u64..1000, burst in 0u64..500 * MS,
        steps in prop::collection::vec((0u64..50 * MS, 0u64..20 * MS, 0u64..=1024), 1..200)
    ) {
        let period = policy!(bandwidth_period(period * MS));
        let (mut left, mut now, mut refill_at, mut used) = (quota as i64, 0, period, 0);
        for (later, want, part) in steps {
            now += later;
            let n = policy!(bandwidth_periods(refill_at, now, period));
            refill_at += n * period;
            left += policy!(bandwidth_refill(left, n, quota, burst));
            prop_assert!(refill_at > now && refill_at <= now + period);
            prop_assert!(left <= policy!(bandwidth_most(quota, burst)));
            let grant = policy!(bandwidth_grant(left, want));
            prop_assert!(grant <= want);
            let uses = grant * part / 1024;
            left -= uses as i64;
            used += uses;
            let most = (now / period + 1) * quota + u64::from(sys::BANDWIDTH_LEAST_NS);
            prop_assert!(used <= most, "{used} of {most} ns");
        }
    }

    #[test]
    fn one_that_wants_to_run_has_a_grant_exactly_where_something_is_left(
        left in -(MOST as i64)..MOST as i64, want in 1u64..MOST
    ) {
        prop_assert_eq!(policy!(bandwidth_grant(left, want)) > 0, left > 0);
        prop_assert_eq!(policy!(bandwidth_is_used_up(left, 0)), left <= 0);
        prop_assert_eq!(policy!(bandwidth_batch(left, 64)) > 0, left > 0);
        prop_assert!(policy!(bandwidth_batch(left, 64)) <= 64);
    }

    #[test]
    fn a_debt_is_paid_in_full_up_to_a_second(
        debt in 0i64..1_000_000_000, n in 0u64..1000, quota in 1u64..500 * MS
    ) {
        let more = policy!(bandwidth_refill(-debt, n, quota, 0));
        prop_assert_eq!(more, (n * quota).min(quota + debt as u64) as i64);
        let late = policy!(bandwidth_refill(-debt - 1_000_000_000, 0, quota, 0));
        prop_assert_eq!(late, debt, "what is beyond a second is given");
    }

    #[test]
    fn a_lesser_quota_takes_what_is_beyond_it_and_a_shorter_period_ends_as_soon(
        left in -(MOST as i64)..MOST as i64, quota in 1u64..MOST, burst in 0u64..MOST,
        now in 0u64..MOST, until in 0u64..2000 * MS, period in 1u64..1000
    ) {
        let most = policy!(bandwidth_most(quota, burst));
        prop_assert_eq!(left - policy!(bandwidth_excess(left, quota, burst)), left.min(most));
        let at = policy!(bandwidth_sooner(now + until, now, period * MS));
        prop_assert_eq!(at, now + until.min(period * MS));
    }

    #[test]
    fn whatever_the_kernel_has_for_quota_and_period_is_within_bounds(
        quota in any::<u64>(), period in any::<u64>(), left in any::<i64>(), n in any::<u64>(),
        burst in any::<u64>()
    ) {
        let quota = policy!(bandwidth_quota(quota));
        prop_assert!(quota <= MOST);
        prop_assert!((MS..=1000 * MS).contains(&policy!(bandwidth_period(period))));
        let left = left >> 2;
        let after = left + policy!(bandwidth_refill(left, n, quota, burst));
        prop_assert!(after <= policy!(bandwidth_most(quota, burst)).max(left));
    }
}

#[test]
fn no_quota_is_none() {
    assert_eq!(policy!(bandwidth_quota(u64::MAX)), 0);
    for us in [u64::MAX, u64::MAX / 999] {
        assert_eq!(policy!(bandwidth_ns(us)), u64::MAX);
    }
    assert_eq!(policy!(bandwidth_ns(250)), MS / 4);
    assert_eq!(policy!(bandwidth_turn(0, 4 * MS)), MS / 10);
    assert_eq!(policy!(bandwidth_turn(2 * MS, 4 * MS)), 2 * MS);
    assert_eq!(policy!(bandwidth_turn(5 * MS, 4 * MS)), 4 * MS);
}
