// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock run`: executes a command in policy SCHED_EXT, which its children inherit.

use crate::policy;
use anyhow::{bail, Context, Result};
use freqlock::{foreign, output, preflight};
use nix::errno::Errno;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Run a command under a scheduler that runs with --partial
///
/// Its children inherit the policy. Where the scheduler has all tasks, that changes nothing;
/// where none runs, the kernel's own has them. The exit status is the command's; 126 and 127
/// say that it cannot be executed, or is not there. This needs no root.
#[derive(Debug, clap::Args)]
pub struct RunCommandOpts {
    /// The command, with its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// As shells have it.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Returns only if there is no such command: then its exit status.
pub fn run(opts: &RunCommandOpts) -> Result<u8> {
    let (program, args) = (opts.command.split_first()).context("no command was given after --")?;
    match policy::enter_ext() {
        Ok(()) => {}
        Err(Errno::EINVAL) => bail!(preflight::no_sched_ext()),
        Err(error) => bail!("cannot ask for policy SCHED_EXT: {}", error.desc()),
    }
    if let Some(line) = elsewhere() {
        output::say(format_args!("scx_freqlock: {line}"));
    }
    let error = Command::new(program).args(args).exec();
    let shown = foreign::path(Path::new(program));
    output::say(format_args!("scx_freqlock: cannot run {shown}: {error}"));
    Ok(match error.kind() {
        ErrorKind::NotFound => NOT_FOUND,
        _ => NOT_EXECUTABLE,
    })
}

/// What to say where it is not scx_freqlock that will schedule the command.
fn elsewhere() -> Option<String> {
    match preflight::loaded() {
        None => Some(
            "no sched_ext scheduler is running: the command is on the kernel's own until one is"
                .into(),
        ),
        Some(name) if !name.starts_with("freqlock") => Some(format!(
            "the scheduler that is running is {}",
            foreign::Foreign::from(name)
        )),
        Some(_) => None,
    }
}
