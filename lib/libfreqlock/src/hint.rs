// SPDX-License-Identifier: MIT
//! Hints: what a thread reports of its locks to scx_freqlock, by the ABI of `bpf/hint.h`.
//!
//! A report is a store or two into the thread's own memory. The scheduler is shown that memory
//! by a system call when a thread has something to report, at most once a second, and only where
//! scx_freqlock runs: so a scheduler that is started later, or again, is shown it too. A child
//! after a fork shows its own. Where that scheduler does not run nobody reads what is stored.

use crate::os::{self, NS_PER_SEC};
use crate::thread::{self, Thread};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// FL_HINT_SHOW: no value that a futex has.
const SHOW: u32 = 0x6672_6c71;

/// Where the kernel has the name of the scheduler that is loaded.
const OPS: &std::ffi::CStr = c"/sys/kernel/sched_ext/root/ops";

/// The calling thread has taken `lock`, which is any address that all its users agree on.
#[inline]
pub fn hold(lock: *const ()) {
    thread::with(|me| {
        me.hint.holds.store(lock as u64, Relaxed);
        if me.shown.get() == 0 {
            show(me);
        }
    });
}

/// It has released the lock that it reported last, and goes on with a lock of this library, if it holds one.
#[inline]
pub fn release() {
    thread::with(|me| me.hint.holds.store(me.held.get() as u64, Relaxed));
}

/// It begins to spin for `lock`, which the thread `owner` holds; 0: not known.
#[inline]
pub fn wait(lock: *const (), owner: i32) {
    thread::with(|me| begin_wait(me, lock, owner));
}

/// It no longer does.
#[inline]
pub fn wait_over() {
    thread::with(end_wait);
}

pub(crate) fn begin_wait(me: &Thread, lock: *const (), owner: i32) {
    me.hint.owner.store(owner, Relaxed);
    me.hint.waits_for.store(lock as u64, Relaxed);
    if me.shown.get() == 0 || os::coarse_now() - me.shown.get() >= NS_PER_SEC {
        show(me);
    }
}

pub(crate) fn end_wait(me: &Thread) {
    me.hint.waits_for.store(0, Relaxed);
}

#[cold]
fn show(me: &Thread) {
    static FORK: AtomicBool = AtomicBool::new(false);
    os::in_children(&FORK, in_child);
    me.shown.set(os::coarse_now());
    if scheduler_is_there(OPS) {
        // Comes back at once, for the word has another value.
        os::futex_wait(&me.hint.version, SHOW, None);
    }
}

/// True if the scheduler that is loaded is called freqlock. Without allocating: a lock may be
/// taken by an allocator.
fn scheduler_is_there(path: &std::ffi::CStr) -> bool {
    os::starts_with(path, b"freqlock")
}

extern "C" fn in_child() {
    thread::with(|me| {
        me.shown.set(0);
        // It was for a thread of the parent.
        end_wait(me);
    });
}

#[cfg(test)]
mod tests;
