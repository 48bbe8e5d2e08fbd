// SPDX-License-Identifier: GPL-2.0-only
//! policy/lock.h: who holds a mutex, by words that may be anything.

use crate::{config, policy, sys};
use proptest::prelude::*;

const CONTENDED: u32 = sys::MUTEX_CONTENDED;
const WAITING: u32 = sys::FUTEX_WAITING;
const TID: u32 = sys::FUTEX_TID;

/// Kinds of <pthread.h>, with and without the flags that may be beside them.
fn kind() -> impl Strategy<Value = u32> {
    (
        0..=3u32,
        prop::sample::select(vec![0, 128, 256, 512, 128 | 512]),
    )
        .prop_map(|(kind, flags)| kind | flags)
}

fn held(kind: u32, owner: i32) -> sys::mutex_words {
    sys::mutex_words {
        lock: CONTENDED,
        count: u32::from(kind & 3 == sys::MUTEX_RECURSIVE),
        owner,
        nusers: 1,
        kind,
    }
}

prop_compose! {
    /// Words in which each is plausible by itself more often than by chance.
    fn words()(
        lock in prop_oneof![Just(CONTENDED), any::<u32>()],
        count in prop_oneof![0..2u32, any::<u32>()],
        owner in prop_oneof![-2..1000i32, any::<i32>()],
        nusers in prop_oneof![0..2u32, any::<u32>()],
        kind in prop_oneof![0..20u32, any::<u32>()],
    ) -> sys::mutex_words {
        sys::mutex_words { lock, count, owner, nusers, kind }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_owner_of_every_plain_kind_is_found(kind in kind(), tid in 1..=i32::MAX) {
        prop_assert_eq!(policy!(mutex_owner(&held(kind, tid), CONTENDED)), tid);
    }

    #[test]
    fn the_owner_of_a_robust_mutex_is_in_its_word(kind in kind(), tid in 1..=TID) {
        let mut m = held(kind | sys::MUTEX_ROBUST, 0);
        m.lock = tid | WAITING;
        prop_assert_eq!(policy!(mutex_owner(&m, m.lock)), tid as i32);
        m.kind = kind;
        prop_assert_eq!(policy!(mutex_owner(&m, m.lock)), 0, "no robust one");
    }

    /// An owner is known only where every word agrees with it.
    #[test]
    fn what_does_not_add_up_has_no_owner(m in words(), val in prop_oneof![Just(CONTENDED), any::<u32>()]) {
        let owner = policy!(mutex_owner(&m, val));
        prop_assert!(owner >= 0);
        if owner == 0 {
            return Ok(());
        }
        prop_assert_eq!(m.lock, val);
        prop_assert!(policy!(mutex_may_wait(val)));
        let known = 3 | sys::MUTEX_SHARED | sys::MUTEX_ELISION | sys::MUTEX_ROBUST;
        prop_assert_eq!(m.kind & !known, 0);
        if val & WAITING == 0 {
            prop_assert_eq!(owner, m.owner);
            prop_assert!(m.nusers > 0);
            prop_assert_eq!(m.kind & 3 == sys::MUTEX_RECURSIVE, m.count > 0);
        }
    }

    #[test]
    fn a_word_that_changed_is_no_wait(m in words(), val: u32) {
        prop_assume!(m.lock != val);
        prop_assert_eq!(policy!(mutex_owner(&m, val)), 0);
    }

    /// Without the key nobody can find out which locks of two processes meet: above all not
    /// those of which address and process differ by the same bits.
    #[test]
    fn locks_of_two_processes_have_two_names(
        key: u64, addr: u64, a in 1..1u32 << 22, b in 1..1u32 << 22, space in 0..3u32
    ) {
        prop_assume!(a != b);
        let hash = policy!(lock_hash(key, space, addr, a));
        let alias = policy!(lock_hash(key, space, addr ^ u64::from(a ^ b), b));
        prop_assert_ne!(hash, alias);
        prop_assert_ne!(hash, policy!(lock_hash(key, space, addr, b)));
        prop_assert_ne!(hash, policy!(lock_hash(!key, space, addr, a)));
        prop_assert_ne!(hash, policy!(lock_hash(key, (space + 1) % 3, addr, a)));
        prop_assert_eq!(hash & u64::from(sys::FL_SLOT_REFS), 0);
        prop_assert_eq!(policy!(lock_is_kernels(hash)), space == sys::LOCK_KERNEL);
    }

    /// Condition variables, semaphores and idle pools wait for small counters.
    #[test]
    fn other_values_are_not_looked_at(val in 0..WAITING) {
        prop_assert_eq!(policy!(mutex_may_wait(val)), val == CONTENDED);
    }
}
