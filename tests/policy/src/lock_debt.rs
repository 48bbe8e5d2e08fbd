// SPDX-License-Identifier: GPL-2.0-only
//! policy/lock_debt.h: what tasks owe for locks that they held while others waited.

use crate::{any_time, config, policy, sys};
use proptest::prelude::*;

const LEAST: u64 = sys::DEBT_LEAST_NS as u64;
const TOP: u32 = sys::LEVEL_MAX;
/// The most that the knob lock_debt_us allows, ns.
const MOST: u64 = 1_000_000_000;

/// A moment of a machine's life: clocks count from the boot, ns.
fn moment() -> impl Strategy<Value = u64> {
    MOST..1 << 62
}

proptest! {
    #![proptest_config(config())]

    /// Whatever is held by whom, no debt is above the knob's.
    #[test]
    fn a_debt_is_bounded(
        until: u64, since: u64, now: u64, weight: u64, waiting in any_time(), most in 0..=MOST
    ) {
        let after = policy!(debt_after(until, since, now, weight, waiting, most));
        prop_assert!(policy!(debt_left(after, now)) <= most);
    }

    /// It fades by itself, as fast as time passes, and is gone after that.
    #[test]
    fn a_debt_fades(until in moment(), now in moment(), passed in 0..2 * MOST) {
        let before = policy!(debt_left(until, now));
        prop_assert_eq!(policy!(debt_left(until, now + passed)), before.saturating_sub(passed));
    }

    /// A hold makes it no less, and one for which nobody waited none.
    #[test]
    fn a_hold_does_not_pay(
        now in moment(), held in 0..MOST, owed in 0..MOST, weight in 1..100_000u64, waiting in 0..10_000_000u64
    ) {
        let since = now - held;
        let after = policy!(debt_after(since + owed, since, now, weight, waiting, MOST));
        prop_assert!(policy!(debt_left(after, now)) >= owed);
        if waiting == 0 {
            prop_assert_eq!(policy!(debt_left(after, now)), owed);
        }
    }

    /// A longer hold, or waiters of more weight, cost no less; more weight of its own no more.
    #[test]
    fn it_grows_with_the_hold_and_falls_with_the_weight(
        held in any_time(), more in 0..MOST, weight in 1..100_000u64, waiting in 0..10_000_000u64, most in 0..=MOST
    ) {
        let cost = |held, weight, waiting| policy!(debt_of_hold(held, weight, waiting, most));
        let base = cost(held, weight, waiting);
        prop_assert!(cost(held.saturating_add(more), weight, waiting) >= base);
        prop_assert!(cost(held, weight, waiting + more % 1000) >= base);
        prop_assert!(cost(held, weight + more % 1000, waiting) <= base);
    }

    /// All that wait count, with their weights.
    #[test]
    fn waiters_count_by_weight(counts in prop::collection::vec((0..=TOP, 0..1000u32), 0..8)) {
        // SAFETY: a slot is made of integers, and all 0 is one that nobody uses.
        let mut slot: sys::lock_slot = unsafe { std::mem::zeroed() };
        let mut sum = 0;
        for (level, n) in counts {
            sum += u64::from(n) * policy!(weight_of_level(level));
            slot.waiting[level as usize] += n;
        }
        prop_assert_eq!(policy!(levels_weight(&slot)), sum);
    }

    /// Whoever comes back in time is never held back, however long its holds are.
    #[test]
    fn who_stays_away_for_its_debt_is_left_alone(now in moment(), owed in 0..MOST, late in 0..MOST) {
        let until = now + owed;
        prop_assert!(!policy!(debt_delays(until, until + late)));
        prop_assert_eq!(policy!(debt_delays(until, now)), owed >= LEAST);
    }

    /// Two tasks that want one lock all the time, each barging in whenever it may, with sections
    /// of any two lengths and any two weights: each has the lock for its weight's part of the
    /// time, within the length of a few sections.
    #[test]
    fn lock_time_is_shared_by_weight(
        sections in [100_000..2_000_000u64, 100_000..2_000_000u64],
        weights in prop::sample::select(vec![[1024, 1024], [1024, 512], [335, 1024]])
    ) {
        let mut until = [0; 2];
        let mut back = [MOST; 2];
        let mut held = [0u64; 2];
        let mut now = MOST;
        let mut last = 0;
        while now < 5 * MOST {
            // The one that had it last is faster, unless it is held back.
            let mut who: usize = if back[last] <= now { last } else { 1 - last };
            if back[who] > now {
                now = back[0].min(back[1]);
                who = usize::from(back[1] < back[0]);
            }
            // The other waits from when it is there.
            let end = now + sections[who];
            let since = back[1 - who].max(now);
            held[who] += sections[who];
            if since < end {
                let (weight, waiting) = (weights[who], weights[1 - who]);
                let early = policy!(debt_delays(until[who], since));
                until[who] = policy!(debt_after(until[who], since, end, weight, waiting, MOST));
                if early {
                    back[who] = until[who];
                }
            }
            now = end;
            last = who;
        }
        let share = held[0] as f64 / (held[0] + held[1]) as f64;
        let right = weights[0] as f64 / (weights[0] + weights[1]) as f64;
        prop_assert!((share - right).abs() < 0.05, "{share} rather than {right}");
    }
}
