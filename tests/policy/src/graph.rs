// SPDX-License-Identifier: GPL-2.0-only
//! policy/graph.h: levels, slots, edges and chains of the wait-for graph.

use crate::{config, policy, sys};
use proptest::prelude::*;

const SLOTS: usize = sys::FL_MAX_LOCKS as usize;
const HOPS: usize = sys::CHAIN_HOPS as usize;
const TOP: u32 = sys::LEVEL_MAX;

/// Fewer than there are, to be quick; the tests use the first ones.
fn slots() -> Vec<sys::lock_slot> {
    // SAFETY: a slot is made of integers, and all 0 is one that nobody uses.
    vec![unsafe { std::mem::zeroed() }; 2 * HOPS]
}

fn level() -> impl Strategy<Value = u32> {
    1..=TOP
}

/// Locks 0..n, each held by a task that waits for the next one.
fn chain(n: usize) -> Vec<sys::lock_slot> {
    let mut slots = slots();
    let all = slots.as_mut_ptr();
    for i in 0..n - 1 {
        let edge = policy!(edge_to(i as u32 + 1, 0));
        policy!(chain_link(all, i as u32, edge));
    }
    slots
}

fn best(slot: &sys::lock_slot) -> u32 {
    policy!(levels_best(slot))
}

fn is_empty(slot: &sys::lock_slot) -> bool {
    slot.mask == 0 && slot.waiting.iter().all(|n| *n == 0)
}

#[test]
fn levels_are_nice_values_in_order() {
    for nice in -20..=19 {
        let prio = sys::PRIO_NICE_0 as i32 + nice;
        let level = policy!(level_of_prio(prio));
        assert!((sys::LEVEL_NICE_19..=TOP).contains(&level));
        assert_eq!(
            policy!(weight_of_level(level)),
            policy!(weight_of_prio(prio))
        );
        assert!(level > policy!(level_of_prio(prio + 1)) || nice == 19);
    }
    assert_eq!(policy!(level_of_prio(i32::MIN)), TOP);
    assert_eq!(policy!(level_of_prio(i32::MAX)), sys::LEVEL_NICE_19);
    assert_eq!(policy!(weight_of_level(0)), 0);
    assert_eq!(
        policy!(weight_of_level(sys::LEVEL_IDLE)),
        u64::from(sys::WEIGHT_IDLE)
    );
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_highest_bit_is_found(v in 1..u64::MAX) {
        prop_assert_eq!(policy!(highest_bit(v)), v.ilog2());
    }

    /// Whoever comes and goes, in whatever order: the best of those who are there.
    #[test]
    fn the_best_level_is_that_of_the_best_waiter(
        steps in prop::collection::vec((level(), any::<prop::sample::Index>(), any::<bool>()), 1..100)
    ) {
        let mut slot = slots()[0];
        let mut there = Vec::new();
        for (level, who, leaves) in steps {
            if leaves && !there.is_empty() {
                policy!(levels_remove(&mut slot, there.swap_remove(who.index(there.len()))));
            } else {
                policy!(levels_add(&mut slot, level));
                there.push(level);
            }
            prop_assert_eq!(best(&slot), there.iter().copied().max().unwrap_or(0));
        }
        for level in there {
            policy!(levels_remove(&mut slot, level));
        }
        prop_assert!(is_empty(&slot));
    }

    /// A waiter of the first lock reaches the holders of all that follow, up to
    /// the limit of hops, and leaves nothing behind.
    #[test]
    fn donation_flows_along_a_chain_and_ends(n in 2..HOPS + 4, a in level(), b in level()) {
        let mut slots = chain(n);
        let all = slots.as_mut_ptr();
        let reached = n.min(HOPS + 1);
        for (level, want) in [(a, a), (b, a.max(b))] {
            policy!(levels_add(all, level));
            let hops = policy!(chain_update(all, 0)) as usize;
            prop_assert!(hops <= HOPS);
            for slot in &slots[..reached] {
                prop_assert_eq!(best(slot), want);
            }
        }
        for (level, want) in [(a, b), (b, 0)] {
            policy!(levels_remove(all, level));
            policy!(chain_update(all, 0));
            for slot in &slots[..reached] {
                prop_assert_eq!(best(slot), want);
            }
        }
        prop_assert!(slots[reached..].iter().all(is_empty));
    }

    /// Who waits for the first lock waits for the holder of the last one, as far as is looked.
    #[test]
    fn the_last_holder_of_a_chain_is_found(n in 2..HOPS + 4, from in 0..HOPS + 2) {
        let mut slots = chain(n);
        for (i, slot) in slots.iter_mut().enumerate() {
            slot.owner = 100 + i as u64;
        }
        let from = from % n;
        let edge = policy!(edge_to(from as u32, 0));
        let last = (n - 1).min(from + HOPS - 1) as u64;
        prop_assert_eq!(policy!(chain_end(slots.as_ptr(), edge)), 100 + last);
        prop_assert_eq!(policy!(chain_end(slots.as_ptr(), 0)), 0);
    }

    /// A holder that waits no more gives nothing on.
    #[test]
    fn a_link_that_is_cut_takes_its_donation_along(n in 2..HOPS, cut in 0..HOPS, a in level()) {
        let cut = cut % (n - 1);
        let mut slots = chain(n);
        let all = slots.as_mut_ptr();
        policy!(levels_add(all, a));
        policy!(chain_update(all, 0));
        policy!(chain_link(all, cut as u32, 0));
        policy!(chain_update(all, cut as u32 + 1));
        for (i, slot) in slots[..n].iter().enumerate() {
            prop_assert_eq!(best(slot), if i <= cut { a } else { 0 });
        }
    }

    /// Any graph of links, cycles included: updates end within their hops, and
    /// all counts are 0 again when every waiter and every link is gone.
    #[test]
    fn cycles_end(
        links in prop::collection::vec((0..8u32, 0..8u32), 0..16),
        waits in prop::collection::vec((0..8u32, level()), 1..16),
    ) {
        let mut slots = slots();
        let all = slots.as_mut_ptr();
        for (from, to) in &links {
            let edge = policy!(edge_to(*to, 0));
            policy!(chain_link(all, *from, edge));
        }
        for (at, level) in &waits {
            policy!(levels_add(&mut slots[*at as usize], *level));
            prop_assert!(policy!(chain_update(all, *at)) as usize <= HOPS);
        }
        for (at, level) in &waits {
            policy!(levels_remove(&mut slots[*at as usize], *level));
            prop_assert!(policy!(chain_update(all, *at)) as usize <= HOPS);
        }
        for at in 0..8 {
            policy!(chain_link(all, at, 0));
        }
        prop_assert!(slots.iter().all(is_empty));
    }

    /// What would close a cycle is seen before it does.
    #[test]
    fn a_cycle_is_recognised(n in 2..HOPS, at in 0..HOPS) {
        let at = at % n;
        let mut slots = chain(n);
        for (i, slot) in slots.iter_mut().enumerate().take(n) {
            slot.owner = 100 + i as u64;
        }
        let edge = policy!(edge_to(0, 1));
        prop_assert!(policy!(chain_reaches(slots.as_ptr(), edge, 100 + at as u64)));
        prop_assert!(!policy!(chain_reaches(slots.as_ptr(), edge, 99)));
        prop_assert!(!policy!(chain_reaches(slots.as_ptr(), 0, 100)));
        policy!(chain_link(slots.as_mut_ptr(), n as u32 - 1, edge));
        prop_assert!(policy!(chain_reaches(slots.as_ptr(), edge, 99)), "never ends");
    }

    #[test]
    fn an_edge_is_its_slot_and_level(slot in 0..SLOTS as u32, level in 0..=TOP) {
        let edge = policy!(edge_to(slot, level));
        prop_assert!(edge != 0);
        prop_assert_eq!(policy!(edge_slot(edge)), slot);
        prop_assert_eq!(policy!(edge_level(edge)), level);
    }

    /// A slot is one lock's as long as anybody waits for that.
    #[test]
    fn a_slot_in_use_is_not_given_away(a in 1..1u64 << 48, b in 1..1u64 << 48, n in 1..20u32) {
        prop_assume!(a != b);
        let mut slot = slots()[0];
        for _ in 0..n {
            prop_assert_ne!(policy!(slot_get(&mut slot, a << 16, true)), sys::SLOT_NOT);
            prop_assert_eq!(policy!(slot_get(&mut slot, b << 16, true)), sys::SLOT_NOT);
        }
        for _ in 0..n {
            policy!(slot_put(&mut slot));
        }
        prop_assert_eq!(policy!(slot_get(&mut slot, b << 16, true)), sys::SLOT_FIRST);
        prop_assert_eq!(policy!(slot_get(&mut slot, a << 16, true)), sys::SLOT_NOT);
    }

    /// Who is first to wait finds nothing of a hold of which nobody waited for the end.
    #[test]
    fn a_hold_ends_with_its_last_waiter(a in 1..1u64 << 48, owner: u64, hold: u64) {
        let mut slot = slots()[0];
        prop_assert_eq!(policy!(slot_get(&mut slot, a << 16, false)), sys::SLOT_NOT);
        prop_assert_eq!(policy!(slot_get(&mut slot, a << 16, true)), sys::SLOT_FIRST);
        (slot.owner, slot.hold) = (owner, hold);
        prop_assert_eq!(policy!(slot_get(&mut slot, a << 16, false)), sys::SLOT_JOINED);
        prop_assert!(!policy!(slot_put(&mut slot)));
        prop_assert_eq!(slot.owner, owner);
        prop_assert!(policy!(slot_put(&mut slot)));
        prop_assert_eq!(policy!(slot_get(&mut slot, a << 16, true)), sys::SLOT_FIRST);
        prop_assert_eq!((slot.owner, slot.hold), (0, hold));
    }

    #[test]
    fn a_slot_never_counts_over(a in 1..1u64 << 48) {
        let mut slot = slots()[0];
        slot.id = a << 16 | u64::from(sys::FL_SLOT_REFS);
        prop_assert_eq!(policy!(slot_get(&mut slot, a << 16, true)), sys::SLOT_NOT);
        prop_assert_eq!(slot.id >> 16, a);
    }

    #[test]
    fn a_task_holds_up_to_its_limit(held in prop::collection::vec(0..SLOTS as u32, 0..10)) {
        let mut holds = 0;
        let mut want: Vec<u32> = Vec::new();
        for slot in held {
            prop_assert_eq!(policy!(holds_has(holds, slot)), want.contains(&slot));
            if want.contains(&slot) {
                continue;
            }
            holds = policy!(holds_with(holds, slot));
            if want.len() < sys::MAX_HOLDS as usize {
                want.push(slot);
            }
            for slot in &want {
                prop_assert!(policy!(holds_has(holds, *slot)));
            }
        }
        for i in 0..sys::MAX_HOLDS {
            let slot = policy!(holds_slot(holds, i));
            prop_assert!(slot == 0 || want.contains(&(slot - 1)));
            holds = policy!(holds_without(holds, i));
        }
        prop_assert_eq!(holds, 0);
    }
}
