// SPDX-License-Identifier: MIT
//! Mutexes: their types over a lock that has none.
//!
//! Results are glibc's. A normal mutex may be unlocked by any thread, as programs do that use one for
//! a signal between threads.

use crate::kind::Kind;
use crate::real::real;
use crate::settings::kind;
use crate::words::Words;
use libc::{c_int, clockid_t, pthread_mutex_t, pthread_mutexattr_t, timespec};
use libfreqlock::{latencies, tid, Deadline};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

/// Of `kind`: the type. Other bits are those of mutexes that stay libc's, and of destroyed ones.
const TYPE: u32 = 3;
const RECURSIVE: u32 = libc::PTHREAD_MUTEX_RECURSIVE as u32;
const ERROR_CHECKING: u32 = libc::PTHREAD_MUTEX_ERRORCHECK as u32;
/// What glibc leaves there: whatever comes next fails with EINVAL.
const DESTROYED: u32 = u32::MAX;

extern "C" {
    fn pthread_mutexattr_gettype(attr: *const pthread_mutexattr_t, value: *mut c_int) -> c_int;
    fn pthread_mutexattr_getpshared(attr: *const pthread_mutexattr_t, value: *mut c_int) -> c_int;
    fn pthread_mutexattr_getrobust(attr: *const pthread_mutexattr_t, value: *mut c_int) -> c_int;
    fn pthread_mutexattr_getprotocol(attr: *const pthread_mutexattr_t, value: *mut c_int) -> c_int;
}

struct Mutex(Words);

impl Mutex {
    fn is_mine(&self) -> bool {
        self.0.owner.load(Relaxed) == tid()
    }

    fn kind(&self) -> u32 {
        self.0.kind.load(Relaxed)
    }

    /// What locking returns at once, if it is locked by the calling thread; none for normal ones, which wait.
    fn relock(&self, error_checking: c_int) -> Option<c_int> {
        match self.kind() {
            RECURSIVE if self.is_mine() => Some(self.count_up()),
            ERROR_CHECKING if self.is_mine() => Some(error_checking),
            _ => None,
        }
    }

    fn count_up(&self) -> c_int {
        match self.0.count.load(Relaxed).checked_add(1) {
            Some(count) => self.0.count.store(count, Relaxed),
            None => return libc::EAGAIN,
        }
        0
    }

    #[inline]
    fn taken(&self) -> c_int {
        if self.kind() == RECURSIVE {
            self.0.count.store(1, Relaxed);
        }
        0
    }

    #[inline]
    fn lock(&self) -> c_int {
        if let Some(result) = self.relock(libc::EDEADLK) {
            return result;
        }
        self.0.acquire();
        self.taken()
    }

    #[inline]
    fn try_lock(&self) -> c_int {
        if let Some(result) = self.relock(libc::EBUSY) {
            return result;
        }
        if !self.0.try_acquire() {
            return libc::EBUSY;
        }
        self.taken()
    }

    /// As glibc's: a time that is none does not matter where nobody has to wait.
    fn lock_until(&self, clock: clockid_t, at: &timespec) -> c_int {
        if let Some(result) = self.relock(libc::EDEADLK) {
            return result;
        }
        if !self.0.try_acquire() {
            match Deadline::new(clock, at) {
                None => return libc::EINVAL,
                Some(deadline) if !self.0.acquire_until(&deadline) => return libc::ETIMEDOUT,
                Some(_) => (),
            }
        }
        self.taken()
    }

    #[inline]
    fn unlock(&self) -> c_int {
        let kind = self.kind();
        if kind == RECURSIVE || kind == ERROR_CHECKING {
            if !self.is_mine() {
                return libc::EPERM;
            }
            let count = self.0.count.load(Relaxed);
            if kind == RECURSIVE {
                self.0.count.store(count - 1, Relaxed);
                if count > 1 {
                    return 0;
                }
            }
        }
        self.0.release();
        0
    }
}

/// None: it stays libc's.
#[inline]
unsafe fn ours<'a>(mutex: *mut pthread_mutex_t) -> Option<&'a Mutex> {
    // SAFETY: a mutex, whose words are all atomic here.
    let found = unsafe { &*mutex.cast::<Mutex>() };
    (found.kind() & !TYPE == 0 && kind() != Kind::Pthread).then_some(found)
}

/// Whether a mutex is the library's, so that libc's functions cannot use it.
pub unsafe fn is_ours(mutex: *mut pthread_mutex_t) -> bool {
    // SAFETY: the caller's mutex.
    unsafe { ours(mutex) }.is_some()
}

/// The type of one that the library can be; none for those that stay libc's.
unsafe fn type_of(attr: *const pthread_mutexattr_t) -> Option<u32> {
    if attr.is_null() {
        return Some(0);
    }
    let get = |read: unsafe extern "C" fn(*const pthread_mutexattr_t, *mut c_int) -> c_int| {
        let mut value = 0;
        // SAFETY: the caller's attributes, and an integer of ours.
        unsafe { read(attr, &mut value) };
        value
    };
    let special = get(pthread_mutexattr_getpshared)
        | get(pthread_mutexattr_getrobust)
        | get(pthread_mutexattr_getprotocol);
    (special == 0).then_some(get(pthread_mutexattr_gettype) as u32 & TYPE)
}

const _: () = assert!(
    libc::PTHREAD_PROCESS_PRIVATE | libc::PTHREAD_MUTEX_STALLED | libc::PTHREAD_PRIO_NONE == 0
);

#[no_mangle]
pub unsafe extern "C" fn pthread_mutex_init(
    mutex: *mut pthread_mutex_t,
    attr: *const pthread_mutexattr_t,
) -> c_int {
    // SAFETY: the caller's attributes.
    match unsafe { type_of(attr) }.filter(|_| kind() != Kind::Pthread) {
        None => {
            real!(pthread_mutex_init(mutex => *mut pthread_mutex_t, attr => *const pthread_mutexattr_t))
        }
        Some(kind) => {
            // SAFETY: the caller's memory, as large as a mutex; all zero is free.
            unsafe { ptr::write_bytes(mutex.cast::<Mutex>(), 0, 1) };
            // SAFETY: as above.
            unsafe { &*mutex.cast::<Mutex>() }
                .0
                .kind
                .store(kind, Relaxed);
            0
        }
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_mutex_destroy(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    match unsafe { ours(mutex) } {
        None => real!(pthread_mutex_destroy(mutex => *mut pthread_mutex_t)),
        Some(mutex) if mutex.0.is_busy() => libc::EBUSY,
        Some(mutex) => {
            mutex.0.kind.store(DESTROYED, Relaxed);
            0
        }
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    match unsafe { ours(mutex) } {
        None => latencies::timed(
            || {
                Some(real!(pthread_mutex_trylock(mutex => *mut pthread_mutex_t)))
                    .filter(|&result| result != libc::EBUSY)
            },
            || real!(pthread_mutex_lock(mutex => *mut pthread_mutex_t)),
        ),
        Some(mutex) => mutex.lock(),
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    match unsafe { ours(mutex) } {
        None => real!(pthread_mutex_trylock(mutex => *mut pthread_mutex_t)),
        Some(mutex) => mutex.try_lock(),
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_mutex_timedlock(
    mutex: *mut pthread_mutex_t,
    at: *const timespec,
) -> c_int {
    // SAFETY: the caller's mutex.
    match unsafe { ours(mutex) } {
        None => {
            real!(pthread_mutex_timedlock(mutex => *mut pthread_mutex_t, at => *const timespec))
        }
        // SAFETY: the caller's time.
        Some(mutex) => mutex.lock_until(libc::CLOCK_REALTIME, unsafe { &*at }),
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_mutex_clocklock(
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    at: *const timespec,
) -> c_int {
    // SAFETY: the caller's mutex.
    match unsafe { ours(mutex) } {
        None => real!(pthread_mutex_clocklock(
            mutex => *mut pthread_mutex_t, clock => clockid_t, at => *const timespec)),
        Some(_) if clock != libc::CLOCK_REALTIME && clock != libc::CLOCK_MONOTONIC => libc::EINVAL,
        // SAFETY: the caller's time.
        Some(mutex) => mutex.lock_until(clock, unsafe { &*at }),
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    match unsafe { ours(mutex) } {
        None => real!(pthread_mutex_unlock(mutex => *mut pthread_mutex_t)),
        Some(mutex) => mutex.unlock(),
    }
}
