// SPDX-License-Identifier: GPL-2.0-only
//! Settings as text: a knob or the mode, and its value. The control socket, contexts and
//! the command line all take them this way.

use crate::knobs::{current, Knob, Retired, Tunables, KNOBS};
use crate::mode::Mode;
use crate::spelling::{did_you_mean, nearest};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The placement mode, which is set as knobs are and is one of names.
pub const MODE: &str = "mode";

/// KEY=VALUE, as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// `mode`, or the name of a knob.
    pub key: String,
    /// A number, or the mode's name; not checked before [`Self::check`].
    pub value: String,
}

impl fmt::Display for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// Why a setting is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text, which has no equals sign.
    #[error("`{0}` is not KEY=VALUE")]
    NotAssignment(String),
    /// Neither `mode` nor a knob.
    #[error("there is no knob `{key}`{}", did_you_mean(.nearest))]
    Unknown {
        /// What was given.
        key: String,
        /// A knob with a name much like it.
        nearest: Option<String>,
    },
    /// The knob, and its flag.
    #[error("`{0}` is read at start only: end the scheduler and start it with --{1}")]
    AtStart(String, String),
    /// No value for this knob.
    #[error("{key}={value}: {why}")]
    Value {
        /// The knob.
        key: String,
        /// What was given.
        value: String,
        /// The range or names that there are.
        why: String,
    },
}

impl Assignment {
    /// Of a value as it is printed.
    pub fn new(key: &str, value: impl ToString) -> Self {
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

    /// The same with the name that the knob has now, and its retired one if that was given.
    pub fn renamed(mut self) -> (Self, Option<&'static Retired>) {
        let retired = Retired::find(&self.key);
        if let Some(retired) = retired {
            self.key = retired.new.into();
        }
        (self, retired)
    }

    /// The number that is stored for it.
    pub fn check(&self) -> Result<u64, Error> {
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
pub fn check_value(key: &str, value: &str) -> Result<u64, Error> {
    Assignment::new(key, value).check()
}

/// Every key that has a value: the mode and the knobs.
pub fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once(MODE).chain(KNOBS.iter().map(|knob| knob.name))
}

/// The knob of this name, which may be a retired one.
pub fn find(key: &str) -> Result<&'static Knob, Error> {
    Knob::find(key).ok_or_else(|| Error::Unknown {
        key: key.into(),
        nearest: nearest(key, names()),
    })
}

/// The field of a key that [`Assignment::check`] has passed.
pub fn field<'a>(tunables: &'a mut Tunables, key: &str) -> Option<&'a mut u64> {
    match key {
        MODE => Some(&mut tunables.mode),
        key => tunables.knob_mut(current(key)),
    }
}

/// A value as people and scripts have it: a mode by its name.
pub fn text(key: &str, value: u64) -> String {
    match (key, Mode::from_number(value)) {
        (MODE, Some(mode)) => mode.name().into(),
        _ => value.to_string(),
    }
}
