// SPDX-License-Identifier: MIT
//! Condition variables: a queue of those who wait, first come, first woken.
//!
//! Each waits on a semaphore of its own, on its stack, so a signal wakes one who waited when it was sent.
//! Whoever was woken last touches the variable no more, and its memory may go. One whose time is over takes
//! itself out of the queue, or finds that it was signalled meanwhile, waits until its semaphore has
//! been posted, for that is on its stack, and returns 0. One that is
//! cancelled after it was signalled sends the signal on, if others waited with it: so it says when
//! it no longer needs the variable, and destruction waits for that.

use crate::mutex::{pthread_mutex_lock, pthread_mutex_unlock};
use libc::{c_int, pthread_cond_t, pthread_mutex_t};
use libfreqlock::{futex_wait_until, futex_wake, generation};
use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32};

// Of the lock's word; above them is the generation of the process that the queue is of.
const FREE: u32 = 0;
const HELD: u32 = 1;
const HELD_ASLEEP: u32 = 2;
const STATE: u32 = 3;
const GENERATION: u32 = 2;

const SPINS: u32 = 100;

// Of a waiter.
const WAITS: u32 = 0;
const SIGNALLED: u32 = 1;
/// Its time is over, and it is about to leave the queue.
const LEAVES: u32 = 2;

/// As SIGNALLED, and others waited: it is counted in `woken`.
const SIGNALLED_OF_MANY: u32 = 3;

/// 28 of a pthread_cond_t's 48 bytes; the others stay zero. Where libc marks those that it shares between
/// processes is among these (`cond_calls.rs`).
#[repr(C)]
pub struct Cond {
    lock: AtomicU32,
    /// By which timed waits go: CLOCK_REALTIME or CLOCK_MONOTONIC.
    pub clock: AtomicU32,
    first: AtomicPtr<Waiter>,
    last: AtomicPtr<Waiter>,
    /// Those who were signalled while others waited, and have not returned yet.
    woken: AtomicU32,
}

const _: () = assert!(libc::CLOCK_REALTIME == 0);

/// `struct waiter` of `cond.c`. The links are written with the variable's lock held.
#[repr(C)]
pub struct Waiter {
    state: AtomicU32,
    next: AtomicPtr<Waiter>,
    before: AtomicPtr<Waiter>,
    /// Posted once, by whoever made `state` one of those that say signalled.
    woken: UnsafeCell<libc::sem_t>,
}

/// `struct wait` of `cond.c`.
#[repr(C)]
pub struct Wait {
    cond: *const Cond,
    mutex: *mut pthread_mutex_t,
    waiter: Waiter,
}

impl Waiter {
    /// False: the other side was faster.
    fn becomes(&self, state: u32) -> bool {
        self.state
            .compare_exchange(WAITS, state, Release, Acquire)
            .is_ok()
    }
}

impl Cond {
    pub fn signal(&self) {
        self.wake(false);
    }

    pub fn broadcast(&self) {
        self.wake(true);
    }

    fn wake(&self, all: bool) {
        if self.first.load(Acquire).is_null() {
            return;
        }
        self.lock();
        let mut at = self.first.load(Relaxed);
        // SAFETY: a waiter stays while it is in the queue, which the lock keeps as it is.
        while let Some(waiter) = unsafe { at.as_ref() } {
            let next = waiter.next.load(Relaxed);
            let links = Links::of(waiter);
            let alone = links.before.is_null() && next.is_null();
            let state = if all || alone {
                SIGNALLED
            } else {
                self.woken.fetch_add(1, Relaxed);
                SIGNALLED_OF_MANY
            };
            if waiter.becomes(state) {
                self.unlink(&links);
                // SAFETY: the waiter stays until it is posted. After that it may be gone at any time.
                unsafe { libc::sem_post(waiter.woken.get()) };
                if !all {
                    break;
                }
            }
            if state == SIGNALLED_OF_MANY {
                self.woken.fetch_sub(1, Relaxed);
            }
            at = next;
        }
        self.unlock();
    }

    /// False: somebody waits.
    pub fn destroy(&self) -> bool {
        loop {
            self.lock();
            let first = self.first.load(Relaxed);
            // SAFETY: as in wake().
            let state = unsafe { first.as_ref() }.map(|waiter| waiter.state.load(Relaxed));
            let woken = self.woken.load(Acquire);
            self.unlock();
            match (state, woken) {
                (None, 0) => return true,
                // They are about to touch the variable for the last time.
                (None | Some(LEAVES), _) => std::thread::yield_now(),
                _ => return false,
            }
        }
    }

    fn append(&self, waiter: &Waiter) {
        let this = ptr::from_ref(waiter).cast_mut();
        self.lock();
        let last = self.last.load(Relaxed);
        waiter.before.store(last, Relaxed);
        waiter.next.store(ptr::null_mut(), Relaxed);
        // SAFETY: as in wake().
        match unsafe { last.as_ref() } {
            None => self.first.store(this, Relaxed),
            Some(last) => last.next.store(this, Relaxed),
        }
        self.last.store(this, Relaxed);
        self.unlock();
    }

    /// With the lock held.
    fn unlink(&self, links: &Links) {
        // SAFETY: the neighbours are in the queue, as in wake().
        match unsafe { links.before.as_ref() } {
            None => self.first.store(links.next, Relaxed),
            Some(before) => before.next.store(links.next, Relaxed),
        }
        // SAFETY: as above.
        match unsafe { links.next.as_ref() } {
            None => self.last.store(links.before, Relaxed),
            Some(next) => next.before.store(links.before, Relaxed),
        }
    }

    fn lock(&self) {
        let free = generation() << GENERATION | FREE;
        let mut spins = 0;
        let mut to = HELD;
        loop {
            let seen = self.lock.load(Relaxed);
            let stale = (seen ^ free) & !STATE != 0;
            if stale || seen == free {
                let held = (free & !STATE) | to;
                if self
                    .lock
                    .compare_exchange(seen, held, Acquire, Relaxed)
                    .is_ok()
                {
                    if stale {
                        // Those are threads that a fork has left behind, if there are any.
                        self.first.store(ptr::null_mut(), Relaxed);
                        self.last.store(ptr::null_mut(), Relaxed);
                        self.woken.store(0, Relaxed);
                    }
                    return;
                }
            } else if spins < SPINS {
                spins += 1;
                spin_loop();
            } else {
                let asleep = (free & !STATE) | HELD_ASLEEP;
                if seen == asleep
                    || self
                        .lock
                        .compare_exchange(seen, asleep, Relaxed, Relaxed)
                        .is_ok()
                {
                    // Others may sleep, too: whoever has slept says so.
                    to = HELD_ASLEEP;
                    futex_wait_until(&self.lock, asleep, None);
                }
            }
        }
    }

    fn unlock(&self) {
        let free = generation() << GENERATION | FREE;
        let address = ptr::from_ref(&self.lock);
        if self.lock.swap(free, Release) & STATE == HELD_ASLEEP {
            futex_wake(address, 1);
        }
    }
}

/// What is before a waiter and behind it.
struct Links {
    before: *mut Waiter,
    next: *mut Waiter,
}

impl Links {
    fn of(waiter: &Waiter) -> Links {
        Links {
            before: waiter.before.load(Relaxed),
            next: waiter.next.load(Relaxed),
        }
    }
}

impl Wait {
    fn cond(&self) -> &Cond {
        // SAFETY: that of the call which waits, so it is there while its waiter is in the queue.
        unsafe { &*self.cond }
    }

    /// Out of the queue; false: its time was over. If it was signalled, but others are to have that, they
    /// are signalled instead. `woken`: its semaphore gave way.
    fn leave(&self, woken: bool, pass_on: bool) -> bool {
        if !woken {
            if self.waiter.becomes(LEAVES) {
                self.cond().lock();
                self.cond().unlink(&Links::of(&self.waiter));
                self.cond().unlock();
                return false;
            }
            self.wait_for_post();
        }
        if self.waiter.state.load(Relaxed) == SIGNALLED_OF_MANY {
            if pass_on {
                self.cond().signal();
            }
            self.cond().woken.fetch_sub(1, Release);
        }
        true
    }

    /// Whoever signalled is just about to do it. This must not end for a cancellation.
    fn wait_for_post(&self) {
        let mut before = 0;
        // SAFETY: an integer of ours, and the semaphore that cond.c has made.
        unsafe {
            pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mut before);
            while libc::sem_wait(self.waiter.woken.get()) != 0 {}
            pthread_setcancelstate(before, ptr::null_mut());
        }
    }
}

/// `pthread.h`.
const PTHREAD_CANCEL_DISABLE: c_int = 1;

extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

// What cond.c calls; its comments say what they do.

#[no_mangle]
unsafe extern "C" fn freqlock_cond_enter(wait: &Wait) -> c_int {
    wait.cond().append(&wait.waiter);
    // SAFETY: the caller's mutex.
    let result = unsafe { pthread_mutex_unlock(wait.mutex) };
    if result != 0 {
        wait.leave(false, true);
    }
    result
}

#[no_mangle]
unsafe extern "C" fn freqlock_cond_leave(wait: &Wait, woken: c_int) -> c_int {
    let signalled = wait.leave(woken != 0, false);
    // SAFETY: the caller's mutex.
    match unsafe { pthread_mutex_lock(wait.mutex) } {
        0 if !signalled => libc::ETIMEDOUT,
        result => result,
    }
}

#[no_mangle]
unsafe extern "C" fn freqlock_cond_cancelled(wait: &Wait) {
    wait.leave(false, true);
    // SAFETY: the caller's mutex.
    unsafe { pthread_mutex_lock(wait.mutex) };
}

/// The memory of a variable.
pub unsafe fn of<'a>(cond: *const pthread_cond_t) -> &'a Cond {
    // SAFETY: a condition variable, whose words are all atomic here.
    unsafe { &*cond.cast() }
}
