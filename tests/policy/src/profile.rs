// SPDX-License-Identifier: GPL-2.0-only
//! policy/profile.h: the buckets of waits, held to what the agent takes them for.

use crate::{any_time, config, policy, sys};
use freqlock::histogram::bucket_begins;
use proptest::prelude::*;

const LAST: u32 = sys::FL_PROFILE_SLOTS - 1;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_time_is_in_the_bucket_that_says_so(ns in any_time()) {
        let bucket = policy!(profile_slot(ns));
        prop_assert!(bucket <= LAST);
        prop_assert!(bucket_begins(bucket.into()) <= ns);
        prop_assert!(bucket == LAST || ns < bucket_begins(u64::from(bucket) + 1));
    }
}

#[test]
fn a_bucket_is_a_quarter_of_where_it_begins() {
    for bucket in 4..u64::from(LAST) {
        let (begin, end) = (bucket_begins(bucket), bucket_begins(bucket + 1));
        assert!(begin < end && end - begin <= begin / 4, "{bucket}");
        assert_eq!(u64::from(policy!(profile_slot(begin))), bucket);
        assert_eq!(u64::from(policy!(profile_slot(end - 1))), bucket);
    }
    // Nothing that ends within minutes is in the open one.
    assert!(bucket_begins(LAST.into()) > 60_000_000_000);
}
