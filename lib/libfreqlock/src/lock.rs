// SPDX-License-Identifier: MIT
//! The reorderable lock of the library's users, over `reorderable.rs`: it knows what each thread holds.

use crate::fork;
use crate::os;
use crate::reorderable::{self, RawLock};
use crate::slice;
use crate::thread::{self, Thread};
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

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
#[derive(Default)]
#[repr(transparent)]
pub struct Lock(RawLock);

impl Lock {
    /// A free lock.
    pub const fn new() -> Self {
        Lock(RawLock::new())
    }

    /// Takes it: at once, in its turn, on a big CPU; on a little one after the window of the epoch
    /// that the thread is in, at most.
    #[inline]
    pub fn lock(&self) -> Result<(), LockError> {
        self.acquire(reorderable::window)
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
            if !self.0.queue.try_acquire() {
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
            if self.0.queue.owner.load(Relaxed) != me.tid.get() || me.tid.get() == 0 {
                return Err(LockError::NotOwner);
            }
            if me.held.get() == ptr::from_ref(self).cast() {
                me.held.set(self.0.outer.get());
            } else {
                self.unlink(me);
            }
            me.hint.holds.store(me.held.get() as u64, Relaxed);
            self.0.queue.owner.store(0, Relaxed);
            self.0.queue.release();
            slice::end(me, !me.held.get().is_null());
            Ok(())
        })
    }

    /// Whether nobody has it or waits for it, so that its memory can go.
    pub fn check_unused(&self) -> Result<(), LockError> {
        if self.0.queue.is_busy() {
            Err(LockError::Busy)
        } else {
            Ok(())
        }
    }

    /// Whether threads wait for it, those who stand by left out.
    pub fn has_waiters(&self) -> bool {
        self.0.queue.has_waiters()
    }

    #[inline]
    fn acquire(&self, window: impl FnOnce() -> u64) -> Result<(), LockError> {
        thread::with(|me| {
            if !self.0.queue.try_acquire() {
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
        let owner = self.0.queue.owner.load(Relaxed);
        if owner != 0 && owner == me.tid.get() {
            return Err(LockError::WouldDeadlock);
        }
        self.0.wait(me, window);
        Ok(())
    }

    #[inline]
    fn taken(&self, me: &Thread) {
        static FORK: AtomicBool = AtomicBool::new(false);
        self.0.queue.owner.store(fork::number(me), Relaxed);
        os::in_children(&FORK, in_child);
        self.0.outer.set(me.held.get());
        me.held.set(ptr::from_ref(self).cast());
        me.hint.holds.store(ptr::from_ref(self) as u64, Relaxed);
        slice::begin(me);
    }

    /// Takes it out of those that the thread holds: it was not the last one it took.
    #[cold]
    fn unlink(&self, me: &Thread) {
        let inner = held_by(me).find(|inner| inner.0.outer.get() == ptr::from_ref(self).cast());
        if let Some(inner) = inner {
            inner.0.outer.set(self.0.outer.get());
        }
    }
}

/// The locks that a thread holds, the last one first.
fn held_by(me: &Thread) -> impl Iterator<Item = &Lock> {
    // SAFETY: the thread holds all of them, so they are there.
    let at = |lock: *const ()| unsafe { lock.cast::<Lock>().as_ref() };
    std::iter::successors(at(me.held.get()), move |lock| at(lock.0.outer.get()))
}

/// What the thread held it holds in the child, too, where it has another number and is alone.
extern "C" fn in_child() {
    thread::with(|me| {
        for held in held_by(me) {
            held.0.queue.owner.store(me.tid.get(), Relaxed);
            held.0.queue.forget_waiters();
        }
    });
}
