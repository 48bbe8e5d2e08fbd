// SPDX-License-Identifier: GPL-2.0-only
//! The agent of scx_freqlock: all that runs in user space and is not the
//! loading of the BPF object itself, which is in scheds/scx_freqlock.

pub mod intf;
pub mod knobs;
pub mod metrics;
pub mod observe;
#[cfg(test)]
mod table;
