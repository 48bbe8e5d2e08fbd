// SPDX-License-Identifier: MIT
//! The lock below: first come, first served.
//!
//! Waiters queue up as in the lock of Mellor-Crummey and Scott ("Algorithms for Scalable
//! Synchronization on Shared-Memory Multiprocessors", ACM TOCS 9, 1991), each on a node of its
//! own. As in the kernel's qspinlock the first of them, the *head*, waits for the lock's word and
//! leaves the queue once it has the lock, so that a node lives on its waiter's stack and a
//! holder needs none.
//!
//! Whoever waits spins for a bounded time (`limits.rs`), and no longer than the head does, then sleeps. To hand a lock to a sleeper
//! keeps it unused until that one runs: with more threads than CPUs that costs most of the
//! throughput. So the order is strict while the head is awake; while it sleeps or is being woken,
//! others may take the lock before it. A head that was passed by for `PATIENCE` sleeps without
//! that, and gets the lock next. Nobody but the head can be passed by, so a waiter waits for the
//! holds of those before it, and `PATIENCE` and a hold for each of them, at most.
//!
//! The first 20 bytes are laid out as glibc's mutexes are, on whose words schedulers and
//! debuggers find the holder: a head that sleeps does so for the value 2, the owner's TID stands
//! 8 bytes behind it. scx_freqlock lets that one inherit what its waiter has.
//!
//! One moment is not bounded by the lock: an enqueuer may lose its CPU between the two stores
//! that append its node. The one before it then yields until the second store is seen.

use crate::limits::{Learned, QUEUE_SPINS, SPIN_LEAST};
use crate::os;
use crate::spin::spin_for;
use crate::sync::{AtomicPtr, AtomicU32};
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// For how long others may pass by a head that sleeps.
pub(crate) const PATIENCE: u64 = 1_000_000;

// Of the word. What glibc's mutexes have are the first three.
const FREE: u32 = 0;
const HELD: u32 = 1;
/// The head sleeps: who unlocks wakes it.
const HELD_ASLEEP: u32 = 2;
/// Anybody may take it: the head is being woken.
const FREE_WAKING: u32 = 3;
/// Somebody did; the head is still being woken.
const HELD_WAKING: u32 = 4;

// Of `users`, which is not zero in a mutex that is held.
const PATIENT: u32 = 1;
const IMPATIENT: u32 = 2;

// Of a node.
const WAITING: u32 = 0;
const ASLEEP: u32 = 1;
const HEAD: u32 = 2;

struct Node {
    state: AtomicU32,
    next: AtomicPtr<Node>,
}

#[repr(C)]
pub(crate) struct Queue {
    word: AtomicU32,
    /// Zero: in a mutex of glibc's, how often a recursive one is locked.
    count: u32,
    /// TID of the holder, 0 while there is none. Written by whoever holds it.
    pub(crate) owner: AtomicU32,
    users: AtomicU32,
    /// Zero: a plain mutex.
    kind: u32,
    /// How long heads wait.
    pub(crate) learned: Learned,
    tail: AtomicPtr<Node>,
}

impl Queue {
    crate::sync::const_in_std! {
        /// Free: all zero.
        pub(crate) fn new() -> Self {
            Queue {
                word: AtomicU32::new(FREE),
                count: 0,
                owner: AtomicU32::new(0),
                users: AtomicU32::new(0),
                kind: 0,
                learned: Learned::new(),
                tail: AtomicPtr::new(ptr::null_mut()),
            }
        }
    }

    /// Takes the lock if nobody has it or waits for it, or if the head sleeps.
    #[inline]
    pub(crate) fn try_acquire(&self) -> bool {
        match self.word.load(Relaxed) {
            FREE => self.tail.load(Relaxed).is_null() && self.change(FREE, HELD),
            FREE_WAKING => self.change(FREE_WAKING, HELD_WAKING),
            _ => false,
        }
    }

    /// Takes the lock if nobody has it or waits for it.
    pub(crate) fn try_acquire_idle(&self) -> bool {
        self.word.load(Relaxed) == FREE
            && self.tail.load(Relaxed).is_null()
            && self.change(FREE, HELD)
    }

    /// True if somebody has the lock or waits for it.
    pub(crate) fn is_busy(&self) -> bool {
        self.word.load(Relaxed) != FREE || self.has_waiters()
    }

    pub(crate) fn has_waiters(&self) -> bool {
        !self.tail.load(Relaxed).is_null()
    }

    /// Takes the lock, in its turn.
    pub(crate) fn acquire(&self) {
        if self.try_acquire() {
            return;
        }
        let node = Node {
            state: AtomicU32::new(WAITING),
            next: AtomicPtr::new(ptr::null_mut()),
        };
        let this = ptr::from_ref(&node).cast_mut();
        let before = self.tail.swap(this, AcqRel);
        // SAFETY: a node leaves the queue when no other is behind it, or after it has seen which one is.
        if let Some(before) = unsafe { before.as_ref() } {
            before.next.store(this, Release);
            node.wait(self);
        }
        self.acquire_as_head();
        if self
            .tail
            .compare_exchange(this, ptr::null_mut(), Release, Relaxed)
            .is_err()
        {
            self.promote(node.next());
        }
    }

    fn acquire_as_head(&self) {
        let spin = self.learned.spin();
        let began = os::now();
        while !spin_for(spin, || self.try_acquire_as_head()) {
            let impatient = os::now() - began > PATIENCE;
            self.users
                .store(if impatient { IMPATIENT } else { PATIENT }, Relaxed);
            if self
                .word
                .compare_exchange(HELD, HELD_ASLEEP, Release, Relaxed)
                .is_ok()
            {
                os::futex_wait(&self.word, HELD_ASLEEP, None);
            }
        }
        self.learned.note(os::now() - began);
    }

    fn try_acquire_as_head(&self) -> bool {
        match self.word.load(Relaxed) {
            word @ (FREE | FREE_WAKING) => self.change(word, HELD),
            word @ (HELD_ASLEEP | HELD_WAKING) => {
                // Awake: nobody passes by any more. If this fails, the next round sees why.
                self.change(word, HELD);
                false
            }
            _ => false,
        }
    }

    fn change(&self, from: u32, to: u32) -> bool {
        self.word
            .compare_exchange(from, to, Acquire, Relaxed)
            .is_ok()
    }

    /// The holder makes `next`, which was behind it, the head.
    fn promote(&self, next: *mut Node) {
        // SAFETY: it waits for what the swap below says, and stays until then.
        let next = unsafe { &*next };
        if next.state.load(Relaxed) == ASLEEP {
            // There is no head now, so nobody else changes the word.
            self.word.store(HELD_WAKING, Relaxed);
        }
        let address = ptr::from_ref(&next.state);
        if next.state.swap(HEAD, Release) == ASLEEP {
            os::futex_wake(address, 1);
        }
    }

    /// Of the holder alone. Afterwards the lock's memory is not touched: the next holder may free it.
    #[inline]
    pub(crate) fn release(&self) {
        if self
            .word
            .compare_exchange(HELD, FREE, Release, Relaxed)
            .is_err()
        {
            self.release_contended();
        }
    }

    #[cold]
    fn release_contended(&self) {
        loop {
            let word = self.word.load(Acquire);
            let to = match word {
                HELD_ASLEEP if self.users.load(Relaxed) != IMPATIENT => FREE_WAKING,
                HELD_WAKING => FREE_WAKING,
                _ => FREE,
            };
            let address = ptr::from_ref(&self.word);
            if self
                .word
                .compare_exchange(word, to, Release, Relaxed)
                .is_ok()
            {
                if word == HELD_ASLEEP {
                    os::futex_wake(address, 1);
                }
                return;
            }
        }
    }

    /// Of the holder alone: forgets all waiters, which are threads that a fork has left behind.
    pub(crate) fn forget_waiters(&self) {
        self.tail.store(ptr::null_mut(), Relaxed);
        self.word.store(HELD, Relaxed);
    }
}

impl Node {
    /// Waits until it is the head. A head that sleeps says that the holder does not run, or
    /// holds the lock for long.
    fn wait(&self, queue: &Queue) {
        for _ in 0..QUEUE_SPINS {
            if spin_for(SPIN_LEAST, || self.state.load(Acquire) == HEAD) {
                return;
            }
            if queue.word.load(Relaxed) == HELD_ASLEEP {
                break;
            }
        }
        if self
            .state
            .compare_exchange(WAITING, ASLEEP, Acquire, Acquire)
            .is_ok()
        {
            while self.state.load(Acquire) == ASLEEP {
                os::futex_wait(&self.state, ASLEEP, None);
            }
        }
    }

    /// The node behind this one, which is about to be appended if it is not there yet.
    fn next(&self) -> *mut Node {
        loop {
            let next = self.next.load(Acquire);
            if !next.is_null() {
                return next;
            }
            os::yield_now();
        }
    }
}

#[cfg(test)]
#[path = "queue/tests.rs"]
mod tests;
