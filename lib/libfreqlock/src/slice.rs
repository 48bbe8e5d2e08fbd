// SPDX-License-Identifier: MIT
//! Asks the kernel not to preempt the holder of a lock: the extension of time slices, by the area of restartable
//! sequences (Linux 7.0, CONFIG_RSEQ_SLICE_EXTENSION; Documentation/userspace-api/rseq.rst).
//!
//! While a thread holds a lock, `request` is set. A kernel that would preempt it then may grant it some
//! microseconds more, which it says in `granted`: the thread gives them back as soon as it holds no lock. What
//! is granted is taken back by whatever else ends the turn, so nothing here has to be exact: a thread whose lock
//! another one has released asks on until it releases one itself.
//!
//! The area is libc's, one for each thread. A kernel says there whether it has the extension, so none without it is
//! asked for anything. From 7.1 on it offers that only where libc registers an area of the size that
//! the kernel wants, as glibc does from 2.41 on.

use crate::thread::{self, Rseq, Thread};
use std::sync::atomic::{compiler_fence, Ordering::Relaxed, Ordering::SeqCst};

/// Of `flags`: the kernel has the extension; the thread may use it.
const AVAILABLE: u32 = 1 << 4;
const ENABLED: u32 = 1 << 5;

// Of <linux/prctl.h>.
const PR_RSEQ_SLICE_EXTENSION: libc::c_int = 79;
const PR_RSEQ_SLICE_EXTENSION_SET: libc::c_ulong = 2;
const PR_RSEQ_SLICE_EXT_ENABLE: libc::c_ulong = 1;

/// The same number for all that the library is built for.
const SYS_RSEQ_SLICE_YIELD: libc::c_long = 471;

/// What the thread can ask by; NULL: it cannot. To be looked up once for each thread.
#[cold]
pub(crate) fn find() -> *const Rseq {
    let area = thread::rseq();
    // SAFETY: NULL, or the thread's own, which is there for as long as the thread, and as large.
    match unsafe { area.as_ref() } {
        Some(rseq) if is_enabled(rseq) || enable(rseq) => area,
        _ => std::ptr::null(),
    }
}

fn is_enabled(rseq: &Rseq) -> bool {
    rseq.flags.load(Relaxed) & ENABLED != 0
}

fn enable(rseq: &Rseq) -> bool {
    let is_there = rseq.flags.load(Relaxed) & AVAILABLE != 0;
    is_there && {
        let (set, on) = (PR_RSEQ_SLICE_EXTENSION_SET, PR_RSEQ_SLICE_EXT_ENABLE);
        // SAFETY: numbers alone.
        unsafe { libc::prctl(PR_RSEQ_SLICE_EXTENSION, set, on, 0, 0) == 0 }
    }
}

/// The thread has taken a lock.
#[inline]
pub(crate) fn begin(me: &Thread) {
    // SAFETY: from find(), for this thread.
    if let Some(rseq) = unsafe { me.slice.get().as_ref() } {
        rseq.request.store(1, Relaxed);
        compiler_fence(SeqCst);
    }
}

/// It has released one; `holds` says whether it has others.
#[inline]
pub(crate) fn end(me: &Thread, holds: bool) {
    // SAFETY: as above.
    if let Some(rseq) = unsafe { me.slice.get().as_ref() } {
        if !holds {
            rseq.give_back(|| {
                // SAFETY: no arguments.
                unsafe { libc::syscall(SYS_RSEQ_SLICE_YIELD) };
            });
        }
    }
}

impl Rseq {
    fn give_back(&self, give_up_cpu: impl FnOnce()) {
        compiler_fence(SeqCst);
        self.request.store(0, Relaxed);
        if self.granted.load(Relaxed) != 0 {
            give_up_cpu();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, AtomicU8};

    fn rseq(flags: u32) -> Rseq {
        Rseq {
            cpu_id_start: AtomicU32::new(0),
            cpu_id: AtomicU32::new(0),
            rseq_cs: Default::default(),
            flags: AtomicU32::new(flags),
            node_id: AtomicU32::new(0),
            mm_cid: AtomicU32::new(0),
            request: AtomicU8::new(0),
            granted: AtomicU8::new(0),
        }
    }

    #[test]
    fn only_a_kernel_that_has_it_is_asked() {
        assert!(!is_enabled(&rseq(0)) && !enable(&rseq(0)));
        assert!(is_enabled(&rseq(AVAILABLE | ENABLED)));
        // This kernel has it or says that it has not.
        let found = find();
        // SAFETY: this thread's.
        assert!(found.is_null() || is_enabled(unsafe { &*found }));
    }

    #[test]
    fn what_was_granted_is_given_back_once_and_only_that() {
        let area = rseq(ENABLED);
        for granted in [0, 1] {
            area.request.store(1, Relaxed);
            area.granted.store(granted, Relaxed);
            let mut gave_back = 0;
            area.give_back(|| gave_back += 1);
            assert_eq!(area.request.load(Relaxed), 0);
            assert_eq!(gave_back, granted);
        }
    }

    #[test]
    fn it_is_asked_for_while_a_lock_is_held() {
        let area = rseq(ENABLED);
        let is_asked = || area.request.load(Relaxed) == 1;
        let (outer, inner) = (crate::Lock::new(), crate::Lock::new());
        let raw = crate::RawLock::new();
        // The thread's first lock looks the real area up.
        outer.lock().unwrap();
        outer.unlock().unwrap();
        let before = thread::with(|me| me.slice.replace(&area));
        outer.lock().unwrap();
        assert!(is_asked());
        inner.try_lock().unwrap();
        inner.unlock().unwrap();
        assert!(is_asked(), "the outer one is held yet");
        inner.lock().unwrap();
        outer.unlock().unwrap();
        assert!(is_asked(), "the inner one is");
        inner.unlock().unwrap();
        assert!(!is_asked());
        raw.lock();
        assert!(is_asked());
        raw.unlock();
        assert!(!is_asked());
        thread::with(|me| me.slice.set(before));
    }
}
