// SPDX-License-Identifier: MIT
//! Reader-writer locks: writers hold a mutex of the kind in force, the *gate*, and readers are counted.
//!
//! A writer takes the gate, then waits until no reader is inside. As in glibc, new readers are let in
//! meanwhile, so that a thread may take a read lock that it has, unless the lock was made with
//! PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP.

use crate::kind::Kind;
use crate::settings::kind;
use crate::words::Words;
use libc::{c_int, pthread_rwlock_t};
use libfreqlock::{futex_wait_until, futex_wake, tid, Deadline};
use std::hint::spin_loop;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

// Of the state; below them is the number of readers.
const WRITER: u32 = 1 << 31;
/// Somebody sleeps until the state changes.
const ASLEEP: u32 = 1 << 30;
/// A writer waits, and new readers are kept out.
const CLOSED: u32 = 1 << 29;
const READERS: u32 = CLOSED - 1;

/// Of `preference`: PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP.
const WRITERS_FIRST: u32 = 2;

/// In memory that glibc leaves zero, once the lock was used or initialised by us.
const OURS: u32 = 0x6672_6c71;

/// Looks before a thread sleeps, some 10 us.
const SPINS: u32 = 1_000;

/// 52 of a pthread_rwlock_t's 56 bytes.
#[repr(C)]
pub struct RwLock {
    gate: Words,
    mark: AtomicU32,
    state: AtomicU32,
    /// Where glibc's initialisers put it.
    preference: AtomicU32,
}

const _: () = assert!(size_of::<RwLock>() <= size_of::<pthread_rwlock_t>());

/// Where glibc has a 1 in those that are shared between processes, in words. It is within `gate`.
const SHARED: usize = 7;

/// None: it stays libc's.
#[inline]
pub unsafe fn ours<'a>(lock: *mut pthread_rwlock_t) -> Option<&'a RwLock> {
    if kind() == Kind::Pthread {
        return None;
    }
    // SAFETY: a reader-writer lock, whose words are all atomic here.
    let found = unsafe { &*lock.cast::<RwLock>() };
    if found.mark.load(Relaxed) != OURS {
        // SAFETY: within the lock.
        let shared = unsafe { &*lock.cast::<AtomicU32>().add(SHARED) };
        // The gate's tail is there, too: who has written that has marked the lock before.
        if shared.load(Acquire) != 0 && found.mark.load(Relaxed) != OURS {
            return None;
        }
        found.mark.store(OURS, Relaxed);
    }
    Some(found)
}

impl RwLock {
    /// Free, for the caller's memory.
    pub fn new(preference: u32) -> Self {
        // SAFETY: atomics, which are free or nothing when they are zero.
        let mut lock: RwLock = unsafe { std::mem::zeroed() };
        *lock.mark.get_mut() = OURS;
        *lock.preference.get_mut() = preference;
        lock
    }

    fn is_mine(&self) -> bool {
        self.state.load(Relaxed) & WRITER != 0 && self.gate.owner.load(Relaxed) == tid()
    }

    pub fn read(&self, deadline: Option<&Deadline>) -> c_int {
        if self.is_mine() {
            return libc::EDEADLK;
        }
        self.wait(deadline, || self.try_read())
    }

    /// EBUSY or EAGAIN: not now.
    pub fn try_read(&self) -> c_int {
        let mut state = self.state.load(Relaxed);
        loop {
            if state & (WRITER | CLOSED) != 0 {
                return libc::EBUSY;
            }
            if state & READERS == READERS {
                return libc::EAGAIN;
            }
            match self
                .state
                .compare_exchange_weak(state, state + 1, Acquire, Relaxed)
            {
                Ok(_) => return 0,
                Err(seen) => state = seen,
            }
        }
    }

    pub fn write(&self, deadline: Option<&Deadline>) -> c_int {
        if self.is_mine() {
            return libc::EDEADLK;
        }
        match deadline {
            None => self.gate.acquire(),
            Some(deadline) if !self.gate.acquire_until(deadline) => return libc::ETIMEDOUT,
            Some(_) => (),
        }
        let closes = self.preference.load(Relaxed) == WRITERS_FIRST;
        if closes {
            self.state.fetch_or(CLOSED, Relaxed);
        }
        let result = self.wait(deadline, || self.enter_as_writer());
        if result != 0 {
            if closes {
                self.change(|state| state & !(CLOSED | ASLEEP));
            }
            self.gate.release();
        }
        result
    }

    pub fn try_write(&self) -> c_int {
        if !self.gate.try_acquire() {
            return libc::EBUSY;
        }
        let result = self.enter_as_writer();
        if result != 0 {
            self.gate.release();
        }
        result
    }

    /// With the gate held.
    fn enter_as_writer(&self) -> c_int {
        let state = self.state.load(Relaxed);
        let free = state & (WRITER | READERS) == 0;
        let entered = free
            && self
                .state
                .compare_exchange(state, (state & !CLOSED) | WRITER, Acquire, Relaxed)
                .is_ok();
        if entered {
            0
        } else {
            libc::EBUSY
        }
    }

    /// Whoever has it, lets go of it. What is touched last is the state, as its memory may be gone then.
    pub fn release(&self) {
        if self.state.load(Relaxed) & WRITER != 0 {
            self.gate.release();
            self.change(|state| state & !(WRITER | ASLEEP));
        } else {
            self.change(|state| match state & READERS {
                // Nobody has it.
                0 => state,
                1 => (state - 1) & !ASLEEP,
                _ => state - 1,
            });
        }
    }

    /// Wakes all who sleep if the new state no longer says that they do.
    fn change(&self, to: impl Fn(u32) -> u32) {
        let address = std::ptr::from_ref(&self.state);
        let mut state = self.state.load(Relaxed);
        loop {
            match self
                .state
                .compare_exchange_weak(state, to(state), Release, Relaxed)
            {
                Ok(_) => break,
                Err(seen) => state = seen,
            }
        }
        if state & ASLEEP != 0 && to(state) & ASLEEP == 0 {
            futex_wake(address, i32::MAX as u32);
        }
    }

    /// Until `enter` says something else than EBUSY, or the deadline comes.
    fn wait(&self, deadline: Option<&Deadline>, enter: impl Fn() -> c_int) -> c_int {
        for _ in 0..SPINS {
            let result = enter();
            if result != libc::EBUSY {
                return result;
            }
            spin_loop();
        }
        loop {
            // What keeps it out is in the state: if that changes after this look, there is no sleep.
            let state = self.state.load(Relaxed);
            let result = enter();
            if result != libc::EBUSY {
                return result;
            }
            if deadline.is_some_and(Deadline::is_over) {
                return libc::ETIMEDOUT;
            }
            let asleep = state | ASLEEP;
            if state == asleep
                || self
                    .state
                    .compare_exchange(state, asleep, Relaxed, Relaxed)
                    .is_ok()
            {
                futex_wait_until(&self.state, asleep, deadline);
            }
        }
    }
}
