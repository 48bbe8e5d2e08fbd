// SPDX-License-Identifier: GPL-2.0-only
//! What is so for one task: which context it is in, why, and the values of its knobs.

use super::entry::Context;
use super::in_force::InForce;
use crate::foreign::{Escaped, Foreign};
use crate::knobs::{Tunables, KNOBS};
use crate::mode::Mode;
use crate::settings::{field, text, MODE};
use comfy_table::{presets, Table};
use nix::unistd::{Uid, User};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What the BPF side has of a task: `struct fl_explained`.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Of its process.
    pub tgid: u32,
    /// The number of the context that it fits now, from 1; 0 is none.
    pub context: u32,
    /// Where the policy stands that it has had since it was last looked at.
    pub policy: u32,
    /// That of its nice value, within what its context allows; 1024 is that of nice 0.
    pub weight: u64,
    /// The thread's name, of 15 bytes at most.
    pub command: Foreign,
    /// The path of its cgroup; empty for the root.
    pub cgroup: Foreign,
    /// Its real user.
    pub uid: u32,
}

/// The answer to `explain`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    /// The task, as it was asked for.
    pub pid: u32,
    /// The id of its process.
    pub process: u32,
    /// The thread's name, of 15 bytes at most.
    pub command: Foreign,
    /// The path of its cgroup; `/` for the root.
    pub cgroup: Foreign,
    /// Its real user.
    pub uid: u32,
    /// That user's name; none if there is no such user here.
    pub user: Option<Foreign>,
    /// 1024 is that of nice 0.
    pub weight: u64,
    /// None for a task in no context.
    pub context: Option<Found>,
    /// How many contexts there are.
    pub contexts: usize,
    /// The file that they are from; the default one may be missing.
    pub file: Foreign,
    /// False if the task was not looked at since it fits this context: then it will be
    /// when it runs next.
    pub settled: bool,
    /// The mode, then the knobs that contexts may set.
    pub values: Vec<Effective>,
}

/// The context that a task is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    pub number: u32,
    pub name: Option<Foreign>,
    /// In the file, from 1.
    pub line: usize,
    /// What it asks for and what the task has, one line each.
    pub why: Vec<String>,
}

/// A knob as it is for one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effective {
    pub key: String,
    pub value: String,
    /// The line of the file of contexts that says so.
    pub line: Option<usize>,
    /// Whether it is what it would be if nobody had set it.
    pub default: bool,
    /// What it would be without --adapt, if that is something else.
    pub given: Option<String>,
}

impl Explained {
    /// From what the BPF side has `seen` of task `pid`; `base` holds for tasks in no context.
    pub fn new(pid: u32, seen: &Seen, in_force: &InForce, base: &Tunables) -> Self {
        let context = in_force.get(seen.context);
        let mut of_task = in_force.policy(seen.context, base);
        let mut given = context.map_or(*base, |context| context.over(base));
        let mut defaults = Tunables::new(Mode::Auto);
        let keys = KNOBS.iter().filter(|knob| knob.task).map(|knob| knob.name);
        let values = std::iter::once(MODE).chain(keys).filter_map(|key| {
            let value = *field(&mut of_task, key)?;
            Some(Effective {
                key: key.into(),
                value: text(key, value),
                line: context.and_then(|context| context.line_of(key)),
                default: field(&mut defaults, key) == Some(&mut value.clone()),
                given: field(&mut given, key)
                    .filter(|given| **given != value)
                    .map(|given| text(key, *given)),
            })
        });
        let user = User::from_uid(Uid::from_raw(seen.uid)).ok().flatten();
        Self {
            pid,
            process: seen.tgid,
            command: seen.command.clone(),
            cgroup: match seen.cgroup.is_empty() {
                true => "/".into(),
                false => seen.cgroup.clone(),
            },
            uid: seen.uid,
            user: user.map(|user| user.name.into()),
            weight: seen.weight,
            context: context.map(|context| Found::new(seen, context)),
            contexts: in_force.len(),
            file: in_force.path().display().to_string().into(),
            settled: in_force.policy_at(seen.context) == seen.policy as usize,
            values: values.collect(),
        }
    }
}

impl Found {
    fn new(seen: &Seen, context: &Context) -> Self {
        let why = |(what, wanted): (&str, Escaped)| match what {
            "command" => format!("command {wanted} fits its name, {}", seen.command),
            "cgroup" => format!("cgroup {wanted} fits its own, {}", seen.cgroup),
            _ => format!("user {wanted} is its own"),
        };
        Self {
            number: seen.context,
            name: context.name.clone(),
            line: context.line,
            why: context.rule.asks().map(why).collect(),
        }
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let user = (self.user.as_ref()).map_or("unknown".into(), ToString::to_string);
        writeln!(
            f,
            "task {} ({}) of process {}, user {} ({user}), cgroup {}, weight {}",
            self.pid, self.command, self.process, self.uid, self.cgroup, self.weight
        )?;
        match &self.context {
            Some(found) => {
                let name = (found.name.as_ref()).map_or(String::new(), |name| format!(" `{name}`"));
                writeln!(
                    f,
                    "context {} of {}{name} ({}:{}), the first that matches:",
                    found.number, self.contexts, self.file, found.line
                )?;
                for why in &found.why {
                    writeln!(f, "  {why}")?;
                }
            }
            None if self.contexts == 0 => writeln!(f, "no context: there are none")?,
            None => writeln!(
                f,
                "no context: it fits none of the {} in {}",
                self.contexts, self.file
            )?,
        }
        if !self.settled {
            writeln!(
                f,
                "It has not run since that is so: it gets these values when it does."
            )?;
        }
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING)
            .set_header(["knob", "value", "from"]);
        for Effective {
            key,
            value,
            line,
            default,
            given,
        } in &self.values
        {
            let from = match (given, line) {
                (Some(given), _) => format!("--adapt, rather than {given}"),
                (None, Some(line)) => format!("its context, line {line}"),
                (None, None) if *default => "default".into(),
                (None, None) => "set for all".into(),
            };
            table.add_row([key, value, &from]);
        }
        writeln!(f, "{table}")
    }
}
