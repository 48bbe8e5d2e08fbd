// SPDX-License-Identifier: GPL-2.0-only
//! Contexts: a file that gives the tasks of some services other values of knobs.
//!
//! [`file`] reads it, `rule` says which tasks a context is for, `entry` what it sets,
//! `in_force` which contexts the BPF side has, and `explain` what is so for one task.
//! Which context a task is in is decided by the BPF side alone (bpf/context.bpf.c).

mod entry;
mod explain;
mod file;
#[cfg(test)]
mod fuzz;
mod in_force;
mod rule;
#[cfg(test)]
mod tests;

pub use entry::{Context, Contexts, Value, MAX_CONTEXTS};
pub use explain::{Explained, Seen};
pub use file::{Error, DEFAULT_FILE};
pub use in_force::InForce;
pub use rule::Rule;
