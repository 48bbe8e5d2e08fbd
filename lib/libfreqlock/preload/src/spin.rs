// SPDX-License-Identifier: MIT
//! Spin locks: four bytes, so there is no queue. The word has the holder's number, and who waits says to
//! scx_freqlock whom it waits for, spins for some microseconds, then sleeps. All kinds but `pthread` have
//! this one.
//!
//! There is no static initialiser. One that is to be shared between processes is initialised by libc, and
//! known by its value: libc's are 0 and 1, and on x86 less than that while threads wait.

use crate::kind::Kind;
use crate::real::real;
use crate::settings::kind;
use libc::{c_int, pthread_spinlock_t};
use libfreqlock::{futex_wait_until, futex_wake, hint, tid};
use std::hint::spin_loop;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Set in each word of ours, in which bit 31 is not.
const OURS: u32 = 1 << 30;
/// Somebody sleeps.
const ASLEEP: u32 = 1 << 29;
const OWNER: u32 = ASLEEP - 1;

/// Looks before a thread sleeps, some 10 us.
const SPINS: u32 = 1_000;

fn acquire(word: &AtomicU32) -> c_int {
    let me = tid();
    if try_acquire(word, me) {
        return 0;
    }
    let owner = word.load(Relaxed) & OWNER;
    if owner == me {
        return libc::EDEADLK;
    }
    hint::wait(std::ptr::from_ref(word).cast(), owner as i32);
    let taken = (0..SPINS).any(|_| {
        spin_loop();
        try_acquire(word, me)
    });
    if !taken {
        // Others may sleep as well, so whoever has slept says so.
        while word
            .compare_exchange(OURS, OURS | ASLEEP | me, Acquire, Relaxed)
            .is_err()
        {
            let seen = word.load(Relaxed);
            let asleep = seen | ASLEEP;
            if seen & OWNER != 0
                && (seen == asleep
                    || word
                        .compare_exchange(seen, asleep, Relaxed, Relaxed)
                        .is_ok())
            {
                futex_wait_until(word, asleep, None);
            }
        }
    }
    hint::wait_over();
    0
}

fn try_acquire(word: &AtomicU32, me: u32) -> bool {
    word.load(Relaxed) == OURS
        && word
            .compare_exchange(OURS, OURS | me, Acquire, Relaxed)
            .is_ok()
}

fn release(word: &AtomicU32) {
    let address = std::ptr::from_ref(word);
    if word.swap(OURS, Release) & ASLEEP != 0 {
        futex_wake(address, 1);
    }
}

/// None: it stays libc's.
unsafe fn ours<'a>(lock: *const pthread_spinlock_t) -> Option<&'a AtomicU32> {
    // SAFETY: a spin lock, which is one word.
    let word = unsafe { &*lock.cast::<AtomicU32>() };
    (word.load(Relaxed) >> 30 == 1).then_some(word)
}

#[no_mangle]
pub unsafe extern "C" fn pthread_spin_init(lock: *mut pthread_spinlock_t, shared: c_int) -> c_int {
    if kind() == Kind::Pthread || shared != libc::PTHREAD_PROCESS_PRIVATE {
        return real!(pthread_spin_init(lock => *mut pthread_spinlock_t, shared => c_int));
    }
    // SAFETY: the caller's memory, one word.
    unsafe { lock.cast::<AtomicU32>().write(AtomicU32::new(OURS)) };
    0
}

#[no_mangle]
pub unsafe extern "C" fn pthread_spin_destroy(lock: *mut pthread_spinlock_t) -> c_int {
    // SAFETY: the caller's lock.
    match unsafe { ours(lock) } {
        None => real!(pthread_spin_destroy(lock => *mut pthread_spinlock_t)),
        Some(_) => 0,
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_spin_lock(lock: *mut pthread_spinlock_t) -> c_int {
    // SAFETY: the caller's lock.
    match unsafe { ours(lock) } {
        None => real!(pthread_spin_lock(lock => *mut pthread_spinlock_t)),
        Some(word) => acquire(word),
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_spin_trylock(lock: *mut pthread_spinlock_t) -> c_int {
    // SAFETY: the caller's lock.
    match unsafe { ours(lock) } {
        None => real!(pthread_spin_trylock(lock => *mut pthread_spinlock_t)),
        Some(word) if try_acquire(word, tid()) => 0,
        Some(_) => libc::EBUSY,
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_spin_unlock(lock: *mut pthread_spinlock_t) -> c_int {
    // SAFETY: the caller's lock.
    match unsafe { ours(lock) } {
        None => real!(pthread_spin_unlock(lock => *mut pthread_spinlock_t)),
        Some(word) => {
            release(word);
            0
        }
    }
}
