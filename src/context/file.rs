// SPDX-License-Identifier: GPL-2.0-only
//! Files of contexts, read strictly: whatever is unknown or makes no sense is an
//! error that says where, and what would be right.

use super::entry::{Context, Contexts, Value, MAX_CONTEXTS};
use super::rule::Rule;
use crate::foreign;
use crate::knobs::{Knob, Retired, KNOBS};
use crate::settings::{check_value, MODE};
use crate::spelling::{did_you_mean, nearest};
use log::warn;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// Read at start where no other file is named, if it is there.
pub const DEFAULT_FILE: &str = "/etc/scx_freqlock/contexts.toml";

/// Why a file is not taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be opened or read, or is longer than 1 MiB.
    #[error("cannot read {}", foreign::path(path))]
    Read {
        /// As it was named.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Its contents make no sense.
    #[error("{}:{wrong}", foreign::path(path))]
    Wrong {
        /// As it was named.
        path: PathBuf,
        /// The first thing that is wrong.
        wrong: Wrong,
    },
}

impl Contexts {
    /// Reads a file; what is wrong with it is reported with line and column.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let text = read(path).map_err(|source| Error::Read {
            path: path.into(),
            source,
        })?;
        let contexts = parse(&text).map_err(|wrong| Error::Wrong {
            path: path.into(),
            wrong,
        })?;
        for value in contexts.0.iter().flat_map(|context| &context.values) {
            if let Some(retired) = value.retired {
                warn!("{}:{}: {retired}", foreign::path(path), value.line);
            }
        }
        Ok(contexts)
    }
}

/// A longer file is not a file of contexts.
const MAX_BYTES: u64 = 1 << 20;

/// What is wrong, and where: line and column count from 1, the latter in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    pub line: usize,
    pub column: usize,
    pub why: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.why)
    }
}

/// The text of a file. Errors where it is no text, or longer than any such file.
pub fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    // Without this, opening a pipe for reading would wait for a writer.
    let file = (File::options().read(true))
        .custom_flags(nix::libc::O_NONBLOCK)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no plain file"));
    }
    let read = file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if read as u64 > MAX_BYTES {
        let long = format!("it has more than {MAX_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, long));
    }
    Ok(text)
}

/// What is wrong at these bytes of the text.
type At = (Range<usize>, String);

/// The contexts of a text.
pub fn parse(text: &str) -> Result<Contexts, Wrong> {
    contexts(text).map_err(|(at, why)| {
        let (line, column) = position(text, at.start);
        Wrong { line, column, why }
    })
}

/// Line and column of a byte.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before: Vec<char> = (text.char_indices())
        .take_while(|(at, _)| *at < byte)
        .map(|(_, c)| c)
        .collect();
    let line = before.iter().filter(|c| **c == '\n').count();
    let column = before.iter().rev().take_while(|c| **c != '\n').count();
    (line + 1, column + 1)
}

fn contexts(text: &str) -> Result<Contexts, At> {
    let table = DeTable::parse(text)
        .map_err(|error| (error.span().unwrap_or_default(), error.message().into()))?;
    let mut list = Vec::new();
    for (key, value) in table.get_ref() {
        if key.get_ref() != "context" {
            return Err(unknown(key, &["context"]));
        }
        let DeValue::Array(tables) = value.get_ref() else {
            return Err((value.span(), "write each context as [[context]]".into()));
        };
        if let Some(beyond) = tables.get(MAX_CONTEXTS) {
            let why = format!(
                "{} contexts are more than the {MAX_CONTEXTS} that there may be",
                tables.len()
            );
            return Err((beyond.span(), why));
        }
        for table in tables.iter() {
            let (line, _) = position(text, table.span().start);
            let mut context = context(table)?;
            context.line = line;
            for value in &mut context.values {
                // Bytes so far.
                value.line = position(text, value.line).0;
            }
            check_new(&list, &context).map_err(|why| (table.span(), why))?;
            list.push(context);
        }
    }
    Ok(Contexts(list))
}

/// Nothing before it takes its name, or all of its tasks.
fn check_new(before: &[Context], new: &Context) -> Result<(), String> {
    for (i, old) in before.iter().enumerate() {
        let (number, line) = (i + 1, old.line);
        if old.name.is_some() && old.name == new.name {
            return Err(format!(
                "context {number} in line {line} has this name already"
            ));
        }
        if old.rule.covers(&new.rule) {
            return Err(format!(
                "no task would be in this context: each goes to context {number} in line {line}, \
                 and the first that fits is taken"
            ));
        }
    }
    Ok(())
}

const NAME: &str = "name";
const MATCH: &str = "match";

/// One context; of its values only the bytes are known yet, not the lines.
fn context(table: &Spanned<DeValue>) -> Result<Context, At> {
    let DeValue::Table(entries) = table.get_ref() else {
        return Err((table.span(), "write each context as [[context]]".into()));
    };
    let mut context = Context {
        name: None,
        line: 0,
        rule: Rule::default(),
        values: Vec::new(),
    };
    for (key, value) in entries {
        match key.get_ref().as_ref() {
            NAME => context.name = Some(string(value)?.into()),
            MATCH => context.rule = rule(value)?,
            MODE => context.values.push(number(key, MODE, value)?),
            name => {
                let knob = task_knob(key, name)?;
                if context.values.iter().any(|value| value.key == knob.name) {
                    let why = format!("`{}` is set twice, by its retired name, too", knob.name);
                    return Err((key.span(), why));
                }
                let retired = Retired::find(name);
                let value = number(key, knob.name, value)?;
                context.values.push(Value { retired, ..value });
            }
        }
    }
    if context.rule.is_empty() {
        let why =
            "which tasks is it for? match = { command = \"…\", cgroup = \"/…\", user = \"…\" }, \
                   one of them at least";
        return Err((table.span(), why.into()));
    }
    let value = |key| {
        context
            .values
            .iter()
            .find(|v| v.key == key)
            .map(|v| v.value)
    };
    if let (Some(min), Some(max)) = (value("weight_min"), value("weight_max")) {
        if min > max {
            let why = format!("weight_min = {min} is more than weight_max = {max}");
            return Err((table.span(), why));
        }
    }
    Ok(context)
}

fn task_knobs() -> impl Iterator<Item = &'static Knob> {
    KNOBS.iter().filter(|knob| knob.task)
}

fn task_knob(key: &Spanned<impl AsRef<str>>, name: &str) -> Result<&'static Knob, At> {
    match Knob::find(name) {
        Some(knob) if knob.task => return Ok(knob),
        Some(_) => {
            let why = format!("`{name}` is the same for all tasks: no context can set it");
            return Err((key.span(), why));
        }
        None => {}
    }
    let known = task_knobs()
        .map(|knob| knob.name)
        .chain([NAME, MATCH, MODE]);
    Err(unknown_of(key, known))
}

fn rule(value: &Spanned<DeValue>) -> Result<Rule, At> {
    let DeValue::Table(entries) = value.get_ref() else {
        let why = "write it as match = { command = \"…\", cgroup = \"/…\", user = \"…\" }";
        return Err((value.span(), why.into()));
    };
    let mut rule = Rule::default();
    for (key, value) in entries {
        let set = match key.get_ref().as_ref() {
            "command" => rule.set_command(string(value)?),
            "cgroup" => rule.set_cgroup(string(value)?),
            "user" => match value.get_ref() {
                DeValue::Integer(_) => {
                    let uid = integer(value).and_then(|uid| u32::try_from(uid).ok());
                    uid.map(|uid| rule.set_uid(uid))
                        .ok_or_else(|| "not the number of a user".into())
                }
                _ => rule.set_user(string(value)?),
            },
            _ => return Err(unknown(key, &["command", "cgroup", "user"])),
        };
        set.map_err(|why| (value.span(), why))?;
    }
    Ok(rule)
}

/// The value of a knob, as `set` would take it; true and false stand for 1 and 0.
fn number(
    key: &Spanned<impl AsRef<str>>,
    name: &'static str,
    value: &Spanned<DeValue>,
) -> Result<Value, At> {
    let text = match value.get_ref() {
        DeValue::String(text) if name == MODE => text.to_string(),
        DeValue::Boolean(yes) if is_switch(name) => u8::from(*yes).to_string(),
        DeValue::Integer(digits) => match integer(value) {
            Some(number) => number.to_string(),
            None => digits.as_str().into(),
        },
        _ if name == MODE => return Err((value.span(), "a mode is a name in quotes".into())),
        _ => return Err((value.span(), format!("`{name}` is a whole number"))),
    };
    let value = check_value(name, &text).map_err(|why| (value.span(), why.to_string()))?;
    Ok(Value {
        key: name,
        value,
        line: key.span().start,
        retired: None,
    })
}

fn is_switch(name: &str) -> bool {
    KNOBS
        .iter()
        .any(|knob| knob.name == name && knob.is_switch())
}

fn integer(value: &Spanned<DeValue>) -> Option<u64> {
    let DeValue::Integer(digits) = value.get_ref() else {
        return None;
    };
    u64::from_str_radix(digits.as_str(), digits.radix()).ok()
}

fn string<'a>(value: &'a Spanned<DeValue>) -> Result<&'a str, At> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text),
        _ => Err((value.span(), "this has to be a text in quotes".into())),
    }
}

fn unknown(key: &Spanned<impl AsRef<str>>, known: &[&'static str]) -> At {
    unknown_of(key, known.iter().copied())
}

fn unknown_of(key: &Spanned<impl AsRef<str>>, known: impl Iterator<Item = &'static str>) -> At {
    let name = key.get_ref().as_ref();
    let nearest = nearest(name, known);
    let why = format!("there is no `{name}` here{}", did_you_mean(&nearest));
    (key.span(), why)
}
