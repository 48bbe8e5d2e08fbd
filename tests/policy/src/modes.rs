// SPDX-License-Identifier: GPL-2.0-only
//! policy/modes.h: the rules of the simple modes, and distances.

use crate::{any_time, config, policy, sys, FULL};
use proptest::prelude::*;

#[test]
fn fork_local_keeps_a_child_of_a_lone_parent_only() {
    assert!(policy!(forklocal_keeps_child(1)));
    assert!(!policy!(forklocal_keeps_child(2)));
    assert!(!policy!(forklocal_keeps_child(u32::MAX)));
}

#[test]
fn fork_local_keeps_a_wakee_where_at_most_one_task_is() {
    assert!(policy!(forklocal_keeps_wakee(0)));
    assert!(policy!(forklocal_keeps_wakee(1)));
    assert!(!policy!(forklocal_keeps_wakee(2)));
}

#[test]
fn a_wakee_goes_to_its_waker_where_fewer_are_before_it() {
    let goes = |here, leaves, there| policy!(waker_less_crowded(here, leaves, there));
    // Alone there, and about to leave: nobody is before it.
    assert!(goes(1, true, 1));
    assert!(!goes(2, true, 1));
    assert!(!goes(1, false, 1));
    assert!(!goes(1, false, 2));
    assert!(goes(1, false, 3));
    assert!(!goes(u32::MAX, false, u32::MAX));
}

/// Distances include each other, and a CPU is no farther from itself than from any.
#[test]
fn distance_is_the_nearest_thing_shared() {
    let at = |core, llc, node| sys::cpu_topo {
        core,
        llc,
        node,
        capacity: FULL,
        sibling: -1,
        present: 1,
        group: 0,
        place: 0,
    };
    let here = at(1, 1, 1);
    let distance = |there, same| policy!(topo_distance(&here, &there, same));
    assert_eq!(distance(here, true), sys::FL_SAME_CPU);
    assert_eq!(distance(here, false), sys::FL_SAME_CORE);
    assert_eq!(distance(at(2, 1, 1), false), sys::FL_SAME_LLC);
    assert_eq!(distance(at(2, 2, 1), false), sys::FL_SAME_NODE);
    assert_eq!(distance(at(2, 2, 2), false), sys::FL_FAR);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn smove_stays_for_a_slower_cpu_only(local in 0..=FULL, idle in 0..=FULL) {
        prop_assert_eq!(policy!(smove_stays(local, idle)), idle < local);
    }

    #[test]
    fn nest_is_warm_for_its_time_after_work(
        last in 1..1u64 << 60, since in 0..1u64 << 60, keep in any_time()
    ) {
        prop_assert_eq!(policy!(nest_is_warm(last + since, last, keep)), since < keep);
        // The clock of the CPU that stopped may be ahead.
        prop_assert_eq!(policy!(nest_is_warm(last, last + since, keep)), keep > 0);
    }

    #[test]
    fn nest_never_holds_a_cpu_that_ran_nothing(now in any_time(), keep in any_time()) {
        prop_assert!(!policy!(nest_is_warm(now, 0, keep)));
    }
}
