// SPDX-License-Identifier: GPL-2.0-only
//! The knobs of bpf/knobs.h: the table, and `Tunables`, which holds a value for
//! each.

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knob {
    pub name: &'static str,
    pub unit: &'static str,
    pub default: u64,
    pub min: u64,
    pub max: u64,
    pub meaning: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/knobs.rs"));
