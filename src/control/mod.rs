// SPDX-License-Identifier: GPL-2.0-only
//! Knobs and contexts while the scheduler runs: what may be asked of it over a UNIX
//! socket.
//!
//! A request is a line of JSON, [`Request`], and so is its answer, [`Answer`].
//! [`state`] decides what a request does, [`server`] listens, [`client`] asks and
//! prints, [`status`] too, [`keys`] are what it may name, [`list`] shows that.

pub mod client;
#[cfg(test)]
mod fuzz;
mod keys;
pub mod list;
mod server;
mod state;
pub mod status;

pub use server::{Asked, Server};
pub use state::Settings;

use crate::adapt::Status;
use crate::context::Explained;
use crate::knobs::{Knob, Tunables, KNOBS};
use crate::mode::Mode;
use crate::spelling::{did_you_mean, nearest};
use crate::units::utc;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use status::Running;
use std::fmt;

/// Where the running scheduler listens; only its own user can connect.
pub const SOCKET: &str = "/run/scx_freqlock/control";

/// The placement mode, which is set as knobs are and is one of names.
pub(crate) const MODE: &str = "mode";

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

/// KEY=VALUE, as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    pub key: String,
    pub value: String,
}

impl fmt::Display for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
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
    #[error("`{0}` is not KEY=VALUE")]
    NotAssignment(String),
    #[error("there is no knob `{key}`{}", did_you_mean(.nearest))]
    Unknown {
        key: String,
        nearest: Option<String>,
    },
    #[error("`{0}` is read at start only: end the scheduler and start it with --{1}")]
    AtStart(String, String),
    #[error("{key}={value}: {why}")]
    Value {
        key: String,
        value: String,
        why: String,
    },
    #[error("`{0}` is given twice")]
    Twice(String),
    #[error("nothing was changed that could be undone")]
    NothingToUndo,
    #[error("the scheduler was started without --adapt")]
    NotAdaptive,
    #[error("there is no task {0}, or none that scx_freqlock schedules")]
    NoTask(u32),
}

impl Assignment {
    fn new(key: &str, value: impl ToString) -> Self {
        Self {
            key: key.into(),
            value: value.to_string(),
        }
    }

    /// From the command line, where it is checked already.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| Error::NotAssignment(text.into()))?;
        let assignment = Self::new(key.trim(), value.trim());
        assignment.check()?;
        Ok(assignment)
    }

    /// The number that is stored for it.
    fn check(&self) -> Result<u64, Error> {
        let wrong = |why: String| Error::Value {
            key: self.key.clone(),
            value: self.value.clone(),
            why,
        };
        if self.key == MODE {
            let mode = Mode::from_str(&self.value, false).map_err(|_| {
                let modes: Vec<_> = Mode::value_variants().iter().map(|m| m.name()).collect();
                wrong(format!("not one of {}", modes.join(", ")))
            })?;
            return Ok(mode as u64);
        }
        let knob = find(&self.key)?;
        if !knob.live {
            return Err(Error::AtStart(knob.name.into(), knob.flag.into()));
        }
        knob.parse(&self.value).map_err(wrong)
    }
}

/// The number that is stored for this value of a knob or of the mode.
pub(crate) fn check_value(key: &str, value: &str) -> Result<u64, Error> {
    Assignment::new(key, value).check()
}

/// Every key that has a value: the mode and the knobs.
fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once(MODE).chain(KNOBS.iter().map(|knob| knob.name))
}

fn find(key: &str) -> Result<&'static Knob, Error> {
    let mut knobs = KNOBS.iter();
    knobs
        .find(|knob| knob.name == key)
        .ok_or_else(|| Error::Unknown {
            key: key.into(),
            nearest: nearest(key, names()),
        })
}

/// The field of a key that [`Assignment::check`] has passed.
pub(crate) fn field<'a>(tunables: &'a mut Tunables, key: &str) -> Option<&'a mut u64> {
    match key {
        MODE => Some(&mut tunables.mode),
        key => tunables.knob_mut(key),
    }
}

pub(crate) fn text(key: &str, value: u64) -> String {
    match (key, Mode::from_number(value)) {
        (MODE, Some(mode)) => mode.name().into(),
        _ => value.to_string(),
    }
}
