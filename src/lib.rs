// SPDX-License-Identifier: GPL-2.0-only
//! The agent of scx_freqlock: all that runs in user space and is not the
//! loading of the BPF object itself, which is in scheds/scx_freqlock.

pub mod adapt;
pub mod calibrate;
mod cgroups;
pub mod context;
pub mod control;
pub mod cost;
pub mod cpus;
pub mod estimate;
pub mod foreign;
pub mod freq;
#[cfg(test)]
mod fuzz;
pub mod histogram;
pub mod interval;
pub mod intf;
pub mod knobs;
pub mod lab_args;
pub mod locks;
pub mod memory;
pub mod metrics;
pub mod mode;
pub mod notify;
pub mod number;
pub mod observe;
pub mod openmetrics;
pub mod output;
pub mod predictions;
pub mod preflight;
pub mod raw;
pub mod report;
pub mod spelling;
pub mod stats;
#[cfg(test)]
mod table;
pub mod telemetry;
pub mod top;
pub mod topology;
pub mod units;
