// SPDX-License-Identifier: GPL-2.0-only
//! The agent of scx_freqlock: all that runs in user space and is not the
//! loading of the BPF object itself, which is in scheds/scx_freqlock.
//!
//! Three floors, of which each uses those below it only: [`commands`], which ask and print;
//! what talks, [`control`], [`stats`], `look`, [`http`], [`openmetrics`] and [`notify`]; and the
//! rest, which knows of no socket.

pub mod adapt;
pub mod apart;
pub mod calibrate;
mod cgroups;
pub mod commands;
pub mod context;
pub mod control;
pub mod cost;
pub mod cpus;
pub mod ending;
pub mod estimate;
pub mod foreign;
pub mod freq;
#[cfg(test)]
mod fuzz;
pub mod histogram;
pub mod http;
pub mod interval;
pub mod intf;
pub mod knobs;
pub mod lab_args;
pub mod locks;
mod look;
pub mod memory;
pub mod metrics;
pub mod mode;
pub mod notify;
pub mod number;
pub mod observe;
pub mod openmetrics;
pub mod output;
pub mod page_file;
pub mod predictions;
pub mod preflight;
pub mod raw;
pub mod settings;
pub mod speeds_page;
pub mod spelling;
pub mod stats;
#[cfg(test)]
mod table;
pub mod telemetry;
pub mod topology;
pub mod trace;
pub mod units;
pub mod user_policy;
