// SPDX-License-Identifier: MIT
//! What is kept of each thread, in one place, so that a lock finds all of it at once.

use std::cell::Cell;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicU8};

/// `struct fl_hint` of `bpf/hint.h`: read by the scheduler at ticks.
#[repr(C)]
pub(crate) struct HintWords {
    pub(crate) version: AtomicU32,
    pub(crate) owner: AtomicI32,
    pub(crate) holds: AtomicU64,
    pub(crate) waits_for: AtomicU64,
}

/// `struct rseq` of <linux/rseq.h>, as far as it is used.
#[repr(C)]
pub(crate) struct Rseq {
    pub(crate) cpu_id_start: AtomicU32,
    pub(crate) cpu_id: AtomicU32,
    pub(crate) rseq_cs: [AtomicU32; 2],
    pub(crate) flags: AtomicU32,
    pub(crate) node_id: AtomicU32,
    pub(crate) mm_cid: AtomicU32,
    /// Set by the thread, cleared by it or by the kernel.
    pub(crate) request: AtomicU8,
    /// Written by the kernel alone.
    pub(crate) granted: AtomicU8,
}

const _: () = assert!(std::mem::offset_of!(Rseq, flags) == 16);
const _: () = assert!(std::mem::offset_of!(Rseq, request) == 28);
const _: () = assert!(std::mem::offset_of!(Rseq, granted) == 29);

#[repr(C)]
pub(crate) struct Thread {
    /// 0 until the thread has taken its first lock.
    pub(crate) tid: Cell<u32>,
    /// The `Lock` that it took last of those it holds; each has the one before it.
    pub(crate) held: Cell<*const ()>,
    pub(crate) hint: HintWords,
    /// When the scheduler was shown the hint last, by CLOCK_MONOTONIC_COARSE; 0: never.
    pub(crate) shown: Cell<u64>,
    /// In ns: the window of the epoch that the thread is in.
    pub(crate) epoch_window: Cell<u64>,
    /// The same for waits outside of epochs, and the unit by which it grows; 0: the thread has not waited yet.
    pub(crate) wait_window: Cell<u64>,
    pub(crate) wait_unit: Cell<u64>,
    /// Not 0: the thread is in an epoch.
    pub(crate) in_epoch: Cell<u32>,
    /// What it asks the kernel by not to be preempted; NULL: by nothing.
    pub(crate) slice: Cell<*const Rseq>,
}

extern "C" {
    /// In `thread.c`: Rust's own thread-local memory costs a call of the dynamic linker for each
    /// access from a shared library, which is as much as all else that an uncontended lock does.
    fn freqlock_thread() -> *const Thread;
    /// The same: what libc has registered for restartable sequences, none where it is too small.
    fn freqlock_rseq(least: usize) -> *const Rseq;
}

/// The area of the calling thread; NULL: it has none.
pub(crate) fn rseq() -> *const Rseq {
    // SAFETY: no memory is passed.
    unsafe { freqlock_rseq(size_of::<Rseq>()) }
}

/// Calls `what` with what is kept of the calling thread.
#[inline]
pub(crate) fn with<T>(what: impl FnOnce(&Thread) -> T) -> T {
    // SAFETY: initialised, laid out as Thread is, and there for as long as the thread.
    what(unsafe { &*freqlock_thread() })
}

const _: () = assert!(size_of::<Thread>() == 72 + 2 * size_of::<usize>());
