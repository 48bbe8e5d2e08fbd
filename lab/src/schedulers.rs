// SPDX-License-Identifier: GPL-2.0-only
//! The schedulers that one can name, and the programs that load them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use freqlock::mode::Mode;
use freqlock::spelling::{did_you_mean, nearest};

/// No scheduler of sched_ext: the kernel's own.
pub const KERNEL: &str = "eevdf";

/// The programs of the scx project, for suggestions only: any other program
/// whose name begins with `scx_` will do.
const PEERS: [&str; 13] = [
    "scx_beerland",
    "scx_bpfland",
    "scx_cosmos",
    "scx_flash",
    "scx_floor",
    "scx_lavd",
    "scx_layered",
    "scx_p2dq",
    "scx_pandemonium",
    "scx_rustland",
    "scx_rusty",
    "scx_simple",
    "scx_tickless",
];

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("unknown scheduler {name}{}: there are {KERNEL}, {}, and installed programs such as scx_bpfland", did_you_mean(.nearest), modes().join(", "))]
    UnknownScheduler {
        name: String,
        nearest: Option<String>,
    },
    #[error("{KERNEL} is the kernel's own scheduler and takes no arguments: {0}")]
    KernelArguments(String),
    #[error("cannot take the arguments of {spec} apart: {reason}")]
    Arguments { spec: String, reason: String },
}

fn modes() -> Vec<&'static str> {
    Mode::value_variants()
        .iter()
        .map(|mode| mode.name())
        .collect()
}

/// A scheduler that a program loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loader {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// What its name in /sys/kernel/sched_ext/root/ops begins with.
    pub ops: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduler {
    /// As it was named, and unique.
    pub label: String,
    /// None for the kernel's own.
    pub loader: Option<Loader>,
}

/// The programs that load schedulers.
pub struct Programs<'a> {
    /// This one.
    pub ours: &'a Path,
    pub find: &'a dyn Fn(&str) -> Option<PathBuf>,
    /// Names that stand for no program and yet are compared.
    pub others: &'a [&'a str],
}

/// Splits a list at its commas, those in quotes left alone.
pub fn split_specs(list: &str) -> Vec<String> {
    let mut quote = None;
    let mut specs = vec![String::new()];
    for c in list.chars() {
        match quote {
            None if c == ',' => {
                specs.push(String::new());
                continue;
            }
            None if c == '\'' || c == '"' => quote = Some(c),
            Some(open) if c == open => quote = None,
            _ => {}
        }
        if let Some(spec) = specs.last_mut() {
            spec.push(c);
        }
    }
    specs
        .iter()
        .map(|spec| spec.trim().to_string())
        .filter(|spec| !spec.is_empty())
        .collect()
}

/// None if it is a program that is not installed.
pub fn scheduler(spec: &str, programs: &Programs) -> Result<Option<Scheduler>, Error> {
    let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
    let arguments = shell_words::split(rest).map_err(|error| Error::Arguments {
        spec: spec.into(),
        reason: error.to_string(),
    })?;
    let arguments = arguments.into_iter().map(OsString::from);
    let loader = if programs.others.contains(&spec) {
        None
    } else if name == KERNEL {
        if arguments.len() > 0 {
            return Err(Error::KernelArguments(spec.into()));
        }
        None
    } else if modes().contains(&name) {
        Some(Loader {
            program: programs.ours.into(),
            arguments: std::iter::once(format!("--mode={name}").into())
                .chain(arguments)
                .collect(),
            ops: "freqlock".into(),
        })
    } else if let Some(program) = (programs.find)(name).filter(|_| name.starts_with("scx_")) {
        Some(Loader {
            program,
            arguments: arguments.collect(),
            ops: name.trim_start_matches("scx_").into(),
        })
    } else if PEERS.contains(&name) {
        return Ok(None);
    } else {
        let known = std::iter::once(KERNEL).chain(modes()).chain(PEERS);
        return Err(Error::UnknownScheduler {
            name: name.into(),
            nearest: nearest(name, known),
        });
    };
    Ok(Some(Scheduler {
        label: spec.into(),
        loader,
    }))
}

/// A scheduler may be compared with itself, which shows how much of a
/// difference is chance.
pub fn make_unique(schedulers: &mut [Scheduler]) {
    for i in 1..schedulers.len() {
        let (before, rest) = schedulers.split_at_mut(i);
        let same = before
            .iter()
            .filter(|other| other.label.split('#').next() == Some(&rest[0].label))
            .count();
        if same > 0 {
            rest[0].label = format!("{}#{}", rest[0].label, same + 1);
        }
    }
}
