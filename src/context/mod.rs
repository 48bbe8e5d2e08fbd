// SPDX-License-Identifier: GPL-2.0-only
//! Contexts: a file that gives the tasks of some services other values of knobs.
//!
//! [`file`] reads it, [`rule`] says which tasks a context is for, [`in_force`] which
//! contexts the BPF side has, and [`explain`] what is so for one task. Which context a
//! task is in is decided by the BPF side alone (bpf/context.bpf.c).

mod explain;
mod file;
#[cfg(test)]
mod fuzz;
mod in_force;
mod rule;
#[cfg(test)]
mod tests;

pub use explain::{Explained, Seen};
pub use in_force::InForce;
pub use rule::Rule;

use crate::control::{field, text};
use crate::foreign::{self, Foreign};
use crate::intf;
use crate::knobs::Tunables;
use crate::output::{self, Format};
use comfy_table::{presets, ContentArrangement, Table};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Read at start where no other file is named, if it is there.
pub const DEFAULT_FILE: &str = "/etc/scx_freqlock/contexts.toml";

/// As many as the BPF side has room for.
pub const MAX_CONTEXTS: usize = intf::fl_consts_FL_MAX_CONTEXTS as usize;

/// Why a file is not taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}", foreign::path(path))]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{}:{wrong}", foreign::path(path))]
    Wrong { path: PathBuf, wrong: file::Wrong },
}

/// One `[[context]]` of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    pub name: Option<Foreign>,
    /// Where it begins in its file, from 1.
    pub line: usize,
    pub rule: Rule,
    /// The knobs that it sets.
    pub values: Vec<Value>,
}

/// A knob that a context sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// `mode`, or the name of a knob.
    pub key: &'static str,
    pub value: u64,
    pub line: usize,
}

/// What a file says, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contexts(pub Vec<Context>);

impl Contexts {
    /// Reads a file; what is wrong with it is told with line and column.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let text = file::read(path).map_err(|source| Error::Read {
            path: path.into(),
            source,
        })?;
        file::parse(&text).map_err(|wrong| Error::Wrong {
            path: path.into(),
            wrong,
        })
    }
}

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

#[derive(Debug, clap::Args)]
pub struct ContextsArgs {
    #[arg(default_value = DEFAULT_FILE, value_name = "FILE")]
    pub file: PathBuf,

    #[command(flatten)]
    pub format: Format,
}

/// A context as it is listed.
#[derive(Debug, Serialize)]
struct Listed {
    /// By which `explain` names it.
    number: usize,
    line: usize,
    name: Option<Foreign>,
    /// Which tasks it is for, in words.
    r#match: Foreign,
    values: BTreeMap<&'static str, String>,
}

/// Reads a file and prints what it says, as the scheduler would take it.
pub fn print(args: &ContextsArgs) -> anyhow::Result<()> {
    let Contexts(contexts) = Contexts::load(&args.file)?;
    let listed = (1..).zip(&contexts).map(|(number, context)| Listed {
        number,
        line: context.line,
        name: context.name.clone(),
        r#match: context.rule.to_string().into(),
        values: (context.values.iter())
            .map(|value| (value.key, text(value.key, value.value)))
            .collect(),
    });
    output::show(args.format.json, &listed.collect::<Vec<_>>(), |listed| {
        table(listed)
    })
}

fn table(listed: &[Listed]) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(["", "line", "name", "match", "values"]);
    for context in listed {
        let values = context
            .values
            .iter()
            .map(|(key, value)| format!("{key}={value}"));
        table.add_row([
            context.number.to_string(),
            context.line.to_string(),
            (context.name.as_ref()).map_or(String::new(), ToString::to_string),
            context.r#match.to_string(),
            values.collect::<Vec<_>>().join(" "),
        ]);
    }
    format!("{table}\n")
}
