// SPDX-License-Identifier: MIT
//! The queue under loom: each order of its steps that two or three threads can bring about, with
//! what the memory model allows them to see. The kernel's part, futexes and time, is a model, too.

#[path = "../src/queue.rs"]
#[allow(dead_code)]
mod queue;
#[path = "../src/spin.rs"]
mod spin;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32};
    macro_rules! const_in_std {
        ($(#[$about:meta])* $vis:vis fn $($rest:tt)*) => { $vis fn $($rest)* };
    }
    pub(crate) use const_in_std;
    pub(crate) const ROUNDS: u32 = 1;
}

mod limits {
    pub(crate) const QUEUE_SPINS: u32 = 1;
    pub(crate) const SPIN_LEAST: u64 = 1;

    /// Nothing is learned: one look, then sleep.
    pub(crate) struct Learned;
    impl Learned {
        pub(crate) fn new() -> Self {
            Learned
        }
        pub(crate) fn note(&self, _: u64) {}
        pub(crate) fn spin(&self) -> u64 {
            1
        }
    }
}

/// Nobody forks.
mod fork {
    pub(crate) fn generation() -> u32 {
        0
    }
}

mod os {
    use loom::sync::atomic::AtomicU32;
    use loom::sync::{Condvar, Mutex};
    use std::sync::atomic::Ordering::{Relaxed, SeqCst};

    loom::lazy_static! {
        static ref SLEEPERS: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
    }

    /// Each look is 0.2 ms later: a head is patient when it sleeps first, and impatient when it sleeps again.
    pub(crate) fn now() -> u64 {
        static NOW: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        NOW.fetch_add(200_000, Relaxed)
    }

    /// Comes while the first to look is asleep, or at its next look.
    pub(crate) struct Deadline;
    impl Deadline {
        pub(crate) fn is_over(&self) -> bool {
            LOOKS.with(|looks| looks.replace(looks.get() + 1) > 0)
        }
    }

    loom::thread_local! {
        static LOOKS: std::cell::Cell<u32> = std::cell::Cell::new(0);
    }

    pub(crate) fn allocate<T>(value: T) -> Option<*mut T> {
        Some(Box::into_raw(Box::new(value)))
    }

    /// # Safety
    ///
    /// From `allocate`, and nobody uses it.
    pub(crate) unsafe fn free<T>(at: *mut T) {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(at) });
    }

    pub(crate) fn sleep(_: u64) {
        loom::thread::yield_now();
    }

    pub(crate) fn futex_wait_until(word: &AtomicU32, value: u32, deadline: Option<&Deadline>) {
        if deadline.is_some() {
            return loom::thread::yield_now();
        }
        let guard = SLEEPERS.0.lock().unwrap();
        if word.load(SeqCst) == value {
            drop(SLEEPERS.1.wait(guard).unwrap());
        }
    }

    /// Wakes others, too: sleeps may end early.
    pub(crate) fn futex_wake(_: *const AtomicU32, _: u32) {
        let _guard = SLEEPERS.0.lock().unwrap();
        SLEEPERS.1.notify_all();
    }

    pub(crate) fn pause() {
        loom::thread::yield_now();
    }

    pub(crate) fn yield_now() {
        loom::thread::yield_now();
    }
}

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use queue::Queue;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

struct Shared {
    queue: Queue,
    /// loom fails if two threads are in there, or do not see what the one before wrote.
    sum: UnsafeCell<u32>,
}

// SAFETY: that is what is tested.
unsafe impl Sync for Shared {}

/// With `leaver`, the first of them has a deadline, and leaves if that comes first.
fn model(threads: u32, rounds: u32, preemptions: usize, leaver: bool) {
    static ORDERS: AtomicU64 = AtomicU64::new(0);
    static LEFT: AtomicU32 = AtomicU32::new(0);
    ORDERS.store(0, Relaxed);
    LEFT.store(0, Relaxed);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        ORDERS.fetch_add(1, Relaxed);
        let shared = Arc::new(Shared {
            queue: Queue::new(),
            sum: UnsafeCell::new(0),
        });
        let work = move |shared: &Shared, leaves: bool| {
            let mut left = 0;
            for _ in 0..rounds {
                if leaves && !shared.queue.acquire_until(&os::Deadline) {
                    left += 1;
                    continue;
                }
                if !leaves {
                    shared.queue.acquire();
                }
                // SAFETY: with the lock held.
                shared.sum.with_mut(|sum| unsafe { *sum += 1 });
                shared.queue.release();
            }
            left
        };
        let others: Vec<_> = (1..threads)
            .map(|_| {
                let shared = shared.clone();
                loom::thread::spawn(move || work(&shared, false))
            })
            .collect();
        let left = work(&shared, leaver);
        for other in others {
            other.join().unwrap();
        }
        LEFT.fetch_add(left, Relaxed);
        // SAFETY: the others have ended.
        assert_eq!(shared.sum.with(|sum| unsafe { *sum }), threads * rounds - left);
        assert!(!shared.queue.is_busy());
    });
    if leaver {
        print!("left={} ", LEFT.load(Relaxed));
    }
    println!(
        "threads={threads} rounds={rounds} orders={}",
        ORDERS.load(Relaxed)
    );
}

fn main() {
    model(2, 2, 4, false);
    model(3, 1, 3, false);
    model(3, 1, 3, true);
}
