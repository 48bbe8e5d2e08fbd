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
//! A head that is awake and does not run keeps all others from the lock. So whoever waits behind it and sees
//! the lock unused sleeps, and whoever releases a lock whose head is being woken yields: either may
//! have the CPU that the head waits for.
//!
//! The first 20 bytes are laid out as glibc's mutexes are, on whose words schedulers and
//! debuggers find the holder: a head that sleeps does so for the value 2, the owner's TID stands
//! 8 bytes behind it. scx_freqlock lets that one inherit what its waiter has.
//!
//! Who waits with a deadline may leave. Its node then stays in the queue until the one before it finds
//! it, so it is not on the stack but in memory of its own.
//!
//! The tail also says in which process its node was put there (`fork.rs`): threads that waited when the
//! process forked are not in the child, and nobody waits for them.
//!
//! One moment is not bounded by the lock: an enqueuer may lose its CPU between the two stores
//! that append its node. The one before it then yields until the second store is seen.

use crate::fork;
use crate::limits::{Learned, QUEUE_SPINS, SPIN_LEAST};
use crate::os::{self, Deadline};
use crate::spin::spin_for;
use crate::sync::{AtomicPtr, AtomicU32};
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// For how long others may pass by a head that sleeps.
pub(crate) const PATIENCE: u64 = 1_000_000;

/// A lock that is unused at so many looks, SPIN_LEAST apart, is left so by a head that does not run.
const UNUSED_LOOKS: u32 = 5;

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
/// Its waiter has left: who makes it the head takes it out of the queue instead.
const GONE: u32 = 3;

/// The bits of an address that are zero for a node, and in the tail say when it was appended.
const STAMP: usize = 63;

#[repr(align(64))]
struct Node {
    state: AtomicU32,
    next: AtomicPtr<Node>,
}

#[repr(C)]
pub(crate) struct Queue {
    word: AtomicU32,
    /// In a mutex of glibc's, how often a recursive one is locked. Not of the queue, as `kind`.
    pub(crate) count: AtomicU32,
    /// TID of the holder, 0 while there is none. Written by whoever holds it.
    pub(crate) owner: AtomicU32,
    users: AtomicU32,
    /// Zero: a plain mutex.
    pub(crate) kind: AtomicU32,
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
                count: AtomicU32::new(0),
                owner: AtomicU32::new(0),
                users: AtomicU32::new(0),
                kind: AtomicU32::new(0),
                learned: Learned::new(),
                tail: AtomicPtr::new(ptr::null_mut()),
            }
        }
    }

    /// Takes the lock if nobody has it or waits for it, or if the head sleeps.
    #[inline]
    pub(crate) fn try_acquire(&self) -> bool {
        match self.word.load(Relaxed) {
            FREE => !self.has_waiters() && self.change(FREE, HELD),
            FREE_WAKING => self.change(FREE_WAKING, HELD_WAKING),
            _ => false,
        }
    }

    /// Takes the lock if nobody has it or waits for it.
    pub(crate) fn try_acquire_idle(&self) -> bool {
        let word = self.word.load(Relaxed);
        is_free(word) && !self.has_waiters() && self.change(word, HELD)
    }

    /// True if somebody has the lock or waits for it.
    pub(crate) fn is_busy(&self) -> bool {
        !is_free(self.word.load(Relaxed)) || self.has_waiters()
    }

    #[inline]
    pub(crate) fn has_waiters(&self) -> bool {
        is_live(self.tail.load(Relaxed))
    }

    /// Takes the lock, in its turn.
    pub(crate) fn acquire(&self) {
        if !self.try_acquire() {
            let node = Node::new();
            self.queue_up(ptr::from_ref(&node).cast_mut(), None);
        }
    }

    /// Takes the lock in its turn; false: that did not come before the deadline.
    pub(crate) fn acquire_until(&self, deadline: &Deadline) -> bool {
        if self.try_acquire() {
            return true;
        }
        if deadline.is_over() {
            return false;
        }
        match os::allocate(Node::new()) {
            Some(node) => self.queue_up(node, Some(deadline)),
            None => self.poll_until(deadline),
        }
    }

    fn queue_up(&self, this: *mut Node, deadline: Option<&Deadline>) -> bool {
        // SAFETY: the caller's node, which stays until this thread or the one before it frees it.
        let node = unsafe { &*this };
        let before = self.tail.swap(stamped(this), AcqRel);
        if is_live(before) {
            let before = before.map_addr(|address| address & !STAMP);
            // SAFETY: a node leaves the queue when no other is behind it, or after it has seen which one is.
            unsafe { &*before }.next.store(this, Release);
            if !node.wait(self, deadline) {
                return false;
            }
        }
        let taken = self.acquire_as_head(deadline);
        if !self.is_last(this) {
            self.promote(node.next(), taken);
        }
        if deadline.is_some() {
            // SAFETY: from acquire_until(), and out of the queue.
            unsafe { os::free(this) };
        }
        taken
    }

    /// Without memory for a node: looks now and then.
    fn poll_until(&self, deadline: &Deadline) -> bool {
        while !self.try_acquire() {
            if deadline.is_over() {
                return false;
            }
            os::sleep(PATIENCE);
        }
        true
    }

    /// Takes the node out of the queue if no other is behind it.
    fn is_last(&self, node: *mut Node) -> bool {
        self.tail
            .compare_exchange(stamped(node), ptr::null_mut(), Release, Relaxed)
            .is_ok()
    }

    fn acquire_as_head(&self, deadline: Option<&Deadline>) -> bool {
        let spin = self.learned.spin();
        let began = os::now();
        while !spin_for(spin, || self.try_acquire_as_head()) {
            if deadline.is_some_and(Deadline::is_over) {
                return self.give_up_as_head();
            }
            let impatient = os::now() - began > PATIENCE;
            self.users
                .store(if impatient { IMPATIENT } else { PATIENT }, Relaxed);
            if self
                .word
                .compare_exchange(HELD, HELD_ASLEEP, Release, Relaxed)
                .is_ok()
            {
                os::futex_wait_until(&self.word, HELD_ASLEEP, deadline);
            }
        }
        self.learned.note(os::now() - began);
        true
    }

    /// The word says no more that a head sleeps, or is being woken; true if the lock became free meanwhile.
    fn give_up_as_head(&self) -> bool {
        while self.word.load(Relaxed) != HELD {
            if self.try_acquire_as_head() {
                return true;
            }
        }
        false
    }

    fn try_acquire_as_head(&self) -> bool {
        match self.word.load(Relaxed) {
            word if is_free(word) => self.change(word, HELD),
            word @ (HELD_ASLEEP | HELD_WAKING) => {
                // Awake: nobody passes by any more. If this fails, the next round sees why.
                self.change(word, HELD);
                false
            }
            _ => false,
        }
    }

    #[inline]
    fn change(&self, from: u32, to: u32) -> bool {
        self.word
            .compare_exchange(from, to, Acquire, Relaxed)
            .is_ok()
    }

    /// Makes `next` the head, which is behind one that leaves, or the first behind it that has not left.
    /// `held`: by the caller.
    fn promote(&self, mut next: *mut Node, held: bool) {
        loop {
            // SAFETY: it waits for what the swap below says, and stays until then.
            let node = unsafe { &*next };
            if held && node.state.load(Relaxed) == ASLEEP {
                // There is no head now, so nobody else changes the word.
                self.word.store(HELD_WAKING, Relaxed);
            }
            let address = ptr::from_ref(&node.state);
            match node.state.swap(HEAD, AcqRel) {
                GONE => (),
                ASLEEP => return os::futex_wake(address, 1),
                _ => return,
            }
            let behind = if self.is_last(next) {
                ptr::null_mut()
            } else {
                node.next()
            };
            // SAFETY: from acquire_until(); its waiter has left, and no other looks at it.
            unsafe { os::free(next) };
            if behind.is_null() {
                if held {
                    // Nobody is being woken. A head that came since then does the same.
                    let _ = self
                        .word
                        .compare_exchange(HELD_WAKING, HELD, Relaxed, Relaxed);
                }
                return;
            }
            next = behind;
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
                match word {
                    HELD_ASLEEP => os::futex_wake(address, 1),
                    // The head may be behind this thread on its CPU, and all others behind the head.
                    HELD_WAKING => os::yield_now(),
                    _ => (),
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

/// A head that is being woken may be one that a fork has left behind, so the word alone does not say it.
fn is_free(word: u32) -> bool {
    word == FREE || word == FREE_WAKING
}

/// The address of a node as it stands in the tail.
fn stamped(node: *mut Node) -> *mut Node {
    node.map_addr(|address| address | (fork::generation() as usize & STAMP))
}

/// False if it is none, or of a thread that a fork has left behind.
#[inline]
fn is_live(tail: *mut Node) -> bool {
    !tail.is_null() && (tail.addr() ^ fork::generation() as usize) & STAMP == 0
}

impl Node {
    fn new() -> Self {
        Node {
            state: AtomicU32::new(WAITING),
            next: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Waits until it is the head. A head that sleeps says that the holder does not run, or
    /// holds the lock for long. False: the deadline came first, and the node is the queue's.
    fn wait(&self, queue: &Queue, deadline: Option<&Deadline>) -> bool {
        let mut unused = 0;
        for _ in 0..QUEUE_SPINS {
            if spin_for(SPIN_LEAST, || self.state.load(Acquire) == HEAD) {
                return true;
            }
            let word = queue.word.load(Relaxed);
            unused = if is_free(word) { unused + 1 } else { 0 };
            // With an unused lock the head does not run: it may be behind this thread on its CPU.
            if word == HELD_ASLEEP || unused == UNUSED_LOOKS {
                break;
            }
        }
        if self.change(WAITING, ASLEEP) {
            while self.state.load(Acquire) == ASLEEP {
                if deadline.is_some_and(Deadline::is_over) && self.change(ASLEEP, GONE) {
                    return false;
                }
                os::futex_wait_until(&self.state, ASLEEP, deadline);
            }
        }
        true
    }

    fn change(&self, from: u32, to: u32) -> bool {
        self.state
            .compare_exchange(from, to, AcqRel, Acquire)
            .is_ok()
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
