// SPDX-License-Identifier: GPL-2.0-only
//! The commands that ask or print: their command lines, and what people and scripts get to
//! read. Nothing else in this crate uses them.

pub mod analyze;
pub mod context_table;
pub mod cpus_table;
pub mod export;
mod keys;
pub mod knob_table;
pub mod live_knobs;
pub mod lock_table;
pub mod status;
pub mod task_table;
pub mod top;
pub mod trace_files;
pub mod trace_page;
mod trace_server;
