// SPDX-License-Identifier: MIT
//! A flag that is set once, and the thread that waits for it.

use crate::sleepers::Sleepers;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::Thread;

/// Who waits, and so keeps the latch until it is set.
pub(crate) enum Waiter {
    /// A worker, which executes other jobs meanwhile. The pointer is that of an Arc that the
    /// worker holds.
    Worker(*const Sleepers, usize),
    /// Any other thread, which parks.
    Thread(Thread),
}

pub(crate) struct Latch {
    set: AtomicBool,
    waiter: Waiter,
}

// SAFETY: the pointer in Waiter leads to Sleepers, which is shared among threads.
unsafe impl Sync for Latch {}
// SAFETY: as above.
unsafe impl Send for Latch {}

impl Latch {
    pub(crate) fn new(waiter: Waiter) -> Self {
        Self {
            set: AtomicBool::new(false),
            waiter,
        }
    }

    /// For the calling thread, which is no worker.
    pub(crate) fn of_thread() -> Self {
        Self::new(Waiter::Thread(std::thread::current()))
    }

    pub(crate) fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// Parks the thread of [`Latch::of_thread`] until it is set.
    pub(crate) fn park(&self) {
        while !self.is_set() {
            std::thread::park();
        }
    }

    /// Sets it and wakes the waiter.
    ///
    /// # Safety
    /// The latch is there until it is set; it may be gone at once after that.
    pub(crate) unsafe fn set(latch: *const Self) {
        // SAFETY: the waiter cannot have left, so its latch is there, and so is what it holds.
        let wake: Waking = unsafe {
            match &(*latch).waiter {
                Waiter::Worker(sleepers, index) => {
                    Arc::increment_strong_count(*sleepers);
                    Waking::Worker(Arc::from_raw(*sleepers), *index)
                }
                Waiter::Thread(thread) => Waking::Thread(thread.clone()),
            }
        };
        // SAFETY: as above; after this store the latch is not touched.
        unsafe { (*latch).set.store(true, Ordering::SeqCst) };
        match wake {
            Waking::Worker(sleepers, index) => {
                sleepers.wake(index);
            }
            Waking::Thread(thread) => thread.unpark(),
        }
    }
}

/// A waiter that outlives its latch.
enum Waking {
    Worker(Arc<Sleepers>, usize),
    Thread(Thread),
}
