// SPDX-License-Identifier: MIT
//! What the workers of a pool share: the queues, who sleeps, and how many are active.

use crate::jobs::JobRef;
use crate::sleepers::Sleepers;
use crossbeam::deque::{Injector, Steal, Stealer};
use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{fence, AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

/// Gets the panics of tasks that nobody waits for.
pub(crate) type PanicHandler = Box<dyn Fn(Box<dyn Any + Send>) + Send + Sync>;

pub(crate) struct Registry {
    pub(crate) sleepers: Arc<Sleepers>,
    /// Jobs of threads that are no workers.
    injector: Injector<JobRef>,
    /// Of each worker's queue.
    stealers: Box<[Stealer<JobRef>]>,
    /// The first so many workers are active, 1 at least.
    active: AtomicUsize,
    ending: AtomicBool,
    panic_handler: Option<PanicHandler>,
    /// Of the process that has the workers: a fork leaves them behind.
    process: u32,
    control: OnceLock<Thread>,
    control_is_idle: AtomicBool,
}

impl Registry {
    pub(crate) fn new(
        sleepers: Arc<Sleepers>,
        stealers: Box<[Stealer<JobRef>]>,
        panic_handler: Option<PanicHandler>,
    ) -> Self {
        Self {
            sleepers,
            injector: Injector::new(),
            active: AtomicUsize::new(stealers.len()),
            stealers,
            ending: AtomicBool::new(false),
            panic_handler,
            process: std::process::id(),
            control: OnceLock::new(),
            control_is_idle: AtomicBool::new(false),
        }
    }

    /// Workers that there are.
    pub(crate) fn workers(&self) -> usize {
        self.stealers.len()
    }

    pub(crate) fn active(&self) -> usize {
        self.active.load(Ordering::SeqCst)
    }

    /// Inactive workers finish what they hold, then park; those that become active wake.
    pub(crate) fn set_active(&self, active: usize) {
        let before = self.active.swap(active, Ordering::SeqCst);
        for worker in before..active {
            self.sleepers.wake(worker);
        }
    }

    pub(crate) fn is_active(&self, worker: usize) -> bool {
        worker < self.takers()
    }

    /// The first so many workers take work: the active ones, and all as the pool ends.
    pub(crate) fn takers(&self) -> usize {
        if self.is_ending() {
            self.workers()
        } else {
            self.active()
        }
    }

    /// False in the child of a fork.
    pub(crate) fn has_workers(&self) -> bool {
        self.process == std::process::id()
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    /// Workers leave once there is no work.
    pub(crate) fn end(&self) {
        self.ending.store(true, Ordering::SeqCst);
        self.sleepers.wake_all();
        if let Some(control) = self.control.get() {
            control.unpark();
        }
    }

    pub(crate) fn inject(&self, job: JobRef) {
        self.injector.push(job);
        self.sleepers.wake_one(self.takers());
    }

    pub(crate) fn has_work(&self) -> bool {
        !self.injector.is_empty() || self.stealers.iter().any(|queue| !queue.is_empty())
    }

    /// A job from outside, or else of another worker.
    pub(crate) fn steal(&self, thief: usize) -> Option<JobRef> {
        loop {
            let others = (1..self.stealers.len())
                .map(|step| &self.stealers[(thief + step) % self.stealers.len()])
                .map(Stealer::steal);
            let found: Steal<JobRef> = std::iter::once_with(|| self.injector.steal())
                .chain(others)
                .collect();
            match found {
                Steal::Success(job) => return Some(job),
                Steal::Empty => return None,
                Steal::Retry => std::hint::spin_loop(),
            }
        }
    }

    /// Calls a task that nobody waits for. Without a handler its panic ends the process.
    pub(crate) fn call_detached(&self, task: impl FnOnce()) {
        let Err(panic) = catch_unwind(AssertUnwindSafe(task)) else {
            return;
        };
        let handled = self
            .panic_handler
            .as_ref()
            .map(|handler| catch_unwind(AssertUnwindSafe(|| handler(panic))));
        if !matches!(handled, Some(Ok(()))) {
            std::process::abort();
        }
    }

    /// The thread that sets how many are active.
    pub(crate) fn set_control(&self, thread: Thread) {
        let _ = self.control.set(thread);
    }

    /// A worker woke up: so does the control.
    pub(crate) fn woke(&self) {
        fence(Ordering::SeqCst);
        if self.control_is_idle.load(Ordering::Relaxed)
            && self.control_is_idle.swap(false, Ordering::SeqCst)
        {
            if let Some(control) = self.control.get() {
                control.unpark();
            }
        }
    }

    /// Parks the control thread while all workers sleep.
    pub(crate) fn wait_until_busy(&self) {
        while self.sleepers.all_asleep() && !self.is_ending() {
            self.control_is_idle.store(true, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            if self.sleepers.all_asleep() && !self.is_ending() {
                std::thread::park();
            }
        }
        self.control_is_idle.store(false, Ordering::SeqCst);
    }
}
