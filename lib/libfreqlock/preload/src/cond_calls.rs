// SPDX-License-Identifier: MIT
//! The calls of condition variables. A thread can be cancelled in those that wait: their frames here
//! have nothing to clean up.

use crate::cond::{self, Cond};
use crate::kind::Kind;
use crate::mutex;
use crate::real::real;
use crate::settings::kind;
use libc::{c_int, clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, timespec};
use libfreqlock::Deadline;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

extern "C" {
    fn pthread_condattr_getpshared(attr: *const pthread_condattr_t, value: *mut c_int) -> c_int;
    fn pthread_condattr_getclock(attr: *const pthread_condattr_t, value: *mut clockid_t) -> c_int;
}

type LibcWait = unsafe extern "C-unwind" fn(
    *mut pthread_cond_t,
    *mut pthread_mutex_t,
    clockid_t,
    *const timespec,
) -> c_int;

extern "C-unwind" {
    fn freqlock_cond_wait(
        cond: *mut pthread_cond_t,
        mutex: *mut pthread_mutex_t,
        clock: clockid_t,
        at: *const timespec,
    ) -> c_int;
    fn freqlock_cond_wait_mixed(
        libc_wait: LibcWait,
        cond: *mut pthread_cond_t,
        mutex: *mut pthread_mutex_t,
        clock: clockid_t,
        at: *const timespec,
    ) -> c_int;
}

/// Where glibc has a 1 in its lowest bit in those that are shared between processes, in words: since 2.42, and
/// before. In ours all of them are zero.
const SHARED: [usize; 2] = [7, 9];

/// None: it stays libc's.
#[inline]
unsafe fn ours<'a>(cond: *mut pthread_cond_t) -> Option<&'a Cond> {
    let is_shared = |word: &usize| {
        // SAFETY: within the variable.
        unsafe { &*cond.cast::<AtomicU32>().add(*word) }.load(Relaxed) & 1 != 0
    };
    if kind() == Kind::Pthread || SHARED.iter().any(is_shared) {
        return None;
    }
    // SAFETY: the caller's variable.
    Some(unsafe { cond::of(cond) })
}

#[no_mangle]
pub unsafe extern "C" fn pthread_cond_init(
    cond: *mut pthread_cond_t,
    attr: *const pthread_condattr_t,
) -> c_int {
    let (mut shared, mut clock) = (libc::PTHREAD_PROCESS_PRIVATE, libc::CLOCK_REALTIME);
    if !attr.is_null() {
        // SAFETY: the caller's attributes, and integers of ours.
        unsafe {
            pthread_condattr_getpshared(attr, &mut shared);
            pthread_condattr_getclock(attr, &mut clock);
        }
    }
    if kind() == Kind::Pthread || shared != libc::PTHREAD_PROCESS_PRIVATE {
        return real!(pthread_cond_init(
            cond => *mut pthread_cond_t, attr => *const pthread_condattr_t));
    }
    // SAFETY: the caller's memory; all zero is without waiters.
    unsafe { ptr::write_bytes(cond, 0, 1) };
    // SAFETY: as above.
    unsafe { cond::of(cond) }.clock.store(clock as u32, Relaxed);
    0
}

/// EBUSY: somebody waits, where glibc would wait until nobody does.
#[no_mangle]
pub unsafe extern "C" fn pthread_cond_destroy(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's variable.
    match unsafe { ours(cond) } {
        None => real!(pthread_cond_destroy(cond => *mut pthread_cond_t)),
        Some(cond) if cond.destroy() => 0,
        Some(_) => libc::EBUSY,
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_cond_signal(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's variable.
    match unsafe { ours(cond) } {
        None => real!(pthread_cond_signal(cond => *mut pthread_cond_t)),
        Some(cond) => {
            cond.signal();
            0
        }
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_cond_broadcast(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's variable.
    match unsafe { ours(cond) } {
        None => real!(pthread_cond_broadcast(cond => *mut pthread_cond_t)),
        Some(cond) => {
            cond.broadcast();
            0
        }
    }
}

unsafe extern "C-unwind" fn libc_wait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    at: *const timespec,
) -> c_int {
    real!(pthread_cond_clockwait(
        cond => *mut pthread_cond_t, mutex => *mut pthread_mutex_t, clock => clockid_t, at => *const timespec))
}

/// `clock` none: the variable's own. `at` NULL: without end.
unsafe fn wait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: Option<clockid_t>,
    at: *const timespec,
) -> c_int {
    // SAFETY: the caller's variable.
    let Some(ours) = (unsafe { ours(cond) }) else {
        let clock = clock.unwrap_or(libc::CLOCK_REALTIME);
        // SAFETY: what the caller passed.
        return unsafe { freqlock_cond_wait_mixed(libc_wait, cond, mutex, clock, at) };
    };
    let clock = clock.unwrap_or(ours.clock.load(Relaxed) as clockid_t);
    // SAFETY: the caller's time, or NULL.
    if unsafe { at.as_ref() }.is_some_and(|at| Deadline::new(clock, at).is_none()) {
        return libc::EINVAL;
    }
    // SAFETY: what the caller passed.
    unsafe { freqlock_cond_wait(cond, mutex, clock, at) }
}

/// Whether libc can do all of it: both are its own.
unsafe fn is_libcs(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> bool {
    // SAFETY: what the caller passed.
    unsafe { ours(cond).is_none() && !mutex::is_ours(mutex) }
}

#[no_mangle]
pub unsafe extern "C-unwind" fn pthread_cond_wait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
) -> c_int {
    // SAFETY: what the caller passed.
    if unsafe { is_libcs(cond, mutex) } {
        return real!(pthread_cond_wait(
            cond => *mut pthread_cond_t, mutex => *mut pthread_mutex_t));
    }
    // SAFETY: as above.
    unsafe { wait(cond, mutex, None, ptr::null()) }
}

#[no_mangle]
pub unsafe extern "C-unwind" fn pthread_cond_timedwait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    at: *const timespec,
) -> c_int {
    // SAFETY: what the caller passed.
    if unsafe { is_libcs(cond, mutex) } {
        return real!(pthread_cond_timedwait(
            cond => *mut pthread_cond_t, mutex => *mut pthread_mutex_t, at => *const timespec));
    }
    // SAFETY: as above.
    unsafe { wait(cond, mutex, None, at) }
}

#[no_mangle]
pub unsafe extern "C-unwind" fn pthread_cond_clockwait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    at: *const timespec,
) -> c_int {
    // SAFETY: what the caller passed.
    if unsafe { is_libcs(cond, mutex) } {
        return real!(pthread_cond_clockwait(
            cond => *mut pthread_cond_t, mutex => *mut pthread_mutex_t, clock => clockid_t,
            at => *const timespec));
    }
    // SAFETY: as above.
    unsafe { wait(cond, mutex, Some(clock), at) }
}
