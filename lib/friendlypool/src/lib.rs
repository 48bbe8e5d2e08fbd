// SPDX-License-Identifier: MIT
//! A work-stealing thread pool that leaves its neighbours their CPUs.
//!
//! As many workers are active as there are CPUs to count on ([`freqlock_cpus`]), which changes as
//! neighbours come and go; the others park. [`Pool`] has what rayon's pool has: `spawn`, `scope`,
//! `join` and `install`.
//!
//! A task must not wait for another by other means than these, as by a channel: there may be but one
//! worker for both.

mod active_rule;
pub mod adapters;
mod controller;
mod jobs;
mod latch;
mod parallelism;
mod registry;
mod scope;
mod sleepers;
mod thread_pool;
mod worker;

pub use parallelism::available_parallelism;
pub use scope::Scope;
pub use thread_pool::{Pool, PoolBuilder};

use worker::Worker;

/// [`Pool::join`] in the pool whose worker calls it; elsewhere one after the other.
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    Worker::current(|worker| match worker {
        Some(worker) => worker::join(worker, a, b),
        None => (a(), b()),
    })
}

/// [`Pool::scope`] in the pool whose worker calls it. Panics elsewhere.
pub fn scope<'scope, R>(op: impl FnOnce(&Scope<'scope>) -> R) -> R {
    Worker::current(|worker| match worker {
        Some(worker) => scope::scope(worker, op),
        None => panic!("no worker of a pool: see Pool::scope"),
    })
}
