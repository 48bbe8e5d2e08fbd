// SPDX-License-Identifier: GPL-2.0-only
//! policy/donate.h: what flows along the wait-for graph, and its bounds.

use crate::{any_time, config, policy, sys, FULL};
use proptest::prelude::*;

const TOP: u32 = sys::LEVEL_MAX;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn donation_never_lowers_a_weight(weight in 1..100_000u64, level in 0..=TOP) {
        let got = policy!(donate_weight(weight, level));
        prop_assert_eq!(got, weight.max(policy!(weight_of_level(level))));
    }

    /// Nor does it make a deadline later, or earlier than the CPU's clock.
    #[test]
    fn donation_never_delays(
        own in -1i64 << 60..1 << 60, vclock: u64, request in any_time(), slice in 1..100_000_000u64,
        level in 0..=TOP
    ) {
        let weight = policy!(donate_weight(1, level));
        let own = vclock.wrapping_add(own as u64);
        let got = policy!(donate_deadline(own, vclock, request, slice, weight));
        prop_assert!(!policy!(vtime_before(own, got)));
        prop_assert!(got == own || !policy!(vtime_before(got, vclock)));
    }

    /// The bound of a hold is one of the two, and the greater one for an inversion alone.
    #[test]
    fn only_an_inversion_gets_more_than_a_short_hold_does(
        level in 1..=TOP, own in 1..=TOP, keep in any_time(), most in any_time()
    ) {
        let bound = policy!(donate_most(level, own, keep, most));
        prop_assert_eq!(bound, if level > own { most } else { keep.min(most) });
    }

    /// However it is spent, no more than the start and the share of the time.
    #[test]
    fn an_allowance_is_a_share_of_time(
        share in 0..=u64::from(FULL),
        most in 1..10_000_000u64,
        steps in prop::collection::vec((0..20_000_000u64, 0..20_000_000u64), 1..50)
    ) {
        let (mut have, mut time, mut spent) = (most, 0u64, 0u64);
        for (passed, want) in steps {
            have = policy!(allowance_fill(have, passed, share, most));
            time += passed;
            prop_assert!(have <= most);
            let now = want.min(have);
            have = policy!(allowance_spend(have, now));
            spent += now;
            prop_assert!(spent <= most + time * share / u64::from(FULL));
        }
    }

    #[test]
    fn an_allowance_never_wraps(have in any_time(), t in any_time(), share in 0..=u64::from(FULL), most in any_time()) {
        prop_assert!(policy!(allowance_fill(have, t, share, most)) <= most);
        prop_assert!(policy!(allowance_spend(have, t)) <= have);
    }
}
