// SPDX-License-Identifier: GPL-2.0-only
//! Keys and their values on the command line: parsed with errors that say more than
//! clap's, and listed for the completions of shells.

use crate::knobs::KNOBS;
use crate::mode::Mode;
use crate::settings::{Error, MODE};
use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, ValueEnum};
use std::ffi::OsStr;
use std::sync::LazyLock;

/// A parser, and what it takes.
#[derive(Clone)]
pub struct Keys<T> {
    parse: fn(&str) -> Result<T, Error>,
    values: fn() -> Vec<&'static str>,
}

impl<T> Keys<T> {
    pub fn new(parse: fn(&str) -> Result<T, Error>, values: fn() -> Vec<&'static str>) -> Self {
        Self { parse, values }
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Keys<T> {
    type Value = T;

    fn parse_ref(&self, cmd: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        self.parse.parse_ref(cmd, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = (self.values)().into_iter().map(PossibleValue::new);
        Some(Box::new(values))
    }
}

/// What `set` takes, as KEY=VALUE: every mode, both values of what is on or off, and of
/// all else the default, to begin with.
pub static SETTABLE: LazyLock<Vec<String>> = LazyLock::new(|| {
    let modes = Mode::value_variants()
        .iter()
        .map(|mode| format!("{MODE}={}", mode.name()));
    let live = KNOBS.iter().filter(|knob| knob.live);
    let values = live.flat_map(|knob| {
        match knob.is_switch() {
            true => vec![0, 1],
            false => vec![knob.default],
        }
        .into_iter()
        .map(|value| format!("{}={value}", knob.name))
    });
    modes.chain(values).collect()
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Assignment;

    #[test]
    fn what_is_offered_can_be_set() {
        assert!(SETTABLE.contains(&"mode=nest".into()));
        assert!(SETTABLE.contains(&"slice_us=4000".into()));
        assert!(SETTABLE.contains(&"spin=0".into()) && SETTABLE.contains(&"spin=1".into()));
        for offered in SETTABLE.iter() {
            Assignment::parse(offered).unwrap();
        }
    }
}
