// SPDX-License-Identifier: GPL-2.0-only
//! What may be asked of the running scheduler, and what it answers: a line of JSON each.

use crate::adapt::Status;
use crate::context::Explained;
use crate::knobs::Tunables;
use crate::settings::Assignment;
use crate::units::utc;
use crate::user_policy::{Loaded, Wanted};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where the running scheduler listens; only its own user can connect.
pub const SOCKET: &str = "/run/scx_freqlock/control";

/// What may be asked, in JSON by these names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// All of them, or none where one is wrong.
    Set(Vec<Assignment>),
    /// The mode and the values of all knobs.
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
    /// Loads or verifies a user's policy.
    LoadPolicy(Wanted),
    /// Takes the policy of this name out.
    UnloadPolicy(String),
    /// The policies that are loaded.
    Policies,
}

/// One for each request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Every knob and the mode, with the values in force.
    Values(Vec<Assignment>),
    /// What a change did; nothing if it changed nothing.
    Changed(Vec<Change>),
    /// The changes that could be taken back, oldest first.
    Changes(Vec<Change>),
    /// The contexts that are in force now, in words.
    Reloaded(String),
    /// The context of a task, and why.
    Explained(Box<Explained>),
    /// Modes by trial, as they stand.
    Adapt(Box<Status>),
    /// How it runs.
    Status(Box<Running>),
    /// The policies that are loaded, or the one that was loaded, verified or taken out.
    Policies(Vec<Loaded>),
    /// Why nothing was done, in words.
    Error(String),
}

/// What the running agent says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// Of the program.
    pub version: String,
    /// Of the agent.
    pub pid: u32,
    /// Since it was loaded first.
    pub uptime_s: u64,
    /// In force for tasks in no context.
    pub mode: String,
    /// Sources of speed, migration costs, hooks and what the kernel lacks for them, one line
    /// each.
    pub about: Vec<String>,
    /// How many there are and from which file, in words.
    pub contexts: String,
    /// Knobs that are not at their defaults.
    pub knobs: Vec<Assignment>,
}

/// One knob, changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// `mode`, or the name of a knob.
    pub key: String,
    /// The value until then.
    pub before: String,
    /// The value from then on.
    pub after: String,
    /// Seconds since 1970.
    pub at: u64,
    /// Who asked for it.
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
    /// Its effective user, from the socket's credentials.
    pub uid: u32,
    /// The process that connected, which may have ended.
    pub pid: i32,
}

/// Why a request is refused, beyond what is wrong with a value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Two values for one knob in a request.
    #[error("`{0}` is given twice")]
    Twice(String),
    /// All changes are taken back, or there was none.
    #[error("nothing was changed that could be undone")]
    NothingToUndo,
    /// Of the agent alone, which has the programs.
    #[error("policies are loaded where the scheduler runs")]
    NoPrograms,
    /// Trials are asked for and there are none.
    #[error("the scheduler was started without --adapt")]
    NotAdaptive,
    /// A page of CPUs to count on, with --partial.
    #[error("cpus_ms has no meaning with --partial: what others leave of the CPUs is not seen")]
    UnseenNeighbours,
    /// A page of speeds, with --partial.
    #[error(
        "speeds_ms has no meaning with --partial: what other tasks do to a CPU's speed is not seen"
    )]
    UnseenSpeeds,
    /// Of no such number, or of another scheduling class.
    #[error("there is no task {0}, or none that scx_freqlock schedules")]
    NoTask(u32),
}

impl Error {
    /// Why these values of knobs do not go together; none if they do.
    pub fn of(tunables: &Tunables) -> Option<Self> {
        if tunables.partial == 0 {
            None
        } else if tunables.cpus_ms != 0 {
            Some(Self::UnseenNeighbours)
        } else {
            (tunables.speeds_ms != 0).then_some(Self::UnseenSpeeds)
        }
    }
}
