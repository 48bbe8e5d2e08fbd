// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock cpus`: the CPUs that a process or cgroup can count on, and why.

use crate::cpus::count::Figures;
use crate::cpus::mask::{Mask, MOST};
use crate::cpus::page::{CgroupEntry, Contents, ProcessEntry};
use crate::cpus::quota::{Hierarchy, Limit};
use crate::cpus::PATH;
use crate::foreign::{Escaped, Foreign};
use crate::number::whole;
use crate::output::{self, Format};
use crate::page_file::monotonic;
use crate::stats;
use crate::units::time;
use anyhow::{bail, Result};
use clap::ArgGroup;
use comfy_table::{presets, CellAlignment, Table};
use procfs::process::Process;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// Print how many CPUs a process or cgroup can count on, and why
///
/// That is the least of what its affinity allows, what the quotas of its cgroups allow,
/// and what its neighbours leave it: how much it would have had in the last period if it
/// had wanted all that it could get. A running scx_freqlock writes all of that to a page
/// which anybody may read, and programs too (lib/cpus_page.h).
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("whose").args(["pid", "cgroup"]).required(true))]
pub struct CpusArgs {
    /// The number of a process
    #[arg(value_name = "PID", value_parser = whole(1..=i32::MAX as u32))]
    pub pid: Option<u32>,

    /// Of a cgroup and those below it instead, by its path as in /proc/PID/cgroup
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<String>,

    /// Text or JSON.
    #[command(flatten)]
    pub format: Format,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("there is no process {0}")]
    NoProcess(u32),
    #[error("process {0} is a thread of the kernel, for which there are no figures")]
    Kernel(u32),
    #[error("there is no cgroup {0} in the hierarchy of the cpu controller")]
    NoCgroup(Foreign),
    #[error("process {0} has no entry yet: it was born a moment ago")]
    TooNew(u32),
    #[error("no process is in cgroup {0}")]
    Empty(Foreign),
    #[error("{0} is not in the page, which has no room for {1} more")]
    LeftOut(String, u32),
    #[error("the page of CPUs is {old} old: process {agent}, which writes it, is stopped or gone", old = age(*.old))]
    Stale { old: Duration, agent: u32 },
}

fn age(duration: Duration) -> String {
    time(duration.as_nanos() as u64)
}

/// What can be counted on, in CPUs.
#[derive(Debug, Serialize)]
struct Count {
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Foreign>,
    cgroup: Foreign,
    affinity: f64,
    /// Where it may run, of a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed: Option<String>,
    quota: Option<f64>,
    /// The cgroup that says so.
    quota_of: Option<Foreign>,
    neighbours: f64,
    cpus: f64,
    ran: f64,
    waited: f64,
    throttled: f64,
    /// How long the period was, and how long ago it ended.
    period_ns: u64,
    age_ns: u64,
}

/// Prints it; errors where the process, the cgroup or a fresh page is missing.
pub fn print(args: &CpusArgs) -> Result<()> {
    let count = match (args.pid, &args.cgroup) {
        (Some(pid), _) => of_process(pid)?,
        (None, Some(cgroup)) => of_cgroup(cgroup)?,
        (None, None) => bail!("neither a process nor a cgroup is named"),
    };
    output::show(args.format.json, &count, Count::text)
}

fn of_process(pid: u32) -> Result<Count> {
    let process = Process::new(pid as i32).map_err(|_| Error::NoProcess(pid))?;
    let status = process.status().map_err(|_| Error::NoProcess(pid))?;
    // It may be a thread of one.
    let tgid = status.tgid as u32;
    let process = Process::new(status.tgid).map_err(|_| Error::NoProcess(pid))?;
    let start = process.stat().map_err(|_| Error::NoProcess(pid))?.starttime;
    let (page, now) = page()?;
    let found = page
        .processes
        .binary_search_by_key(&tgid, |entry| entry.pid);
    // The number may have been another's.
    let found = found.ok().map(|i| page.processes[i]);
    let Some(entry) = found.filter(|entry| entry.start == start) else {
        // Those of the kernel have no memory of their own.
        let error = match status.vmsize {
            None => Error::Kernel(pid),
            Some(_) if page.processes_left_out > 0 => {
                Error::LeftOut(format!("process {pid}"), page.processes_left_out)
            }
            Some(_) => Error::TooNew(pid),
        };
        return Err(error.into());
    };
    let hierarchy = Hierarchy::find();
    let cgroup = (hierarchy.as_ref()).and_then(|h| h.cgroup_of(tgid).ok()?);
    let limit = limit(&hierarchy, cgroup.as_deref());
    let ProcessEntry { figures, .. } = entry;
    Ok(Count {
        pid: Some(tgid),
        command: Some(status.name.into()),
        allowed: Mask::of_process(tgid, MOST).map(|mask| mask.to_string()),
        ..Count::new(cgroup.map(Foreign::from), figures, limit, &page, now)
    })
}

fn of_cgroup(cgroup: &str) -> Result<Count> {
    let (page, now) = page()?;
    let hierarchy = Hierarchy::find();
    let id = hierarchy.as_ref().and_then(|h| h.id(cgroup));
    let id = id.ok_or_else(|| Error::NoCgroup(cgroup.into()))?;
    let found = page.cgroups.binary_search_by_key(&id, |entry| entry.id);
    let Ok(place) = found else {
        return Err(match page.cgroups_left_out {
            0 => Error::Empty(cgroup.into()),
            left_out => Error::LeftOut(format!("cgroup {}", Escaped(cgroup)), left_out),
        }
        .into());
    };
    let CgroupEntry { figures, .. } = page.cgroups[place];
    let limit = limit(&hierarchy, Some(cgroup));
    Ok(Count::new(Some(cgroup.into()), figures, limit, &page, now))
}

/// The page, if somebody writes it, and when it was read.
fn page() -> Result<(Contents, Duration)> {
    let page = match Contents::read(Path::new(PATH)) {
        Err(_) if !Path::new(PATH).exists() => {
            // Anybody may ask for the page, but not for what the scheduler reports.
            stats::running()?;
            Contents::read(Path::new(PATH))?
        }
        page => page?,
    };
    let now = monotonic();
    let Some(old) = page.stale(now) else {
        return Ok((page, now));
    };
    // Nothing else distinguishes one that stands still from one that is gone.
    stats::running()?;
    let agent = page.agent;
    Err(Error::Stale { old, agent }.into())
}

fn limit(hierarchy: &Option<Hierarchy>, cgroup: Option<&str>) -> Option<Limit> {
    hierarchy.as_ref()?.limit(cgroup?)
}

impl Count {
    fn new(
        cgroup: Option<Foreign>,
        figures: Figures,
        limit: Option<Limit>,
        page: &Contents,
        now: Duration,
    ) -> Self {
        Self {
            pid: None,
            command: None,
            cgroup: cgroup.unwrap_or_default(),
            affinity: figures.affinity,
            allowed: None,
            quota: figures.quota,
            // It may have been changed since the page was written.
            quota_of: figures.quota.and(limit).map(|limit| limit.cgroup.into()),
            neighbours: figures.neighbours,
            cpus: figures.cpus,
            ran: figures.ran,
            waited: figures.waited,
            throttled: figures.throttled,
            period_ns: page.length.as_nanos() as u64,
            age_ns: now.saturating_sub(page.updated).as_nanos() as u64,
        }
    }

    fn text(&self) -> String {
        let mut text = match (self.pid, &self.command) {
            (Some(pid), Some(command)) => format!("process {pid} ({command})"),
            _ => String::new(),
        };
        if !self.cgroup.is_empty() {
            let comma = if text.is_empty() { "" } else { ", " };
            let _ = write!(text, "{comma}cgroup {}", self.cgroup);
        }
        let cpus = |cpus: f64| format!("{cpus:.3}");
        let allowed = self.allowed.as_ref().map(|cpus| format!("CPUs {cpus}"));
        let quota_of = self.quota_of.as_ref().map(|cgroup| format!("of {cgroup}"));
        let throttled =
            (self.throttled > 0.0).then(|| format!("for which {:.3} waited", self.throttled));
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.add_row([
            "affinity",
            &cpus(self.affinity),
            &allowed.unwrap_or_default(),
        ]);
        table.add_row([
            "quota",
            &self.quota.map_or("none".into(), cpus),
            &[quota_of, throttled]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(", "),
        ]);
        table.add_row([
            "neighbours",
            &cpus(self.neighbours),
            &format!("it ran {:.3} and waited {:.3}", self.ran, self.waited),
        ]);
        table.add_row(["can count on", &cpus(self.cpus), ""]);
        if let Some(column) = table.column_mut(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let _ = writeln!(text, "\n{}", table.trim_fmt());
        let _ = writeln!(
            text,
            "in the {} that ended {} ago",
            time(self.period_ns),
            time(self.age_ns)
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_what_limits_it() {
        let figures = Figures {
            affinity: 4.0,
            quota: Some(1.5),
            neighbours: 2.0,
            cpus: 1.5,
            ran: 1.25,
            waited: 0.5,
            throttled: 0.25,
        };
        let limit = Limit {
            cgroup: "/a".into(),
            cpus: 1.5,
        };
        let page = Contents {
            updated: Duration::from_secs(1),
            length: Duration::from_millis(100),
            ..Default::default()
        };
        let now = Duration::from_millis(1020);
        let count = Count {
            pid: Some(7),
            command: Some("pool".into()),
            allowed: Some("0-3".into()),
            ..Count::new(Some("/a/b".into()), figures, Some(limit), &page, now)
        };
        let text = count.text();
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|l| l.split_whitespace().collect())
            .collect();
        assert_eq!(lines[0].join(" "), "process 7 (pool), cgroup /a/b");
        assert_eq!(lines[1].join(" "), "affinity 4.000 CPUs 0-3");
        assert_eq!(
            lines[2].join(" "),
            "quota 1.500 of /a, for which 0.250 waited"
        );
        assert_eq!(
            lines[3].join(" "),
            "neighbours 2.000 it ran 1.250 and waited 0.500"
        );
        assert_eq!(lines[4].join(" "), "can count on 1.500");
        assert_eq!(lines[5].join(" "), "in the 100 ms that ended 20.0 ms ago");
        let json = serde_json::to_value(&count).unwrap();
        assert_eq!(json["quota_of"], "/a");
        assert_eq!(json["age_ns"], 20_000_000);
    }
}
