// SPDX-License-Identifier: GPL-2.0-only
//! The statistics of bpf/stats.h as scx_stats knows them.

use scx_stats_derive::{stat_doc, Stats};
use serde::{Deserialize, Serialize};

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub name: &'static str,
    pub group: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/metrics.rs"));
