// SPDX-License-Identifier: GPL-2.0-only
//! policy/balance.h: what waits at a CPU, and which task goes elsewhere.

use crate::{config, policy};
use proptest::prelude::*;

const MOST_NS: u64 = 1 << 30;
const MOST_WEIGHT: u64 = 1 << 18;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn work_and_weights_add_up_apart_and_to_nothing_in_any_order(
        tasks in prop::collection::vec((0..=MOST_NS, 1..=MOST_WEIGHT), 1..1000), turned in 0usize..1000
    ) {
        let entries: Vec<u64> = tasks.iter().map(|&(ns, weight)| policy!(queued_entry(ns, weight))).collect();
        let mut sum = 0u64;
        for entry in &entries {
            prop_assert!(*entry != 0);
            sum = sum.wrapping_add(*entry);
        }
        prop_assert_eq!(policy!(queued_weight(sum)), tasks.iter().map(|t| t.1).sum::<u64>());
        let ns = tasks.iter().map(|t| t.0).sum::<u64>();
        let got = policy!(queued_ns(sum));
        prop_assert!(got <= ns && ns - got < 64 * tasks.len() as u64, "{} of {}", got, ns);
        for i in 0..entries.len() {
            sum = sum.wrapping_sub(entries[(i + turned) % entries.len()]);
        }
        prop_assert_eq!(sum, 0);
    }

    #[test]
    fn one_that_weighs_too_much_or_nothing_counts_as_the_next_that_does_not(
        ns in 0u64.., weight in prop_oneof![Just(0u64), 1u64..100, 1u64..]
    ) {
        let entry = policy!(queued_entry(ns, weight));
        prop_assert_eq!(policy!(queued_weight(entry)), weight.clamp(1, MOST_WEIGHT));
        prop_assert!(policy!(queued_ns(entry)) <= MOST_NS);
        prop_assert_eq!(policy!(load_weight(weight)), weight.clamp(1, MOST_WEIGHT));
    }

    #[test]
    fn of_equal_tasks_one_goes_where_two_more_are(from in 0u64..4096, here in 0u64..4096, weight in 1u64..=MOST_WEIGHT) {
        let room = policy!(balance_room(from * weight, here * weight));
        prop_assert_eq!(weight < room, from >= here + 2);
    }

    /// 30 ns for each task that is looked at, and then no look for so long.
    #[test]
    fn looks_in_vain_take_little_of_the_time(nr in 0..=i32::MAX) {
        let look = 30 * nr as u64;
        let pause = policy!(vain_ns(nr));
        prop_assert!(nr > 16 || pause == 0);
        prop_assert!(nr <= 16 || 64 * look == pause);
    }

    #[test]
    fn what_goes_makes_the_greater_load_less_and_never_comes_back(
        others in 0u64..1 << 28, here in 0u64..1 << 28, weight in 1u64..=MOST_WEIGHT
    ) {
        let from = others + weight;
        if weight < policy!(balance_room(from, here)) {
            prop_assert!(others.max(here + weight) < from.max(here));
            prop_assert!(weight >= policy!(balance_room(here + weight, others)));
        }
    }
}
