// SPDX-License-Identifier: GPL-2.0-only
//! How long to spin for a lock before sleeping, from how long it was held once somebody waited.
//!
//! Who waits pays for each ns that it spins, and for a sleep and the wake-up after it if the
//! lock is not free by then. The limit is the one for which the sum of both would have been least
//! for the holds that were seen (Karlin, Manasse, McGeoch and Owicki, "Competitive Randomized
//! Algorithms for Nonuniform Problems", SODA 1990). libfreqlock learns the same by itself, from its
//! own waits (lib/libfreqlock/src/limits.rs); other locks have to be told.

use crate::histogram::{bucket_begins, buckets};

/// What a sleep and the wake-up after it cost both sides together, about, ns; as libfreqlock has it.
const SLEEP_COST_NS: u64 = 10_000;
/// Nobody is to spin for longer, ns.
const SPIN_MOST_NS: u64 = 2 * SLEEP_COST_NS;
/// Fewer holds say too little.
const HOLDS_LEAST: u64 = 100;

/// What to do with one lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpinLimit {
    /// Spin for so long, ns, then sleep; 0: sleep at once.
    pub spin_ns: u64,
    /// Of the sleeps that there were, those that it would have saved, %.
    pub saves_percent: u64,
}

impl SpinLimit {
    /// For holds as in a histogram; none of too few.
    pub fn of(holds: &[u64]) -> Option<Self> {
        let total: u64 = buckets(holds).map(|(_, n)| n).sum();
        if total < HOLDS_LEAST {
            return None;
        }
        let ends = buckets(holds).map(|(bucket, _)| bucket_begins(bucket + 1));
        let limits = std::iter::once(0).chain(ends.filter(|end| *end <= SPIN_MOST_NS));
        let spin_ns = limits.min_by_key(|spin| cost(holds, *spin))?;
        let saved: u64 = buckets(holds)
            .filter(|(bucket, _)| bucket_begins(bucket + 1) <= spin_ns)
            .map(|(_, n)| n)
            .sum();
        Some(Self {
            spin_ns,
            saves_percent: 100 * saved / total,
        })
    }
}

/// What the waiters of all these holds would have paid with the limit `spin`, ns.
fn cost(holds: &[u64], spin: u64) -> u128 {
    buckets(holds)
        .map(|(bucket, n)| {
            let held = bucket_begins(bucket + 1);
            let each = if held <= spin {
                held
            } else {
                spin + SLEEP_COST_NS
            };
            u128::from(each) * u128::from(n)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The first bucket that begins at `ns` or later.
    fn bucket(ns: u64) -> u64 {
        (0..).find(|bucket| bucket_begins(*bucket) >= ns).unwrap()
    }

    #[test]
    fn short_holds_are_spun_out_and_long_ones_slept_out() {
        let limit = SpinLimit::of(&[bucket(2_000), 1000]).unwrap();
        assert!((2_000..3_000).contains(&limit.spin_ns), "{limit:?}");
        assert_eq!(limit.saves_percent, 100);
        let limit = SpinLimit::of(&[bucket(200_000), 1000]).unwrap();
        assert_eq!((limit.spin_ns, limit.saves_percent), (0, 0));
    }

    #[test]
    fn of_a_mixture_the_short_ones_are_spun_out_if_they_are_enough() {
        let mixed = |short, long| SpinLimit::of(&[bucket(1_000), short, bucket(500_000), long]);
        let limit = mixed(310, 690).unwrap();
        assert!((1_000..2_000).contains(&limit.spin_ns), "{limit:?}");
        assert_eq!(limit.saves_percent, 31);
        assert_eq!(mixed(50, 950).unwrap().spin_ns, 0);
    }

    #[test]
    fn few_holds_say_nothing() {
        assert_eq!(SpinLimit::of(&[]), None);
        assert_eq!(SpinLimit::of(&[bucket(2_000), HOLDS_LEAST - 1]), None);
    }

    proptest! {
        #[test]
        fn no_limit_would_have_cost_less(
            holds in prop::collection::btree_map(0..127u64, 1..100_000u64, 1..20), other in 0..=SPIN_MOST_NS
        ) {
            let holds: Vec<u64> = holds.into_iter().flat_map(|(bucket, n)| [bucket, n]).collect();
            if let Some(limit) = SpinLimit::of(&holds) {
                prop_assert!(limit.spin_ns <= SPIN_MOST_NS);
                prop_assert!(cost(&holds, limit.spin_ns) <= cost(&holds, other));
                prop_assert!(limit.saves_percent <= 100);
            }
        }
    }
}
