// SPDX-License-Identifier: MIT
//! A worker: takes jobs while it is active, and executes others while it waits for one.
//!
//! A worker that is not active parks where it holds no job, with its queue open to thieves. One that
//! waits within a job still executes what is in its own queue; then it sleeps until what it waits
//! for is done. The first worker is always active and takes any job, so what is queued is executed.

use crate::jobs::{JobRef, StackJob};
use crate::latch::{Latch, Waiter};
use crate::registry::Registry;
use crossbeam::deque;
use crossbeam::sync::Parker;
use crossbeam::utils::Backoff;
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    static CURRENT: Cell<*const Worker> = const { Cell::new(std::ptr::null()) };
}

pub(crate) struct Worker {
    registry: Arc<Registry>,
    index: usize,
    queue: deque::Worker<JobRef>,
    parker: Parker,
}

impl Worker {
    pub(crate) fn new(
        registry: Arc<Registry>,
        index: usize,
        queue: deque::Worker<JobRef>,
        parker: Parker,
    ) -> Self {
        Self {
            registry,
            index,
            queue,
            parker,
        }
    }

    /// Calls `with` with the worker that the calling thread is.
    pub(crate) fn current<R>(with: impl FnOnce(Option<&Worker>) -> R) -> R {
        // SAFETY: `run` has it there for as long as the thread executes jobs.
        with(unsafe { CURRENT.get().as_ref() })
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub(crate) fn is_of(&self, registry: &Arc<Registry>) -> bool {
        Arc::ptr_eq(&self.registry, registry)
    }

    /// A latch that this worker waits for.
    pub(crate) fn latch(&self) -> Latch {
        Latch::new(Waiter::Worker(
            Arc::as_ptr(&self.registry.sleepers),
            self.index,
        ))
    }

    /// Executes jobs until the pool ends.
    pub(crate) fn run(self) {
        CURRENT.set(&self);
        loop {
            if let Some(job) = self.take(true) {
                job.execute();
            } else if self.registry.is_ending() {
                break;
            } else {
                self.sleep(None);
            }
        }
        CURRENT.set(std::ptr::null());
    }

    pub(crate) fn push(&self, job: JobRef) {
        self.queue.push(job);
        self.registry.sleepers.wake_one(self.registry.takers());
    }

    /// The job that was pushed last, if nobody stole it.
    pub(crate) fn pop(&self) -> Option<JobRef> {
        self.queue.pop()
    }

    /// Executes jobs until the latch is set.
    pub(crate) fn wait(&self, latch: &Latch) {
        let backoff = Backoff::new();
        while !latch.is_set() {
            if let Some(job) = self.take(false) {
                job.execute();
                backoff.reset();
            } else if !backoff.is_completed() {
                backoff.snooze();
            } else {
                self.sleep(Some(latch));
                backoff.reset();
            }
        }
    }

    fn take(&self, holds_nothing: bool) -> Option<JobRef> {
        let active = self.registry.is_active(self.index);
        if holds_nothing && !active {
            return None;
        }
        let own = self.queue.pop();
        own.or_else(|| active.then(|| self.registry.steal(self.index))?)
    }

    fn sleep(&self, latch: Option<&Latch>) {
        let registry = &self.registry;
        registry.sleepers.announce(self.index);
        let over = latch.map_or_else(|| registry.is_ending(), Latch::is_set);
        let has_work = registry.has_work();
        let active = registry.is_active(self.index);
        if has_work && !active {
            // It may have been woken for that.
            registry.sleepers.wake_one(registry.takers());
        }
        let stays_awake = over || (has_work && active);
        if !stays_awake {
            self.parker.park();
        }
        registry.sleepers.retract(self.index);
        registry.woke();
    }
}

/// Calls `op` in a worker of this pool and waits for it. Panics in the child of a fork.
pub(crate) fn enter<R: Send>(registry: &Arc<Registry>, op: impl FnOnce(&Worker) -> R + Send) -> R {
    Worker::current(|worker| match worker {
        Some(worker) if worker.is_of(registry) => op(worker),
        waiter => {
            assert!(
                registry.has_workers(),
                "a fork left the pool's workers behind"
            );
            let latch = waiter.map_or_else(Latch::of_thread, Worker::latch);
            let in_worker = || Worker::current(|worker| worker.map(op));
            let job = StackJob::new(in_worker, latch);
            // SAFETY: it stays here until the latch is set.
            registry.inject(unsafe { job.as_ref() });
            match waiter {
                Some(worker) => worker.wait(&job.latch),
                None => job.latch.park(),
            }
            match job.result() {
                Some(value) => value,
                None => unreachable!("workers alone execute jobs"),
            }
        }
    })
}

/// Pushes to the worker that the calling thread is, if it is one of this pool, or from outside.
pub(crate) fn submit(registry: &Arc<Registry>, job: JobRef) {
    Worker::current(|worker| match worker {
        Some(worker) if worker.is_of(registry) => worker.push(job),
        _ => registry.inject(job),
    });
}

/// Calls both, the second one in another worker if one is free; a panic goes on when both ended.
pub(crate) fn join<A, B, RA, RB>(worker: &Worker, a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    let job = StackJob::new(b, worker.latch());
    // SAFETY: it stays here until it was taken back or its latch is set, also if `a` panics.
    worker.push(unsafe { job.as_ref() });
    let first = std::panic::catch_unwind(std::panic::AssertUnwindSafe(a));
    while !job.latch.is_set() {
        match worker.pop() {
            Some(top) if top.is(&raw const job) => {
                return match first {
                    Ok(first) => (first, job.call()),
                    Err(panic) => std::panic::resume_unwind(panic),
                };
            }
            Some(other) => other.execute(),
            None => worker.wait(&job.latch),
        }
    }
    match first {
        Ok(first) => (first, job.result()),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
