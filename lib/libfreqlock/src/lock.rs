// SPDX-License-Identifier: MIT
//! The reorderable lock: a queue, and those who stand by.
//!
//! Liu et al., "Asymmetry-aware Scalable Locking" (PPoPP 2022), algorithms 1 and 3. A thread on a big CPU queues up at
//! once. One on a little CPU stands by until nobody has the lock or waits for it, or until its
//! window is over, and queues up then: so fast threads take the lock before it, for that
//! long at most. Who stands by spins for a bounded time, with pauses that double, then sleeps, each
//! time for an eighth of what it has waited, so that it finds a free lock at most so much too late.

use crate::epoch::{epoch_window, WINDOW_MOST};
use crate::hint;
use crate::os;
use crate::queue::Queue;
use crate::speed::on_big_cpu;
use crate::thread::{self, Thread};
use std::cell::Cell;
use std::fmt;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Once;

/// Pauses between two looks of who stands by, at most.
const PAUSES_MOST: u32 = 32;
/// The shortest sleep of who stands by: less is less than the timers' slack.
const SLEEP_LEAST: u64 = 50_000;

/// What is wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockError {
    /// The calling thread has it already; it still has.
    WouldDeadlock,
    /// The calling thread does not have it; whoever has it still has.
    NotOwner,
    /// Somebody has it, or waits for it.
    Busy,
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LockError::WouldDeadlock => "the thread holds this lock already",
            LockError::NotOwner => "the thread does not hold this lock",
            LockError::Busy => "the lock is held or waited for",
        })
    }
}

impl std::error::Error for LockError {}

/// A lock of 40 bytes, free when all of them are zero. It has no data: unlike std's mutexes it
/// is one that C programs use, too.
#[repr(C)]
pub struct Lock {
    queue: Queue,
    /// Of the holder: the lock that it took before this one and still holds.
    outer: Cell<*const ()>,
}

// SAFETY: `outer` is of the holder alone, and all else is atomic.
unsafe impl Send for Lock {}
// SAFETY: as above.
unsafe impl Sync for Lock {}

#[cfg(target_pointer_width = "64")]
const _: () =
    assert!(size_of::<Lock>() == 40 && size_of::<Lock>() <= size_of::<libc::pthread_mutex_t>());

impl Default for Lock {
    fn default() -> Self {
        Self::new()
    }
}

impl Lock {
    /// A free lock.
    pub const fn new() -> Self {
        Lock {
            queue: Queue::new(),
            outer: Cell::new(ptr::null()),
        }
    }

    /// Takes it: at once, in its turn, on a big CPU; on a little one after the window of the epoch
    /// that the thread is in, at most.
    #[inline]
    pub fn lock(&self) -> Result<(), LockError> {
        self.acquire(|| if on_big_cpu() { 0 } else { epoch_window() })
    }

    /// Takes it in its turn.
    #[inline]
    pub fn lock_immediately(&self) -> Result<(), LockError> {
        self.acquire(|| 0)
    }

    /// Takes it when nobody has it or waits for it; after `window` ns (100 ms at most) in its turn.
    #[inline]
    pub fn lock_reorder(&self, window: u64) -> Result<(), LockError> {
        self.acquire(|| window)
    }

    /// Takes it if that can be done without waiting.
    #[inline]
    pub fn try_lock(&self) -> Result<(), LockError> {
        thread::with(|me| {
            if !self.queue.try_acquire() {
                return Err(LockError::Busy);
            }
            self.taken(me);
            Ok(())
        })
    }

    /// Lets it go.
    #[inline]
    pub fn unlock(&self) -> Result<(), LockError> {
        thread::with(|me| {
            // Only this thread can have written its own number.
            if self.queue.owner.load(Relaxed) != me.tid.get() || me.tid.get() == 0 {
                return Err(LockError::NotOwner);
            }
            if me.held.get() == ptr::from_ref(self).cast() {
                me.held.set(self.outer.get());
            } else {
                self.unlink(me);
            }
            me.hint.holds.store(me.held.get() as u64, Relaxed);
            self.queue.owner.store(0, Relaxed);
            self.queue.release();
            Ok(())
        })
    }

    /// Whether nobody has it or waits for it, so that its memory can go.
    pub fn check_unused(&self) -> Result<(), LockError> {
        if self.queue.is_busy() {
            Err(LockError::Busy)
        } else {
            Ok(())
        }
    }

    /// Whether threads wait for it, those who stand by left out.
    pub fn has_waiters(&self) -> bool {
        self.queue.has_waiters()
    }

    #[inline]
    fn acquire(&self, window: impl FnOnce() -> u64) -> Result<(), LockError> {
        thread::with(|me| {
            if !self.queue.try_acquire() {
                self.acquire_contended(me, window)?;
            }
            self.taken(me);
            Ok(())
        })
    }

    #[cold]
    fn acquire_contended(
        &self,
        me: &Thread,
        window: impl FnOnce() -> u64,
    ) -> Result<(), LockError> {
        let owner = self.queue.owner.load(Relaxed);
        if owner != 0 && owner == me.tid.get() {
            return Err(LockError::WouldDeadlock);
        }
        hint::begin_wait(me, ptr::from_ref(self).cast(), owner as i32);
        let window = window().min(WINDOW_MOST);
        if window == 0 || !self.stand_by(window) {
            self.queue.acquire();
        }
        hint::end_wait(me);
        Ok(())
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
    fn taken(&self, me: &Thread) {
        if me.tid.get() == 0 {
            enter(me);
        }
        self.queue.owner.store(me.tid.get(), Relaxed);
        self.outer.set(me.held.get());
        me.held.set(ptr::from_ref(self).cast());
        me.hint.holds.store(ptr::from_ref(self) as u64, Relaxed);
    }

    /// Takes it out of those that the thread holds: it was not the last one it took.
    #[cold]
    fn unlink(&self, me: &Thread) {
        let inner = held_by(me).find(|inner| inner.outer.get() == ptr::from_ref(self).cast());
        if let Some(inner) = inner {
            inner.outer.set(self.outer.get());
        }
    }
}

/// The locks that a thread holds, the last one first.
fn held_by(me: &Thread) -> impl Iterator<Item = &Lock> {
    // SAFETY: the thread holds all of them, so they are there.
    let at = |lock: *const ()| unsafe { lock.cast::<Lock>().as_ref() };
    std::iter::successors(at(me.held.get()), move |lock| at(lock.outer.get()))
}

/// The thread's first lock.
#[cold]
fn enter(me: &Thread) {
    static FORK: Once = Once::new();
    os::in_children(&FORK, in_child);
    me.tid.set(os::gettid());
}

/// What the thread held it holds in the child, too, where it has another number and is alone.
extern "C" fn in_child() {
    thread::with(|me| {
        if me.tid.get() == 0 {
            return;
        }
        me.tid.set(os::gettid());
        for held in held_by(me) {
            held.queue.owner.store(me.tid.get(), Relaxed);
            held.queue.forget_waiters();
        }
    });
}
