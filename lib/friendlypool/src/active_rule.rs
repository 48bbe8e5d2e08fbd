// SPDX-License-Identifier: MIT
//! How many workers are to be active, as a pure function.
//!
//! The rule of Jeffery, Jensen and Mortier rounds O x CPUs to count on up. Rounded up, what is
//! measured as 1.02 CPUs is two workers of which one always waits, and two pools side by side can
//! stay at 2 and 1 workers on 2 CPUs, which each confirms the other. So a worker counts from
//! about half a CPU on, with a dead band against changes to and fro.

/// An active worker goes if less than this would be left to it, CPUs.
const KEEP: f64 = 0.4;
/// One more comes if more than this is there for it, CPUs.
const ADD: f64 = 0.55;

/// Active workers from now on, 1 to `most`: `active` are so now, `cpus` can be counted on,
/// `overcommit` is how many workers there are to be for each of these.
pub(crate) fn active(active: usize, overcommit: f64, cpus: f64, most: usize) -> usize {
    let exact = overcommit * cpus;
    // A cast saturates, and of what is no number makes 0.
    let up = |above: f64| ((exact - above).ceil() as usize).clamp(1, most.max(1));
    active.clamp(up(ADD), up(KEEP))
}

#[cfg(test)]
mod tests {
    use super::active;
    use proptest::prelude::*;

    #[test]
    fn whole_cpus_are_as_many_workers() {
        for cpus in 1..=64 {
            for before in [1, cpus, 64] {
                assert_eq!(active(before, 1.0, cpus as f64, 64), cpus);
                assert_eq!(active(before, 2.0, cpus as f64 / 2.0, 64), cpus);
            }
        }
    }

    #[test]
    fn a_part_of_a_cpu_counts_from_half_on() {
        assert_eq!(active(2, 1.0, 1.02, 2), 1);
        assert_eq!(active(2, 1.0, 1.98, 2), 2);
        // Two pools with 2 and 1 workers on 2 CPUs do not stay so.
        assert_eq!(active(2, 1.0, 4.0 / 3.0, 2), 1);
        assert_eq!((active(1, 1.0, 1.5, 2), active(2, 1.0, 1.5, 2)), (1, 2));
        assert_eq!(active(1, 1.0, 1.6, 2), 2);
    }

    #[test]
    fn nonsense_is_one_worker_or_all() {
        for bad in [f64::NAN, -1.0, f64::NEG_INFINITY, 0.0] {
            assert_eq!(active(3, 1.0, bad, 4), 1, "{bad}");
            assert_eq!(active(3, bad, 4.0, 4), 1, "{bad}");
        }
        assert_eq!(active(1, 1.0, f64::INFINITY, 4), 4);
        assert_eq!(active(1, 1.0, 2.0, 0), 1);
    }

    proptest! {
        #[test]
        fn within_its_bounds_and_nearer_than_a_worker(
            before in 0usize..300, overcommit in 0.1f64..10.0, cpus in 0.0f64..600.0, most in 1usize..256,
        ) {
            let found = active(before, overcommit, cpus, most);
            prop_assert!((1..=most).contains(&found));
            let exact = (overcommit * cpus).clamp(1.0, most as f64);
            prop_assert!((found as f64 - exact).abs() < 0.6 + 1e-9, "{found} for {exact}");
        }

        #[test]
        fn more_cpus_are_never_fewer_workers(
            before in 1usize..64, cpus in 0.0f64..64.0, more in 0.0f64..8.0,
        ) {
            prop_assert!(active(before, 1.0, cpus, 64) <= active(before, 1.0, cpus + more, 64));
        }

        #[test]
        fn the_same_again_changes_nothing(before in 1usize..64, cpus in 0.0f64..64.0) {
            let once = active(before, 1.0, cpus, 64);
            prop_assert_eq!(active(once, 1.0, cpus, 64), once);
        }

        #[test]
        fn noise_of_a_twentieth_does_not_make_it_swing(before in 1usize..64, cpus in 0.0f64..64.0) {
            let low = active(before, 1.0, cpus, 64);
            let high = active(low, 1.0, cpus + 0.07, 64);
            prop_assert_eq!(active(high, 1.0, cpus, 64), high);
        }
    }
}
