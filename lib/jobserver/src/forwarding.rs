// SPDX-License-Identifier: GPL-2.0-only
//! The command: it gets the signals that the server gets, and its status is the server's.

use anyhow::{Context, Result};
use nix::sys::signal::{kill, SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};

/// As shells, env(1) and nice(1) have it.
pub const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;
/// When the server itself fails.
pub const FAILED: u8 = 125;
/// Of which the number of a signal is added.
const SIGNALLED: i32 = 128;

const FORWARDED: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// Signals, as something to wait for.
pub struct Signals(SignalFd);

impl Signals {
    /// From now on these signals do nothing else. Before anything is started, so that none is missed.
    pub fn block() -> Result<Self> {
        let mut set = SigSet::from_iter(FORWARDED);
        set.add(Signal::SIGCHLD);
        set.thread_block().context("cannot block signals")?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let fd = SignalFd::with_flags(&set, flags).context("cannot wait for signals")?;
        Ok(Self(fd))
    }

    /// To poll.
    pub fn fd(&self) -> &SignalFd {
        &self.0
    }

    /// Passes on to `child` what came, if there is one. A signal of the terminal went to the child,
    /// too. Returns the last one that asks a program to end.
    pub fn pass_on(&self, child: Option<&Child>) -> Option<Signal> {
        let mut end = None;
        while let Ok(Some(info)) = self.0.read_signal() {
            let Ok(signal) = Signal::try_from(info.ssi_signo as i32) else {
                continue;
            };
            if !FORWARDED.contains(&signal) {
                continue;
            }
            if !matches!(signal, Signal::SIGUSR1 | Signal::SIGUSR2) {
                end = Some(signal);
            }
            let is_from_terminal = info.ssi_code == libc::SI_KERNEL;
            if let Some(child) = child.filter(|_| !is_from_terminal) {
                // It is not waited for as yet, so its number is its own. It may have ended.
                let _ = kill(Pid::from_raw(child.id() as i32), signal);
            }
        }
        end
    }
}

/// Why a command did not start: what to say, and the status to end with.
pub fn not_started(command: &Command, why: &std::io::Error) -> (String, u8) {
    let program = command.get_program().to_string_lossy();
    match why.kind() {
        ErrorKind::NotFound => (format!("{program}: command not found"), NOT_FOUND),
        _ => (format!("cannot run {program}: {why}"), NOT_EXECUTABLE),
    }
}

/// The status that passes a child's on.
pub fn status(child: ExitStatus) -> u8 {
    let status = match (child.code(), child.signal()) {
        (Some(code), _) => code,
        (None, signal) => SIGNALLED + signal.unwrap_or(0),
    };
    status as u8
}
