// SPDX-License-Identifier: GPL-2.0-only
//! What `scx_freqlock observe` says about a tree of processes, computed from
//! the events of bpf/observe.bpf.c: pure, so that tests can feed it events.
//!
//! - `abi`: bindings of bpf/observe.h.
//! - `event`: the 24-byte events, decoded.
//! - `observer`: follows tasks and CPUs through the events.
//! - `conserve`: idle time of CPUs that eligible tasks waited through.
//! - `report`: the figures, as text and for JSON.

mod abi;
mod conserve;
mod event;
mod observer;
mod report;

#[cfg(test)]
mod tests;

pub use event::{BadEvent, Event};
pub use observer::Observer;
pub use report::{Mutexes, Report};
