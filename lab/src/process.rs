// SPDX-License-Identifier: GPL-2.0-only
//! Child processes whose ends arrive as events, in one queue with Ctrl-C, so
//! that one wait covers the scheduler, the workload and the user.

use std::collections::VecDeque;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{mpsc, Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{killpg, Signal};
use nix::sys::wait::{waitid, Id, WaitPidFlag};
use nix::unistd::Pid;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The process has ended and waits to be reaped.
    Exited(Pid),
    /// Ctrl-C or SIGTERM.
    Interrupted,
}

/// More output than this is cut at its beginning: what matters of a log is its
/// end, and no workload prints that many metrics.
const KEPT_OUTPUT: usize = 64 << 10;

/// How long a dead process's pipes may stay open: another process may have
/// inherited them and left the group.
const PIPE_PATIENCE: Duration = Duration::from_secs(1);

/// A child in a process group of its own, all of which is killed when this is
/// dropped. Ctrl-C in a terminal does not reach it: whoever started it ends it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stdout: Output,
    stderr: Output,
}

pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Process {
    pub fn start(command: &mut Command, events: &Sender<Event>) -> std::io::Result<Self> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        // SAFETY: prctl() is a plain system call and neither allocates nor locks.
        unsafe {
            // A scheduler must not outlive us, even if we are killed. Us means
            // the calling thread.
            command.pre_exec(|| Ok(prctl::set_pdeathsig(Signal::SIGTERM)?));
        }
        let mut child = command.spawn()?;
        let pid = pid_of(&child);
        let process = Self {
            stdout: Output::of(child.stdout.take()),
            stderr: Output::of(child.stderr.take()),
            child,
        };
        let events = events.clone();
        std::thread::spawn(move || {
            // Left to be reaped by its owner, so that until then nothing else
            // can have its number.
            let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
            while waitid(Id::Pid(pid), flags) == Err(Errno::EINTR) {}
            // Nobody listens any more when the owner was dropped.
            events.send(Event::Exited(pid)).ok();
        });
        Ok(process)
    }

    pub fn pid(&self) -> Pid {
        pid_of(&self.child)
    }

    /// Asks it and its children to end.
    pub fn terminate(&self) {
        // It may have ended by itself.
        killpg(self.pid(), Signal::SIGTERM).ok();
    }

    /// Kills what is left of it and gives what it said.
    pub fn finish(mut self) -> std::io::Result<Ended> {
        let status = self.kill()?;
        let deadline = Instant::now() + PIPE_PATIENCE;
        Ok(Ended {
            status,
            stdout: self.stdout.take(deadline),
            stderr: self.stderr.take(deadline),
        })
    }

    fn kill(&mut self) -> std::io::Result<ExitStatus> {
        killpg(self.pid(), Signal::SIGKILL).ok();
        self.child.wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Once reaped, its number may be another process's.
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.kill().ok();
        }
    }
}

impl Ended {
    /// Why it failed, in one line: its own last words, or else its status.
    pub fn reason(&self) -> String {
        let last = self
            .stderr
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty());
        let status = match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit status {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => self.status.to_string(),
        };
        match last {
            Some(line) => format!("{status}: {}", line.trim()),
            None => format!("{status}, without a word"),
        }
    }
}

fn pid_of(child: &Child) -> Pid {
    // The kernel's own type of it is signed.
    Pid::from_raw(child.id() as i32)
}

/// The end of what a pipe gives, read by a thread of its own so that the writer
/// never waits.
#[derive(Debug)]
struct Output {
    kept: Arc<Mutex<VecDeque<u8>>>,
    closed: Receiver<()>,
}

impl Output {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let (open, closed) = mpsc::channel();
        if let Some(mut pipe) = pipe {
            let kept = Arc::clone(&kept);
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(n @ 1..) = pipe.read(&mut buffer) {
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.extend(&buffer[..n]);
                    let excess = kept.len().saturating_sub(KEPT_OUTPUT);
                    kept.drain(..excess);
                }
                drop(open);
            });
        }
        Self { kept, closed }
    }

    fn take(&mut self, deadline: Instant) -> String {
        let patience = deadline.saturating_duration_since(Instant::now());
        // An error either way: the pipe was closed, or patience was at its end.
        self.closed.recv_timeout(patience).ok();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(kept.make_contiguous()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> (Process, Receiver<Event>) {
        let (sender, events) = mpsc::channel();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        (Process::start(&mut command, &sender).unwrap(), events)
    }

    #[test]
    fn gives_output_status_and_reason() {
        let (process, events) = sh("echo out; echo first >&2; echo last words >&2; exit 7");
        assert_eq!(events.recv().unwrap(), Event::Exited(process.pid()));
        let ended = process.finish().unwrap();
        assert_eq!(ended.stdout, "out\n");
        assert_eq!(ended.reason(), "exit status 7: last words");
    }

    #[test]
    fn says_what_killed_a_silent_process() {
        let (process, events) = sh("kill -KILL $$");
        events.recv().unwrap();
        assert_eq!(
            process.finish().unwrap().reason(),
            "signal 9, without a word"
        );
    }

    #[test]
    fn keeps_the_end_of_long_output() {
        let (process, events) = sh("seq 100000; echo end");
        events.recv().unwrap();
        let stdout = process.finish().unwrap().stdout;
        assert_eq!(stdout.len(), KEPT_OUTPUT);
        assert!(stdout.ends_with("\n100000\nend\n"));
    }

    #[test]
    fn children_left_behind_are_killed() {
        let (process, events) = sh("sleep 1000 &");
        events.recv().unwrap();
        let begin = Instant::now();
        process.finish().unwrap();
        // Else it would still have the pipe open.
        assert!(begin.elapsed() < PIPE_PATIENCE);
    }

    #[test]
    fn one_that_left_the_group_does_not_block() {
        let (process, events) = sh("setsid --fork sleep 3; echo here");
        events.recv().unwrap();
        let begin = Instant::now();
        assert_eq!(process.finish().unwrap().stdout, "here\n");
        assert!(begin.elapsed() < 2 * PIPE_PATIENCE);
    }

    #[test]
    fn a_dropped_process_is_killed() {
        let (process, events) = sh("sleep 1000");
        let pid = process.pid();
        drop(process);
        assert_eq!(events.recv().unwrap(), Event::Exited(pid));
    }

    #[test]
    fn a_process_does_not_outlive_its_starter() {
        let starter = std::thread::spawn(|| {
            let (process, events) = sh("sleep 1000");
            let pid = process.pid();
            // As when we are killed, nobody cleans up.
            std::mem::forget(process);
            (pid, events)
        });
        let (pid, events) = starter.join().unwrap();
        assert_eq!(events.recv().unwrap(), Event::Exited(pid));
    }

    #[test]
    fn terminate_reaches_the_whole_group() {
        let (process, events) = sh("trap 'echo sorry' TERM; sleep 1000 & echo ready; wait; exit 3");
        // The trap is set and its child runs when the first word is out.
        while process.stdout.kept.lock().unwrap().is_empty() {
            std::thread::yield_now();
        }
        process.terminate();
        events.recv().unwrap();
        let ended = process.finish().unwrap();
        assert_eq!(
            (ended.stdout.as_str(), ended.status.code()),
            ("ready\nsorry\n", Some(3))
        );
    }
}
