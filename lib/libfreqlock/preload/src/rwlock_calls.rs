// SPDX-License-Identifier: MIT
//! The calls of reader-writer locks.

use crate::kind::Kind;
use crate::real::real;
use crate::rwlock::{ours, RwLock};
use crate::settings::kind;
use libc::{c_int, clockid_t, pthread_rwlock_t, pthread_rwlockattr_t, timespec};
use libfreqlock::{latencies, Deadline};

extern "C" {
    fn pthread_rwlockattr_getpshared(attr: *const pthread_rwlockattr_t, value: *mut c_int)
        -> c_int;
    fn pthread_rwlockattr_getkind_np(attr: *const pthread_rwlockattr_t, value: *mut c_int)
        -> c_int;
}

#[no_mangle]
pub unsafe extern "C" fn pthread_rwlock_init(
    lock: *mut pthread_rwlock_t,
    attr: *const pthread_rwlockattr_t,
) -> c_int {
    let (mut shared, mut preference) = (libc::PTHREAD_PROCESS_PRIVATE, 0);
    if !attr.is_null() {
        // SAFETY: the caller's attributes, and integers of ours.
        unsafe {
            pthread_rwlockattr_getpshared(attr, &mut shared);
            pthread_rwlockattr_getkind_np(attr, &mut preference);
        }
    }
    if kind() == Kind::Pthread || shared != libc::PTHREAD_PROCESS_PRIVATE {
        return real!(pthread_rwlock_init(
            lock => *mut pthread_rwlock_t, attr => *const pthread_rwlockattr_t));
    }
    // SAFETY: the caller's memory, which is larger.
    unsafe { lock.cast::<RwLock>().write(RwLock::new(preference as u32)) };
    0
}

/// As glibc's, this does not look whether somebody has it.
#[no_mangle]
pub unsafe extern "C" fn pthread_rwlock_destroy(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's lock.
    match unsafe { ours(lock) } {
        None => real!(pthread_rwlock_destroy(lock => *mut pthread_rwlock_t)),
        Some(_) => 0,
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's lock.
    match unsafe { ours(lock) } {
        None => real!(pthread_rwlock_rdlock(lock => *mut pthread_rwlock_t)),
        Some(lock) => lock.read(None),
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_rwlock_tryrdlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's lock.
    match unsafe { ours(lock) } {
        None => real!(pthread_rwlock_tryrdlock(lock => *mut pthread_rwlock_t)),
        Some(lock) => lock.try_read(),
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_rwlock_wrlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's lock.
    match unsafe { ours(lock) } {
        None => latencies::timed(
            || {
                Some(real!(pthread_rwlock_trywrlock(lock => *mut pthread_rwlock_t)))
                    .filter(|&result| result != libc::EBUSY)
            },
            || real!(pthread_rwlock_wrlock(lock => *mut pthread_rwlock_t)),
        ),
        Some(lock) => lock.write(None),
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_rwlock_trywrlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's lock.
    match unsafe { ours(lock) } {
        None => real!(pthread_rwlock_trywrlock(lock => *mut pthread_rwlock_t)),
        Some(lock) => lock.try_write(),
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_rwlock_unlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's lock.
    match unsafe { ours(lock) } {
        None => real!(pthread_rwlock_unlock(lock => *mut pthread_rwlock_t)),
        Some(lock) => {
            lock.release();
            0
        }
    }
}

/// As glibc's, EINVAL comes first.
unsafe fn until(
    clock: clockid_t,
    at: *const timespec,
    take: impl FnOnce(Option<&Deadline>) -> c_int,
) -> c_int {
    // SAFETY: the caller's time.
    match Deadline::new(clock, unsafe { &*at }) {
        None => libc::EINVAL,
        deadline => take(deadline.as_ref()),
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_rwlock_timedrdlock(
    lock: *mut pthread_rwlock_t,
    at: *const timespec,
) -> c_int {
    // SAFETY: the caller's lock.
    match unsafe { ours(lock) } {
        None => {
            real!(pthread_rwlock_timedrdlock(lock => *mut pthread_rwlock_t, at => *const timespec))
        }
        // SAFETY: the caller's time.
        Some(lock) => unsafe { until(libc::CLOCK_REALTIME, at, |at| lock.read(at)) },
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_rwlock_timedwrlock(
    lock: *mut pthread_rwlock_t,
    at: *const timespec,
) -> c_int {
    // SAFETY: the caller's lock.
    match unsafe { ours(lock) } {
        None => {
            real!(pthread_rwlock_timedwrlock(lock => *mut pthread_rwlock_t, at => *const timespec))
        }
        // SAFETY: the caller's time.
        Some(lock) => unsafe { until(libc::CLOCK_REALTIME, at, |at| lock.write(at)) },
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_rwlock_clockrdlock(
    lock: *mut pthread_rwlock_t,
    clock: clockid_t,
    at: *const timespec,
) -> c_int {
    // SAFETY: the caller's lock.
    match unsafe { ours(lock) } {
        None => real!(pthread_rwlock_clockrdlock(
            lock => *mut pthread_rwlock_t, clock => clockid_t, at => *const timespec)),
        // SAFETY: the caller's time.
        Some(lock) => unsafe { until(clock, at, |at| lock.read(at)) },
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_rwlock_clockwrlock(
    lock: *mut pthread_rwlock_t,
    clock: clockid_t,
    at: *const timespec,
) -> c_int {
    // SAFETY: the caller's lock.
    match unsafe { ours(lock) } {
        None => real!(pthread_rwlock_clockwrlock(
            lock => *mut pthread_rwlock_t, clock => clockid_t, at => *const timespec)),
        // SAFETY: the caller's time.
        Some(lock) => unsafe { until(clock, at, |at| lock.write(at)) },
    }
}
