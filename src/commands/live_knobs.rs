// SPDX-License-Identifier: GPL-2.0-only
//! The commands that ask a running scheduler for its knobs and contexts.

use super::keys::{Keys, SETTABLE};
use crate::adapt::Status;
use crate::control::{ask, unexpected, Answer, Change, Request};
use crate::knobs::{current, Retired};
use crate::number::whole;
use crate::output::{self, Format};
use crate::settings::{find, names, Assignment, Error, MODE};
use anyhow::Result;
use clap::Args;
use serde::ser::{SerializeMap, Serializer};
use serde::Serialize;

/// Change knobs of the running scheduler
///
/// Either all named knobs are changed, or none.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// `mode`, or a knob as `scx_freqlock knobs` lists it, and its new value
    #[arg(required = true, value_name = "KEY=VALUE", hide_possible_values = true,
          value_parser = Keys::new(Assignment::parse, || SETTABLE.iter().map(String::as_str).collect()))]
    assignments: Vec<Assignment>,

    #[command(flatten)]
    format: Format,
}

/// Print the values of knobs of the running scheduler
///
/// In the form that set takes.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// Those to print; without any, all
    #[arg(value_name = "KEY", hide_possible_values = true,
          value_parser = Keys::new(parse_key, || names().collect()))]
    keys: Vec<String>,

    #[command(flatten)]
    format: Format,
}

fn parse_key(key: &str) -> Result<String, Error> {
    if key != MODE {
        find(key)?;
    }
    Ok(key.into())
}

/// Changes knobs, and prints what changed.
pub fn set(args: &SetArgs) -> Result<()> {
    let assignments = args.assignments.iter().map(|assignment| {
        let (assignment, retired) = assignment.clone().renamed();
        warn(retired);
        assignment
    });
    let answer = ask(&Request::Set(assignments.collect()))?;
    print_changes(&args.format, &changed(answer)?)
}

/// Takes back the latest change, and prints what changed.
pub fn undo(format: &Format) -> Result<()> {
    print_changes(format, &changed(ask(&Request::Undo)?)?)
}

/// Prints the knobs that are asked for.
pub fn get(args: &GetArgs) -> Result<()> {
    let values = values()?;
    let adapts = values.contains(&Assignment::new("adapt", 1));
    for key in &args.keys {
        warn(Retired::find(key));
    }
    let wanted = |key: &String| args.keys.is_empty() || args.keys.iter().any(|k| current(k) == key);
    let values = Values(values.into_iter().filter(|v| wanted(&v.key)).collect());
    output::show(args.format.json, &values, |Values(values)| {
        values.iter().map(|value| format!("{value}\n")).collect()
    })?;
    if adapts && wanted(&MODE.into()) {
        // Not among the values, which set takes as they are.
        let status = adaptive()?;
        if let Some(all) = status.contexts.first() {
            output::say(format_args!(
                "mode: {} was given; with --adapt: {} ({})",
                all.given, all.mode, all.state
            ));
        }
    }
    Ok(())
}

/// Says that a knob has another name now.
fn warn(retired: Option<&Retired>) {
    if let Some(retired) = retired {
        output::say(retired);
    }
}

/// One object: numbers, and the mode's name.
struct Values(Vec<Assignment>);

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for Assignment { key, value } in &self.0 {
            match value.parse::<u64>() {
                Ok(number) => map.serialize_entry(key, &number)?,
                Err(_) => map.serialize_entry(key, value)?,
            }
        }
        map.end()
    }
}

/// Print the modes that --adapt has found for each context
///
/// Also what it tries now, and its latest decisions.
#[derive(Debug, Args)]
pub struct AdaptArgs {
    /// Text or JSON.
    #[command(flatten)]
    pub format: Format,
}

/// Prints what --adapt has found and decided.
pub fn adapt(args: &AdaptArgs) -> Result<()> {
    output::show(args.format.json, &adaptive()?, |status| status.to_string())
}

fn adaptive() -> Result<Box<Status>> {
    match ask(&Request::Adapt)? {
        Answer::Adapt(status) => Ok(status),
        other => unexpected(other),
    }
}

/// Prints the changes that can be undone, with who made them and when.
pub fn changes(format: &Format) -> Result<()> {
    match ask(&Request::Changes)? {
        Answer::Changes(changes) => print_changes(format, &changes),
        other => unexpected(other),
    }
}

/// Has the running scheduler read its file of contexts again, and prints what it has then.
pub fn reload(format: &Format) -> Result<()> {
    match ask(&Request::Reload)? {
        Answer::Reloaded(contexts) => {
            output::show(format.json, &contexts, |contexts| format!("{contexts}\n"))
        }
        other => unexpected(other),
    }
}

/// Say which context a task is in, why, and its knobs
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The number of a process or of a thread
    #[arg(value_name = "PID", value_parser = whole(1..=i32::MAX as u32))]
    pid: u32,

    #[command(flatten)]
    format: Format,
}

/// Prints the context of a task; errors if the scheduler has no such task.
pub fn explain(args: &ExplainArgs) -> Result<()> {
    match ask(&Request::Explain(args.pid))? {
        Answer::Explained(explained) => {
            output::show(args.format.json, &explained, |e| e.to_string())
        }
        other => unexpected(other),
    }
}

fn values() -> Result<Vec<Assignment>> {
    match ask(&Request::Get)? {
        Answer::Values(values) => Ok(values),
        other => unexpected(other),
    }
}

fn changed(answer: Answer) -> Result<Vec<Change>> {
    match answer {
        Answer::Changed(changes) => Ok(changes),
        other => unexpected(other),
    }
}

fn print_changes(format: &Format, changes: &[Change]) -> Result<()> {
    output::show(format.json, &changes, |changes| {
        changes.iter().map(|change| format!("{change}\n")).collect()
    })
}
