// SPDX-License-Identifier: GPL-2.0-only
//! What `scx_freqlock observe` says about a tree of processes, computed from
//! the events of bpf/observe.bpf.c: pure, so that tests can feed it events.
//!
//! - [`abi`]: bindings of bpf/observe.h.
//! - [`event`]: the 24-byte events, decoded.
//! - [`observer`]: follows tasks and CPUs through the events.
//! - [`conserve`]: idle time of CPUs that eligible tasks waited through.
//! - [`report`]: the figures, as text and for JSON.

pub mod abi;
pub mod conserve;
pub mod event;
pub mod observer;
pub mod report;

#[cfg(test)]
mod tests;

pub use event::Event;
pub use observer::Observer;
pub use report::{Mutexes, Report};
