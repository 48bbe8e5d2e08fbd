// SPDX-License-Identifier: MIT
//! The functions of `lib/freqlock.h`, which says what they do: here they are translated, no more.
//! Each takes pointers that are valid for the time of the call, or NULL where the header says so.
#![allow(missing_docs, clippy::missing_safety_doc)]

use libc::c_int;
use libfreqlock::{hint, EpochError, Lock, LockError, WaitSite};
use std::ffi::c_void;
use std::sync::atomic::AtomicU32;

/// FREQLOCK_VERSION.
const VERSION: u32 = 1;

fn of_lock(result: Result<(), LockError>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(LockError::WouldDeadlock) => libc::EDEADLK,
        Err(LockError::NotOwner) => libc::EPERM,
        Err(LockError::Busy) => libc::EBUSY,
    }
}

fn of_epoch(result: Result<(), EpochError>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(EpochError::AlreadyOpen) => libc::EBUSY,
        Err(EpochError::NotOpen) => libc::EINVAL,
        Err(EpochError::InnerOpen) => libc::ENOTEMPTY,
        Err(EpochError::NoMemory) => libc::ENOMEM,
        Err(EpochError::Busy) => libc::EAGAIN,
    }
}

fn of_wait(is_over: bool) -> c_int {
    if is_over {
        0
    } else {
        libc::ETIMEDOUT
    }
}

/// FREQLOCK_FOREVER is none.
fn timeout(ns: u64) -> Option<u64> {
    Some(ns).filter(|&ns| ns != u64::MAX)
}

/// NULL is a site for all.
unsafe fn site<'a>(site: *const WaitSite) -> &'a WaitSite {
    static ANYWHERE: WaitSite = WaitSite::new();
    // SAFETY: valid or NULL, by the header.
    unsafe { site.as_ref() }.unwrap_or(&ANYWHERE)
}

#[no_mangle]
pub extern "C" fn freqlock_version() -> u32 {
    VERSION
}

#[no_mangle]
pub unsafe extern "C" fn freqlock_init(lock: *mut Lock) -> c_int {
    // SAFETY: the caller's memory, as large as a lock.
    unsafe { lock.write(Lock::new()) };
    0
}

#[no_mangle]
pub unsafe extern "C" fn freqlock_destroy(lock: *const Lock) -> c_int {
    // SAFETY: a lock.
    of_lock(unsafe { &*lock }.check_unused())
}

#[no_mangle]
pub unsafe extern "C" fn freqlock_lock(lock: *const Lock) -> c_int {
    // SAFETY: a lock.
    of_lock(unsafe { &*lock }.lock())
}

#[no_mangle]
pub unsafe extern "C" fn freqlock_lock_immediately(lock: *const Lock) -> c_int {
    // SAFETY: a lock.
    of_lock(unsafe { &*lock }.lock_immediately())
}

#[no_mangle]
pub unsafe extern "C" fn freqlock_lock_reorder(lock: *const Lock, window_ns: u64) -> c_int {
    // SAFETY: a lock.
    of_lock(unsafe { &*lock }.lock_reorder(window_ns))
}

#[no_mangle]
pub unsafe extern "C" fn freqlock_trylock(lock: *const Lock) -> c_int {
    // SAFETY: a lock.
    of_lock(unsafe { &*lock }.try_lock())
}

#[no_mangle]
pub unsafe extern "C" fn freqlock_unlock(lock: *const Lock) -> c_int {
    // SAFETY: a lock.
    of_lock(unsafe { &*lock }.unlock())
}

#[no_mangle]
pub extern "C" fn freqlock_is_big() -> c_int {
    c_int::from(libfreqlock::on_big_cpu())
}

#[no_mangle]
pub extern "C" fn freqlock_epoch_start(id: u32) -> c_int {
    of_epoch(libfreqlock::epoch_start(id))
}

#[no_mangle]
pub extern "C" fn freqlock_epoch_end(id: u32, slo_ns: u64) -> c_int {
    of_epoch(libfreqlock::epoch_end(id, slo_ns))
}

#[no_mangle]
pub extern "C" fn freqlock_epoch_window() -> u64 {
    libfreqlock::epoch_window()
}

#[no_mangle]
pub extern "C" fn freqlock_set_percentile(per_mille: u32) -> c_int {
    if libfreqlock::set_percentile(per_mille) {
        0
    } else {
        libc::EINVAL
    }
}

#[no_mangle]
pub unsafe extern "C" fn freqlock_wait_until(
    at: *const WaitSite,
    addr: *const AtomicU32,
    value: u32,
    timeout_ns: u64,
) -> c_int {
    // SAFETY: a word that others write, and a site or NULL.
    let (at, word) = unsafe { (site(at), &*addr) };
    of_wait(at.wait_until(word, value, timeout(timeout_ns)))
}

#[no_mangle]
pub unsafe extern "C" fn freqlock_wait_while(
    at: *const WaitSite,
    waiting: unsafe extern "C" fn(*mut c_void) -> c_int,
    arg: *mut c_void,
    timeout_ns: u64,
) -> c_int {
    // SAFETY: a site or NULL.
    let at = unsafe { site(at) };
    // SAFETY: the caller's function with the argument that it wants.
    of_wait(at.wait_for(timeout(timeout_ns), || unsafe { waiting(arg) } == 0))
}

#[no_mangle]
pub unsafe extern "C" fn freqlock_wake(addr: *const AtomicU32) {
    // SAFETY: a word that others wait for.
    libfreqlock::wake(unsafe { &*addr });
}

#[no_mangle]
pub extern "C" fn freqlock_hint_hold(lock: *const c_void) {
    hint::hold(lock.cast());
}

#[no_mangle]
pub extern "C" fn freqlock_hint_release() {
    hint::release();
}

#[no_mangle]
pub extern "C" fn freqlock_hint_wait(lock: *const c_void, owner: i32) {
    hint::wait(lock.cast(), owner);
}

#[no_mangle]
pub extern "C" fn freqlock_hint_wait_over() {
    hint::wait_over();
}
