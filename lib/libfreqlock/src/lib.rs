// SPDX-License-Identifier: MIT
//! libfreqlock: locks that know which CPUs are fast, and waiting that knows how long it takes.
//!
//! - [`Lock`]: threads on big CPUs take it before those on little ones, within bounds.
//! - [`epoch_start`], [`epoch_end`]: the bounds, from what latency a piece of work may have.
//! - [`WaitSite`]: waiting for memory to change, without spinning behind a thread that does not run.
//! - [`hint`]: what a thread reports of locks of its own to scx_freqlock.
//!
//! C programs have the same by `lib/freqlock.h`.

mod epoch;
mod fork;
pub mod hint;
pub mod latencies;
mod limits;
mod lock;
mod os;
mod present;
mod queue;
mod reorderable;
mod slice;
mod speed;
mod spin;
mod sync;
mod thread;
mod wait;

pub use epoch::{
    epoch_end, epoch_start, epoch_window, profile_epochs, set_percentile, set_wait_slo, EpochError,
    UNIT_LEAST, WINDOW_MOST, WINDOW_START,
};
pub use fork::{count_forks, generation, tid};
pub use lock::{Lock, LockError};
pub use os::{futex_wait_until, futex_wake, Deadline};
pub use reorderable::RawLock;
pub use speed::{on_big_cpu, speed_source};
pub use wait::{wake, WaitSite};
