// SPDX-License-Identifier: MIT
//! What a fork changes: the number of the thread that forked, and which waiters there are. Those of
//! another generation are threads that it has left behind.

use crate::os;
use crate::slice;
use crate::thread::{self, Thread};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// How many forks lie between this process and the one that loaded the library.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

/// Counts forks from now on. Handlers of forks run in the order of their registration, so who
/// calls this before other libraries register theirs has the locks ready for them.
pub fn count_forks() {
    static FORK: AtomicBool = AtomicBool::new(false);
    os::in_children(&FORK, in_child);
}

/// TID of the calling thread.
#[inline]
pub fn tid() -> u32 {
    thread::with(number)
}

#[inline]
pub(crate) fn number(me: &Thread) -> u32 {
    if me.tid.get() == 0 {
        enter(me);
    }
    me.tid.get()
}

/// The thread's first lock.
#[cold]
fn enter(me: &Thread) {
    count_forks();
    me.slice.set(slice::find());
    me.tid.set(os::gettid());
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Relaxed);
    thread::with(|me| {
        if me.tid.get() != 0 {
            me.tid.set(os::gettid());
        }
    });
}
