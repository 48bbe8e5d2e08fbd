// SPDX-License-Identifier: GPL-2.0-only
//! policy/groups.h: in which order a CPU looks for work elsewhere.

use crate::{config, policy};
use proptest::prelude::*;

/// Groups in all, and those of the own node: first, one after the last, own.
fn place() -> impl Strategy<Value = (u32, u32, u32, u32)> {
    (1u32..=256)
        .prop_flat_map(|nr| (Just(nr), 0..nr))
        .prop_flat_map(|(nr, first)| (Just(nr), Just(first), first + 1..=nr))
        .prop_flat_map(|(nr, first, end)| (Just(nr), Just(first), Just(end), first..end))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_group_comes_once_the_own_first_and_near_ones_before_far_ones(
        (nr, first, end, own) in place()
    ) {
        let order: Vec<u32> = (0..nr)
            .map(|i| policy!(group_nth(own, first, end, nr, i)))
            .collect();
        prop_assert_eq!(order[0], own);
        let near = (end - first) as usize;
        prop_assert!(order[..near].iter().all(|g| (first..end).contains(g)));
        let mut seen = order;
        seen.sort();
        prop_assert!(seen.into_iter().eq(0..nr));
    }

    #[test]
    fn what_an_agent_may_write_meanwhile_leads_nowhere_else(
        own in 0u32..256, first in 0u32..65536, end in 0u32..65536, nr in 0u32..=256, i in 0u32..256
    ) {
        let group = policy!(group_nth(own, first, end, nr, i));
        prop_assert!(group == own || group < first.max(nr) + end.abs_diff(first));
    }

    #[test]
    fn places_with_work_come_in_turns_from_the_own_on(work in 1u64.., place in 0u32..64) {
        let mut left = work;
        let mut seen = Vec::new();
        while left != 0 {
            let next = policy!(group_next(left, place));
            prop_assert!(left & 1 << next != 0);
            left &= !(1 << next);
            seen.push((next + 64 - place) % 64);
        }
        prop_assert_eq!(seen.len(), work.count_ones() as usize);
        prop_assert!(seen.is_sorted());
    }

    #[test]
    fn one_that_waits_alone_crosses_once_that_is_shorter(waited in 0u64..1 << 40, ns in 0u64..1 << 24) {
        prop_assert_eq!(policy!(group_worth_crossing(1, waited, ns)), waited >= ns);
        prop_assert!(policy!(group_worth_crossing(2, waited, ns)));
    }
}
