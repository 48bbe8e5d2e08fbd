// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock status`: which scheduler is in charge, and of ours how it runs. What the
//! kernel reports is for anybody; the rest is for root.

use crate::control::{ask, unexpected, Answer, Request, Running};
use crate::foreign::Foreign;
use crate::output::{self, Format};
use crate::{preflight, stats};
use anyhow::Result;
use serde::Serialize;
use std::fmt;

#[derive(Debug, Serialize)]
struct Status {
    /// Whether the kernel schedules with scx_freqlock.
    running: bool,
    /// As the kernel says it; none if it has no sched_ext.
    sched_ext: Option<Foreign>,
    /// The name of the sched_ext scheduler that is loaded.
    scheduler: Option<Foreign>,
    /// It has tasks of policy SCHED_EXT alone; none where nothing is loaded.
    partial: Option<bool>,
    /// None if it is not running, or does not say: then `why`.
    agent: Option<Running>,
    why: Option<String>,
}

/// Prints it; false if scx_freqlock is not running.
pub fn print(format: &Format) -> Result<bool> {
    let state = preflight::state();
    let mut status = Status {
        running: stats::running().is_ok(),
        scheduler: preflight::loaded().map(Foreign::from),
        sched_ext: state.map(Foreign::from),
        partial: preflight::has_all_tasks().map(|all| !all),
        agent: None,
        why: None,
    };
    if status.running {
        match ask(&Request::Status) {
            Ok(Answer::Status(running)) => status.agent = Some(*running),
            Ok(other) => unexpected(other)?,
            Err(why) => status.why = Some(format!("{why:#}")),
        }
    }
    output::show(format.json, &status, ToString::to_string)?;
    Ok(status.running)
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match (&self.sched_ext, &self.scheduler, &self.agent) {
            (None, ..) => writeln!(
                f,
                "scx_freqlock is not running: this kernel has no sched_ext"
            ),
            (_, None, _) => writeln!(
                f,
                "scx_freqlock is not running: tasks are on the kernel's own scheduler"
            ),
            (_, Some(name), _) if !self.running => writeln!(
                f,
                "scx_freqlock is not running: the scheduler that is running is {name}"
            ),
            (_, Some(name), None) => {
                let beside = match self.partial {
                    Some(true) => ", for tasks of policy SCHED_EXT alone",
                    _ => "",
                };
                writeln!(f, "scx_freqlock is running as {name}{beside}")?;
                match &self.why {
                    Some(why) => writeln!(f, "{why}"),
                    None => Ok(()),
                }
            }
            (.., Some(agent)) => agent.fmt(f),
        }
    }
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(
            f,
            "scx_freqlock {} is running for {} as process {}, mode {}",
            self.version,
            time_up(self.uptime_s),
            self.pid,
            self.mode
        )?;
        for line in self.about.iter().chain([&self.contexts]) {
            writeln!(f, "{line}")?;
        }
        let knobs: Vec<String> = self.knobs.iter().map(ToString::to_string).collect();
        match &knobs[..] {
            [] => writeln!(f, "knobs: all at their defaults"),
            knobs => writeln!(f, "knobs not at their defaults: {}", knobs.join(" ")),
        }
    }
}

/// To the second, then the minute, then the hour.
fn time_up(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Assignment;

    fn status(sched_ext: Option<&str>, scheduler: Option<&str>, running: bool) -> Status {
        Status {
            running,
            sched_ext: sched_ext.map(Foreign::from),
            scheduler: scheduler.map(Foreign::from),
            partial: None,
            agent: None,
            why: None,
        }
    }

    #[test]
    fn who_schedules_is_reported_in_one_line() {
        for (status, words) in [
            (status(None, None, false), "has no sched_ext"),
            (status(Some("disabled"), None, false), "the kernel's own"),
            (
                status(Some("enabled"), Some("bpfland_1"), false),
                "running is bpfland_1",
            ),
            (
                status(Some("enabled"), Some("freqlock_0"), true),
                "running as freqlock_0",
            ),
        ] {
            let text = status.to_string();
            assert!(text.contains(words) && text.lines().count() == 1, "{text}");
        }
    }

    #[test]
    fn everybody_may_know_that_it_has_some_tasks_only() {
        let mut status = status(Some("enabled"), Some("freqlock_0"), true);
        status.partial = Some(true);
        assert!(status.to_string().contains("SCHED_EXT alone"), "{status}");
    }

    #[test]
    fn the_running_one_says_how() {
        let running = Running {
            version: "1.0".into(),
            pid: 7,
            uptime_s: 3700,
            mode: "auto".into(),
            about: vec!["CPU speed: test".into()],
            contexts: "contexts: none".into(),
            knobs: vec![Assignment::parse("slice_us=2000").unwrap()],
        };
        assert_eq!(
            running.to_string(),
            "scx_freqlock 1.0 is running for 1 h 1 min as process 7, mode auto\n\
             CPU speed: test\ncontexts: none\nknobs not at their defaults: slice_us=2000\n"
        );
    }

    #[test]
    fn time_is_reported_as_exactly_as_it_matters() {
        for (seconds, text) in [
            (0, "0 s"),
            (61, "1 min 1 s"),
            (7322, "2 h 2 min"),
            (90_000, "1 d 1 h"),
        ] {
            assert_eq!(time_up(seconds), text);
        }
    }
}
