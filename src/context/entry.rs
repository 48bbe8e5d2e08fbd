// SPDX-License-Identifier: GPL-2.0-only
//! A context: whose tasks it is for, and the knobs that it sets.

use super::rule::Rule;
use crate::foreign::Foreign;
use crate::intf;
use crate::knobs::{Retired, Tunables};
use crate::settings::field;

/// As many as the BPF side has room for.
pub const MAX_CONTEXTS: usize = intf::fl_consts_FL_MAX_CONTEXTS as usize;

/// One `[[context]]` of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// For people; none if the file gives none.
    pub name: Option<Foreign>,
    /// Where it begins in its file, from 1.
    pub line: usize,
    /// Which tasks it is for.
    pub rule: Rule,
    /// The knobs that it sets.
    pub values: Vec<Value>,
}

/// A knob that a context sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// `mode`, or the name of a knob.
    pub key: &'static str,
    /// As it is stored: a switch is 0 or 1, the mode its number.
    pub value: u64,
    /// Where it stands in the file, from 1.
    pub line: usize,
    /// Where the file has its retired name.
    pub retired: Option<&'static Retired>,
}

/// What a file says, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contexts(pub Vec<Context>);

impl Context {
    /// The line that sets a knob.
    pub fn line_of(&self, key: &str) -> Option<usize> {
        let mut values = self.values.iter();
        values
            .find(|value| value.key == key)
            .map(|value| value.line)
    }

    /// All knobs as its tasks have them, where those of no context have `base`.
    pub fn over(&self, base: &Tunables) -> Tunables {
        let mut tunables = *base;
        for value in &self.values {
            if let Some(field) = field(&mut tunables, value.key) {
                *field = value.value;
            }
        }
        tunables
    }
}
