// SPDX-License-Identifier: MIT
//! The reorderable lock without knowledge of who may do what: it has an owner's number for those
//! who look for it, but any thread may release it, and nothing is found by it.
//!
//! Liu et al., "Asymmetry-aware Scalable Locking" (PPoPP 2022), algorithms 1 and 3. A thread on a big CPU queues up at
//! once. One on a little CPU stands by until nobody has the lock or waits for it, or until its
//! window is over, and queues up then: so fast threads take the lock before it, for that
//! long at most. Who stands by spins for a bounded time, with pauses that double, then sleeps, each
//! time for an eighth of what it has waited, so that it finds a free lock at most so much too late.

use crate::epoch::{self, epoch_window, WINDOW_MOST};
use crate::fork;
use crate::hint;
use crate::os::{self, Deadline};
use crate::queue::Queue;
use crate::slice;
use crate::speed::on_big_cpu;
use crate::thread::{self, Thread};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Pauses between two looks of who stands by, at most.
const PAUSES_MOST: u32 = 32;
/// The shortest sleep of who stands by: less is less than the timers' slack.
const SLEEP_LEAST: u64 = 50_000;

/// A lock of 40 bytes, free when all of them are zero, laid out as a mutex of glibc is.
#[repr(C)]
pub struct RawLock {
    pub(crate) queue: Queue,
    /// Of the holder: what it held before it took this one.
    pub(crate) outer: Cell<*const ()>,
}

// SAFETY: `outer` is of the holder alone, and all else is atomic.
unsafe impl Send for RawLock {}
// SAFETY: as above.
unsafe impl Sync for RawLock {}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(
    size_of::<RawLock>() == 40 && size_of::<RawLock>() <= size_of::<libc::pthread_mutex_t>()
);

impl Default for RawLock {
    fn default() -> Self {
        Self::new()
    }
}

impl RawLock {
    /// A free lock.
    pub const fn new() -> Self {
        RawLock {
            queue: Queue::new(),
            outer: Cell::new(ptr::null()),
        }
    }

    /// Takes it: at once, in its turn, on a big CPU; on a little one after the window of the epoch
    /// that the thread is in, at most. A thread that has it already waits for ever.
    #[inline]
    pub fn lock(&self) {
        thread::with(|me| {
            if !self.queue.try_acquire() {
                self.wait(me, window);
            }
            self.own(me);
        });
    }

    /// Takes it in its turn; false: that did not come before the deadline.
    #[inline]
    pub fn lock_until(&self, deadline: &Deadline) -> bool {
        thread::with(|me| {
            let taken = self.queue.try_acquire() || self.wait_until(me, deadline);
            if taken {
                self.own(me);
            }
            taken
        })
    }

    /// Takes it if that can be done without waiting.
    #[inline]
    pub fn try_lock(&self) -> bool {
        thread::with(|me| {
            let taken = self.queue.try_acquire();
            if taken {
                self.own(me);
            }
            taken
        })
    }

    /// Lets it go, whoever took it. Afterwards its memory is not touched.
    #[inline]
    pub fn unlock(&self) {
        thread::with(|me| {
            if self.queue.owner.load(Relaxed) == me.tid.get() {
                // Out of order, nothing is reported: what was held before may have been released.
                let last = me.hint.holds.load(Relaxed) == ptr::from_ref(self) as u64;
                let outer = if last { self.outer.get() } else { ptr::null() };
                me.hint.holds.store(outer as u64, Relaxed);
            }
            self.queue.owner.store(0, Relaxed);
            self.queue.release();
            slice::end(me, me.hint.holds.load(Relaxed) != 0);
        });
    }

    /// Whether somebody has it or waits for it.
    pub fn is_busy(&self) -> bool {
        self.queue.is_busy()
    }

    /// The TID of who has it, 0 if nobody has.
    pub fn owner(&self) -> &AtomicU32 {
        &self.queue.owner
    }

    /// Where a mutex of glibc's has how often a recursive one is locked. The lock does not look at it.
    pub fn count(&self) -> &AtomicU32 {
        &self.queue.count
    }

    /// Where a mutex of glibc's has its type. The lock does not look at it.
    pub fn kind(&self) -> &AtomicU32 {
        &self.queue.kind
    }

    /// Waits for it until it has it, standing by for the window first.
    #[cold]
    pub(crate) fn wait(&self, me: &Thread, window: impl FnOnce() -> u64) {
        fork::count_forks();
        let owner = self.queue.owner.load(Relaxed);
        hint::begin_wait(me, ptr::from_ref(self).cast(), owner as i32);
        let began = epoch::wait_began(me);
        let window = window().min(WINDOW_MOST);
        if window == 0 || !self.stand_by(window) {
            self.queue.acquire();
        }
        epoch::wait_ended(me, began);
        hint::end_wait(me);
    }

    #[cold]
    fn wait_until(&self, me: &Thread, deadline: &Deadline) -> bool {
        fork::count_forks();
        let owner = self.queue.owner.load(Relaxed);
        hint::begin_wait(me, ptr::from_ref(self).cast(), owner as i32);
        let taken = self.queue.acquire_until(deadline);
        hint::end_wait(me);
        taken
    }

    /// Takes it if it is free within `window` ns; else false.
    fn stand_by(&self, window: u64) -> bool {
        let spin = self.queue.learned.spin();
        let began = os::now();
        let mut pauses = 1;
        loop {
            if self.queue.try_acquire_idle() {
                return true;
            }
            let waited = os::now() - began;
            if waited >= window {
                return false;
            }
            if waited < spin {
                (0..pauses).for_each(|_| os::pause());
                pauses = (pauses * 2).min(PAUSES_MOST);
            } else {
                os::sleep((waited / 8).max(SLEEP_LEAST).min(window - waited));
            }
        }
    }

    #[inline]
    fn own(&self, me: &Thread) {
        self.queue.owner.store(fork::number(me), Relaxed);
        self.outer.set(me.hint.holds.load(Relaxed) as *const ());
        me.hint.holds.store(ptr::from_ref(self) as u64, Relaxed);
        slice::begin(me);
    }
}

/// For how long who waits on the CPU that it is on stands by, in ns.
pub(crate) fn window() -> u64 {
    if on_big_cpu() {
        0
    } else {
        epoch_window()
    }
}
