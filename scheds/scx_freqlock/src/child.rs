// SPDX-License-Identifier: GPL-2.0-only
//! Runs the command that `observe` and `cost` measure.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};

use anyhow::{Context, Result};
use rustix::process::{kill_process, Pid, Signal};

/// Starts it on this process's own standard files. Ctrl-C and termination
/// end the command, not the measurement, which reports what it has.
pub fn spawn(command: &[OsString]) -> Result<Child> {
    let (program, args) = command
        .split_first()
        .context("no command was given after --")?;
    let child = Command::new(program)
        .args(args)
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let pid = Pid::from_child(&child);
    ctrlc::set_handler(move || {
        // It may have ended already, which is as well.
        let _ = kill_process(pid, Signal::TERM);
    })
    .context("cannot install a signal handler")?;
    Ok(child)
}

/// The status that a shell would give.
pub fn exit_code(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}
