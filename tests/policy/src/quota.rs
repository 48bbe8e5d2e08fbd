// SPDX-License-Identifier: GPL-2.0-only
//! policy/quota.h: who may use how many slots.

use crate::{config, policy, sys};
use proptest::prelude::*;

const SLOTS: u32 = sys::FL_MAX_LOCKS;
const A_USER: u32 = sys::SLOTS_A_USER;
const A_PROCESS: u32 = sys::SLOTS_A_PROCESS;

fn nothing_charged() -> Box<sys::lock_quota> {
    // SAFETY: made of integers, and all 0 is that nobody has anything.
    Box::new(unsafe { std::mem::zeroed() })
}

fn charged(quota: &sys::lock_quota) -> u32 {
    quota.users.iter().sum()
}

/// A lock's first wait: its slot, if there is one.
fn wait(slots: &mut [sys::lock_slot], quota: &mut sys::lock_quota, hash: u64, payer: u32) -> bool {
    let first = policy!(slot_first(hash)) as usize;
    if !policy!(quota_take(quota, payer)) {
        return false;
    }
    for slot in &mut slots[first..first + sys::LOCK_PROBES as usize] {
        if policy!(slot_get(slot, hash, true)) == sys::SLOT_FIRST {
            slot.payer = payer;
            return true;
        }
    }
    policy!(quota_give(quota, payer));
    false
}

#[test]
fn a_process_and_a_user_have_a_limit_and_get_it_all() {
    let mut quota = nothing_charged();
    let payer = |tgid| policy!(quota_payer(7, 1000, tgid));
    let mut got = [0; 4];
    for (got, tgid) in got.iter_mut().zip(1..) {
        while policy!(quota_take(&mut *quota, payer(tgid))) {
            *got += 1;
        }
    }
    assert_eq!(got, [A_PROCESS, A_USER - A_PROCESS, 0, 0]);
    policy!(quota_give(&mut *quota, payer(1)));
    assert!(policy!(quota_take(&mut *quota, payer(3))));
    assert!(!policy!(quota_take(&mut *quota, payer(4))));
    assert_eq!(charged(&quota), A_USER);
}

/// Three users take what they can: of another's locks most have a slot all the same, and
/// of the kernel's hardly one has none.
#[test]
fn nobody_takes_the_slots_of_others() {
    // SAFETY: as in donate.rs.
    let mut slots = vec![unsafe { std::mem::zeroed::<sys::lock_slot>() }; SLOTS as usize];
    let mut quota = nothing_charged();
    let user = |uid, n| {
        let lock = policy!(lock_hash(9, sys::LOCK_USER, n, uid));
        (lock, policy!(quota_payer(9, uid, uid * 8 + n as u32 % 4)))
    };
    for uid in 1..=3 {
        for n in 0..4096 {
            let (lock, payer) = user(uid, n);
            wait(&mut slots, &mut quota, lock, payer);
        }
    }
    assert!(charged(&quota) <= 3 * A_USER);
    let got = (0..200).filter(|n| {
        let (lock, payer) = user(4, *n);
        wait(&mut slots, &mut quota, lock, payer)
    });
    let got = got.count();
    assert!(got >= 170, "{got} of 200 with three users at their limits");
    let kernels = (0..200).filter(|n| {
        let lock = policy!(lock_hash(9, sys::LOCK_KERNEL, n * 64, 0));
        let payer = policy!(quota_payer(9, 5, 77));
        wait(&mut slots, &mut quota, lock, payer)
    });
    assert!(kernels.count() >= 198);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn places_stay_in_their_part(key: u64, addr: u64, tgid: u32, space in 0..3u32) {
        let hash = policy!(lock_hash(key, space, addr, tgid));
        let first = policy!(slot_first(hash));
        let last = first + sys::LOCK_PROBES - 1;
        let users = SLOTS - sys::KERNEL_SLOTS;
        let part = if space == sys::LOCK_KERNEL { users..SLOTS } else { 0..users };
        prop_assert!(part.contains(&first) && part.contains(&last));
    }

    /// Who joins and leaves, in whatever order: in the end nobody is charged.
    #[test]
    fn the_last_to_leave_takes_the_charge_along(key: u64, uid: u32, n in 1..20u32, rounds in 1..4) {
        // SAFETY: as in donate.rs.
        let mut slot: sys::lock_slot = unsafe { std::mem::zeroed() };
        let mut quota = nothing_charged();
        let payer = policy!(quota_payer(key, uid, !uid));
        for _ in 0..rounds {
            prop_assert!(policy!(quota_take(&mut *quota, payer)));
            prop_assert_eq!(policy!(slot_get(&mut slot, 1 << 20, true)), sys::SLOT_FIRST);
            slot.payer = payer;
            for _ in 1..n {
                policy!(slot_get(&mut slot, 1 << 20, false));
            }
            for left in (0..n).rev() {
                prop_assert_eq!(charged(&quota), 1);
                policy!(slot_put_paid(&mut slot, &mut *quota));
                prop_assert_eq!(slot.id & u64::from(sys::FL_SLOT_REFS), u64::from(left));
            }
            prop_assert_eq!(charged(&quota) + quota.processes.iter().sum::<u32>(), 0);
        }
    }
}
