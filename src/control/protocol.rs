// SPDX-License-Identifier: GPL-2.0-only
//! What may be asked of the running scheduler, and what it answers: a line of JSON each.

use crate::adapt::Status;
use crate::context::Explained;
use crate::settings::Assignment;
use crate::units::utc;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where the running scheduler listens; only its own user can connect.
pub const SOCKET: &str = "/run/scx_freqlock/control";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// All of them, or none where one is wrong.
    Set(Vec<Assignment>),
    Get,
    /// Takes back the last change that was not taken back.
    Undo,
    /// The changes that are remembered, oldest first.
    Changes,
    /// Reads the file of contexts again.
    Reload,
    /// Which context the task of this number is in.
    Explain(u32),
    /// What --adapt has found and decided.
    Adapt,
    /// How it runs.
    Status,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Every knob and the mode, with the values in force.
    Values(Vec<Assignment>),
    /// What a change did; nothing where all was so already.
    Changed(Vec<Change>),
    Changes(Vec<Change>),
    /// The contexts that are in force now, in words.
    Reloaded(String),
    Explained(Box<Explained>),
    Adapt(Box<Status>),
    Status(Box<Running>),
    Error(String),
}

/// What the running agent says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    pub version: String,
    pub pid: u32,
    /// Since it was loaded first.
    pub uptime_s: u64,
    /// In force for tasks in no context.
    pub mode: String,
    /// Sources of speed, costs of moves, hooks and what the kernel lacks for them, one line
    /// each.
    pub about: Vec<String>,
    pub contexts: String,
    /// Knobs that are not at their defaults.
    pub knobs: Vec<Assignment>,
}

/// One knob, changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub key: String,
    pub before: String,
    pub after: String,
    /// Seconds since 1970.
    pub at: u64,
    pub by: Peer,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self {
            key,
            before,
            after,
            at,
            by,
        } = self;
        let (at, Peer { uid, pid }) = (utc(*at), by);
        write!(
            f,
            "{key} {before} -> {after} at {at} by user {uid}, process {pid}"
        )
    }
}

/// Who asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    pub uid: u32,
    pub pid: i32,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("`{0}` is given twice")]
    Twice(String),
    #[error("nothing was changed that could be undone")]
    NothingToUndo,
    #[error("the scheduler was started without --adapt")]
    NotAdaptive,
    #[error("there is no task {0}, or none that scx_freqlock schedules")]
    NoTask(u32),
}
