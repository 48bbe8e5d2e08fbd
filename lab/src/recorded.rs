// SPDX-License-Identifier: GPL-2.0-only
//! Recorded times of simulated machines, tests/times/SET.toml.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    #[error("cannot read the recorded times {}: {reason}", path.display())]
    Times { path: PathBuf, reason: String },
    #[error("{}: {what} has no seeds: write ns = [0, 0] for two", path.display())]
    NoSeeds { path: PathBuf, what: String },
}

/// What is recorded: what times depend on beside the project, and the times.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    pub inputs: Inputs,
    #[serde(rename = "case")]
    pub cases: Vec<Case>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub machine: String,
    pub workload: String,
    #[serde(default)]
    pub parameters: Vec<String>,
    pub scheduler: String,
    /// By seed, from 1 on.
    pub ns: Vec<u64>,
}

impl Case {
    pub fn what(&self) -> String {
        let mut what = format!("{}, {}", self.machine, self.workload);
        for parameter in &self.parameters {
            what.push(' ');
            what.push_str(parameter);
        }
        what
    }

    pub fn name(&self, seed: u32) -> String {
        format!("{}, {}, seed {seed}", self.what(), self.scheduler)
    }
}

impl Recorded {
    pub fn load(path: &Path) -> Result<Self, Wrong> {
        let unusable = |reason: String| Wrong::Times {
            path: path.into(),
            reason,
        };
        let text = std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
        let recorded: Self =
            toml::from_str(&text).map_err(|error| unusable(error.message().into()))?;
        match recorded.cases.iter().find(|case| case.ns.is_empty()) {
            Some(case) => Err(Wrong::NoSeeds {
                path: path.into(),
                what: format!("{}, {}", case.what(), case.scheduler),
            }),
            None => Ok(recorded),
        }
    }

    pub fn text(&self) -> String {
        let quoted = |text: &str| toml::Value::String(text.into()).to_string();
        let mut out = String::from(HEADER);
        for (name, value) in &self.inputs {
            // Writing to a string cannot fail.
            writeln!(out, "{name} = {}", quoted(value)).ok();
        }
        for case in &self.cases {
            writeln!(out, "\n[[case]]\nmachine = {}", quoted(&case.machine)).ok();
            writeln!(out, "workload = {}", quoted(&case.workload)).ok();
            if !case.parameters.is_empty() {
                let all: Vec<_> = case.parameters.iter().map(|p| quoted(p)).collect();
                writeln!(out, "parameters = [{}]", all.join(", ")).ok();
            }
            writeln!(out, "scheduler = {}", quoted(&case.scheduler)).ok();
            let all: Vec<_> = case.ns.iter().map(u64::to_string).collect();
            writeln!(out, "ns = [{}]", all.join(", ")).ok();
        }
        out
    }
}

const HEADER: &str = "\
# SPDX-License-Identifier: GPL-2.0-only
# Times of simulated machines, in nanoseconds, by seed: scripts/machine check
# compares with them. Written by scripts/machine check --record, after a change
# that is meant to change them. A new case is written by hand, with ns = [0, 0]
# for two seeds, and then recorded.

# What they depend on; project: what of it is bpf/, machine/ and bench/.
[inputs]
";

/// The input that is changed on purpose only.
pub const PROJECT: &str = "project";

pub type Inputs = BTreeMap<String, String>;

/// A line for each that is another.
pub fn differences(recorded: &Inputs, here: &Inputs) -> Vec<String> {
    let mut names: Vec<_> = recorded.keys().chain(here.keys()).collect();
    names.sort();
    names.dedup();
    names
        .into_iter()
        .filter(|name| *name != PROJECT && recorded.get(*name) != here.get(*name))
        .map(|name| {
            let value = |all: &Inputs| all.get(name).map_or("none", String::as_str).to_string();
            format!("{name} {}, recorded with {}", value(here), value(recorded))
        })
        .collect()
}
