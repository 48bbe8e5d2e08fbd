// SPDX-License-Identifier: GPL-2.0-only
//! What `observe`, `cost` and `record` share: they run a command, and report on it.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};

use anyhow::{Context, Result};
use freqlock::{foreign, output};
use rustix::process::{kill_process, Pid, Signal};
use serde::Serialize;

/// Standard output is the command's: the report never goes there.
#[derive(Debug, clap::Args)]
pub struct ReportOpts {
    /// Report as JSON
    #[arg(long)]
    json: bool,

    /// Write the report to this file instead of standard error
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ReportOpts {
    pub fn write<T: Serialize + Display>(&self, report: &T) -> Result<()> {
        let text = if self.json {
            output::json(report, true)?
        } else {
            foreign::lines(&report.to_string()).into_owned()
        };
        match &self.output {
            Some(path) => File::create(path)
                .and_then(|mut file| file.write_all(text.as_bytes()))
                .with_context(|| format!("cannot write {}", foreign::path(path))),
            None => std::io::stderr()
                .write_all(text.as_bytes())
                .context("cannot write the report"),
        }
    }
}

/// Starts it on this process's own standard files. Ctrl-C and termination
/// end the command, not the measurement, which reports what it has.
pub fn spawn(command: &[OsString]) -> Result<Child> {
    let (program, args) = command
        .split_first()
        .context("no command was given after --")?;
    let child = Command::new(program)
        .args(args)
        .spawn()
        .with_context(|| format!("cannot run {}", foreign::path(program.as_ref())))?;
    let pid = Pid::from_child(&child);
    ctrlc::set_handler(move || {
        // It may have ended already, which is as well.
        let _ = kill_process(pid, Signal::TERM);
    })
    .context("cannot handle signals")?;
    Ok(child)
}

/// The status that a shell would give.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok())
        .unwrap_or(u8::MAX)
}

/// Ids of the CPUs that are online, in their order.
pub fn online_cpus() -> Result<Vec<usize>> {
    const ONLINE: &str = "/sys/devices/system/cpu/online";
    let list = std::fs::read_to_string(ONLINE).with_context(|| format!("cannot read {ONLINE}"))?;
    scx_utils::read_cpulist(list.trim()).with_context(|| format!("{ONLINE} holds no list of CPUs"))
}
