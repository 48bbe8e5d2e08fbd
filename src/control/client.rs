// SPDX-License-Identifier: GPL-2.0-only
//! The commands that ask a running scheduler for its knobs and contexts.

use super::keys::{Keys, SETTABLE};
use super::{find, names, text, Answer, Assignment, Change, Error, Request, MODE, SOCKET};
use crate::adapt::{AdaptArgs, Status};
use crate::knobs::{Knob, Tunables, KNOBS};
use crate::mode::Mode;
use crate::output;
use crate::stats;
use anyhow::{bail, Context, Result};
use clap::{Args, ValueEnum};
use comfy_table::{presets, ContentArrangement, Table};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A scheduler that loads itself again answers after that.
const PATIENCE: Duration = Duration::from_secs(10);

/// Change knobs of the running scheduler: all that are named, or none of them
#[derive(Debug, Args)]
pub struct SetArgs {
    /// `mode`, or a knob as `scx_freqlock knobs` lists it, and its new value
    #[arg(required = true, value_name = "KEY=VALUE", hide_possible_values = true,
          value_parser = Keys::new(Assignment::parse, || SETTABLE.iter().map(String::as_str).collect()))]
    assignments: Vec<Assignment>,
}

/// Print the values of knobs of the running scheduler, as set takes them
#[derive(Debug, Args)]
pub struct GetArgs {
    /// Those to print; without any, all
    #[arg(value_name = "KEY", hide_possible_values = true,
          value_parser = Keys::new(parse_key, || names().collect()))]
    keys: Vec<String>,
}

fn parse_key(key: &str) -> Result<String, Error> {
    if key != MODE {
        find(key)?;
    }
    Ok(key.into())
}

pub fn set(args: &SetArgs) -> Result<()> {
    print_changes(&changed(ask(&Request::Set(args.assignments.clone()))?)?)
}

pub fn undo() -> Result<()> {
    print_changes(&changed(ask(&Request::Undo)?)?)
}

pub fn get(args: &GetArgs) -> Result<()> {
    let values = values()?;
    let adapts = values.contains(&Assignment::new("adapt", 1));
    let wanted = |key: &String| args.keys.is_empty() || args.keys.contains(key);
    let lines = (values.into_iter().filter(|value| wanted(&value.key)))
        .map(|Assignment { key, value }| format!("{key}={value}\n"));
    output::print(lines.collect::<String>())?;
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

/// Prints what --adapt has found and decided.
pub fn adapt(args: &AdaptArgs) -> Result<()> {
    output::show(args.json, &adaptive()?, |status| status.to_string())
}

fn adaptive() -> Result<Box<Status>> {
    match ask(&Request::Adapt)? {
        Answer::Adapt(status) => Ok(status),
        other => unexpected(other),
    }
}

/// Prints the changes that could be taken back, with who made them and when.
pub fn changes() -> Result<()> {
    match ask(&Request::Changes)? {
        Answer::Changes(changes) => print_changes(&changes),
        other => unexpected(other),
    }
}

/// Has the running scheduler read its file of contexts again, and prints what it has then.
pub fn reload() -> Result<()> {
    match ask(&Request::Reload)? {
        Answer::Reloaded(contexts) => Ok(output::print(contexts + "\n")?),
        other => unexpected(other),
    }
}

/// Say which context a task is in, why, and what values its knobs have
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The number of a process or of a thread
    #[arg(value_name = "PID")]
    pid: u32,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn explain(args: &ExplainArgs) -> Result<()> {
    match ask(&Request::Explain(args.pid))? {
        Answer::Explained(explained) => output::show(args.json, &explained, |e| e.to_string()),
        other => unexpected(other),
    }
}

/// Prints the table of knobs; it needs no scheduler.
pub fn knobs() -> Result<()> {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(["name", "unit", "range", "default", "changes", "meaning"]);
    let modes: Vec<_> = Mode::value_variants().iter().map(|m| m.name()).collect();
    let default = text(MODE, Tunables::new(Mode::Auto).mode);
    let meaning = "Where forked and woken tasks go";
    table.add_row([
        MODE,
        "",
        &modes.join(", "),
        &default,
        "live, by context",
        meaning,
    ]);
    for knob in KNOBS {
        table.add_row([
            knob.name,
            knob.unit,
            &format!("{}..{}", knob.min, knob.max),
            &knob.default.to_string(),
            match knob {
                Knob { task: true, .. } => "live, by context",
                Knob { live: true, .. } => "live",
                _ => "at start",
            },
            knob.meaning,
        ]);
    }
    Ok(output::print(format!("{table}\n"))?)
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

fn print_changes(changes: &[Change]) -> Result<()> {
    let lines = changes.iter().map(|change| format!("{change}\n"));
    Ok(output::print(lines.collect::<String>())?)
}

fn unexpected<T>(answer: Answer) -> Result<T> {
    match answer {
        Answer::Error(why) => bail!(why),
        other => bail!("the scheduler answered something else: {other:?}"),
    }
}

fn ask(request: &Request) -> Result<Answer> {
    let stream = UnixStream::connect(SOCKET).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            anyhow::Error::new(stats::Error::NotRunning)
        }
        _ => anyhow::Error::new(error).context(format!("cannot connect to {SOCKET}")),
    })?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    (&stream).write_all(line.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(&stream)
        .read_line(&mut answer)
        .context("the running scx_freqlock does not answer")?;
    serde_json::from_str(&answer)
        .with_context(|| format!("the running scx_freqlock answers `{}`", answer.trim()))
}
