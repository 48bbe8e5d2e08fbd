// SPDX-License-Identifier: MIT
//! The pool, and how one is made.

use crate::controller;
use crate::jobs::JobRef;
use crate::registry::{PanicHandler, Registry};
use crate::scope::{self, Scope};
use crate::sleepers::Sleepers;
use crate::worker::{enter, join, submit, Worker};
use crossbeam::sync::Parker;
use crossbeam::{deque, epoch};
use std::any::Any;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// How a pool is to be.
pub struct PoolBuilder {
    workers: Option<usize>,
    overcommit: f64,
    period: Duration,
    page: PathBuf,
    fixed: bool,
    panic_handler: Option<PanicHandler>,
}

impl Default for PoolBuilder {
    fn default() -> Self {
        Self {
            workers: None,
            overcommit: 1.0,
            period: Duration::from_millis(1),
            page: freqlock_cpus::DEFAULT_PAGE.into(),
            fixed: false,
            panic_handler: None,
        }
    }
}

impl PoolBuilder {
    /// Workers that there are, active or not: 1 to 4096. As many as the calling thread's affinity has
    /// CPUs unless this is set.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Active workers for each CPU to count on, 1 unless this is set. More trade latency for
    /// throughput beside greedy neighbours.
    pub fn overcommit(mut self, overcommit: f64) -> Self {
        self.overcommit = overcommit;
        self
    }

    /// The shortest time between two changes, 1 ms unless this is set. Without the page it is
    /// 10 ms at least, and with it as long as the scheduler's period.
    pub fn period(mut self, period: Duration) -> Self {
        self.period = period;
        self
    }

    /// The page of CPUs, `/run/scx_freqlock/cpus` unless this is set.
    pub fn page(mut self, path: impl Into<PathBuf>) -> Self {
        self.page = path.into();
        self
    }

    /// All workers stay active, whatever the neighbours do: to compare with.
    pub fn ignorant(mut self) -> Self {
        self.fixed = true;
        self
    }

    /// Gets the panics of tasks that [`Pool::spawn`] queued. Without one they end the process.
    pub fn panic_handler(
        mut self,
        handler: impl Fn(Box<dyn Any + Send>) + Send + Sync + 'static,
    ) -> Self {
        self.panic_handler = Some(Box::new(handler));
        self
    }

    /// Starts the threads. An error: the system has no more of them, or a setting is none.
    pub fn build(self) -> io::Result<Pool> {
        let workers = self.workers.unwrap_or_else(freqlock_cpus::affinity);
        if !(1..=MOST_WORKERS).contains(&workers)
            || !self.overcommit.is_finite()
            || self.overcommit <= 0.0
        {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // What all threads of the process make once, here: who forks while another thread is in the
        // middle of it leaves its child to wait for that thread for ever.
        drop(epoch::pin());
        let parkers: Vec<_> = (0..workers).map(|_| Parker::new()).collect();
        let queues: Vec<_> = (0..workers).map(|_| deque::Worker::new_lifo()).collect();
        let registry = Arc::new(Registry::new(
            Arc::new(Sleepers::new(&parkers)),
            queues.iter().map(deque::Worker::stealer).collect(),
            self.panic_handler,
        ));
        let mut pool = Pool {
            registry,
            threads: Vec::new(),
        };
        for (index, (queue, parker)) in queues.into_iter().zip(parkers).enumerate() {
            let worker = Worker::new(Arc::clone(&pool.registry), index, queue, parker);
            let builder = Builder::new().name(format!("friendly-{index}"));
            pool.threads.push(builder.spawn(move || worker.run())?);
        }
        if !self.fixed {
            let registry = Arc::clone(&pool.registry);
            let (page, overcommit, period) = (self.page, self.overcommit, self.period);
            let builder = Builder::new().name("friendly-ctl".into());
            let control =
                builder.spawn(move || controller::run(&registry, &page, overcommit, period))?;
            pool.registry.set_control(control.thread().clone());
            pool.threads.push(control);
        }
        Ok(pool)
    }
}

const MOST_WORKERS: usize = 4096;

/// A work-stealing pool. Dropping it waits until all its tasks ended.
pub struct Pool {
    registry: Arc<Registry>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    /// A pool with the usual settings.
    pub fn new() -> io::Result<Self> {
        PoolBuilder::default().build()
    }

    /// Workers that there are.
    pub fn workers(&self) -> usize {
        self.registry.workers()
    }

    /// Of these, how many take work now.
    pub fn active_workers(&self) -> usize {
        self.registry.active()
    }

    /// False in the child of a fork, where the pool's functions panic.
    pub fn has_workers(&self) -> bool {
        self.registry.has_workers()
    }

    /// True in its own workers.
    pub fn is_worker(&self) -> bool {
        Worker::current(|worker| worker.is_some_and(|one| one.is_of(&self.registry)))
    }

    /// Queues a task that nobody waits for.
    pub fn spawn(&self, task: impl FnOnce() + Send + 'static) {
        assert!(self.has_workers(), "a fork left the pool's workers behind");
        // The registry is there until its workers ended, so the task does not keep it.
        let registry = Arc::downgrade(&self.registry);
        let job = move || {
            if let Some(registry) = registry.upgrade() {
                registry.call_detached(task);
            }
        };
        // SAFETY: the task borrows nothing.
        submit(&self.registry, unsafe { JobRef::on_heap(job) });
    }

    /// Calls the closure in a worker: [`join`](crate::join) and [`scope`](crate::scope) there are
    /// of this pool. A panic goes on here.
    pub fn install<R: Send>(&self, op: impl FnOnce() -> R + Send) -> R {
        enter(&self.registry, |_| op())
    }

    /// Calls both closures, in parallel if a worker is free. A panic goes on here, when both ended.
    pub fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        enter(&self.registry, |worker| join(worker, a, b))
    }

    /// Calls the closure, and waits for all tasks that it spawned in the scope. The first panic
    /// of them goes on here, when all ended.
    pub fn scope<'scope, R: Send>(&self, op: impl FnOnce(&Scope<'scope>) -> R + Send) -> R {
        enter(&self.registry, |worker| scope::scope(worker, op))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.registry.end();
        // A worker that drops its pool cannot wait for itself; after a fork there is nobody.
        if !self.is_worker() && self.has_workers() {
            for thread in self.threads.drain(..) {
                // Workers do not unwind: tasks' panics are caught.
                let _ = thread.join();
            }
        }
    }
}
