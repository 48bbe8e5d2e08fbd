// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock report`: figures by task, process, command or cgroup, and the
//! latest priority inversions, as a table or as JSON.

use crate::cgroups::Cgroups;
use crate::foreign;
use crate::interval;
use crate::number::whole;
use crate::output;
use crate::stats::{self, target};
use crate::telemetry::{By, Filter, Order, Report, Telemetry};
use anyhow::{Context, Result};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use std::time::Duration;

/// Print what tasks ran and waited, and priority inversions
///
/// Tasks that exited count for their process while that lives, and for its command
/// and cgroup after. Times are since the scheduler started, or since a task was born.
#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// What makes a line
    #[arg(long, value_enum, default_value_t = By::Process)]
    pub by: By,

    /// What to sort by, of figures the most first; --json has all of them
    #[arg(long, value_name = "COLUMN", default_value = "run_ns",
          value_parser = PossibleValuesParser::new(Order::all().map(Order::name))
              .try_map(|name| Order::of(&name).ok_or("no such column")))]
    pub sort: Order,

    /// Print at most this many lines
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole(0..=usize::MAX))]
    pub top: usize,

    /// Whose figures.
    #[command(flatten)]
    pub filter: Filter,

    /// How many of the latest inversions to print
    #[arg(long, alias = "episodes", value_name = "N", default_value_t = 5, value_parser = whole(0..=usize::MAX))]
    pub inversions: usize,

    /// Keep all figures in this file, for --since
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,

    /// Only what came since the figures in this file
    #[arg(long, value_name = "FILE", conflicts_with = "interval")]
    pub since: Option<PathBuf>,

    /// Print what came in each interval of this many seconds, until interrupted
    #[arg(long, value_name = "SECONDS", value_parser = interval::of_reports)]
    pub interval: Option<Duration>,

    /// Print JSON, one document for each interval
    #[arg(long)]
    pub json: bool,
}

/// Prints once, or again and again until that fails or the scheduler ends.
pub fn print(args: &ReportArgs) -> Result<()> {
    let mut cgroups = Cgroups::default();
    let mut before: Option<Telemetry> = match &args.since {
        None => None,
        Some(file) => {
            Some(load(file).with_context(|| format!("{} holds no figures", foreign::path(file)))?)
        }
    };
    let mut now: Telemetry = stats::fetch(target::TASKS)?;
    if let Some(interval) = args.interval {
        loop {
            std::thread::sleep(interval);
            before = Some(now);
            now = stats::fetch(target::TASKS)?;
            show(args, &now, before.as_ref(), &mut cgroups)?;
        }
    }
    if let Some(file) = &args.save {
        let json = serde_json::to_vec(&now)?;
        std::fs::write(file, json)
            .with_context(|| format!("cannot write {}", foreign::path(file)))?;
    }
    show(args, &now, before.as_ref(), &mut cgroups)
}

fn load(file: &PathBuf) -> Result<Telemetry> {
    Ok(serde_json::from_slice(&std::fs::read(file)?)?)
}

fn show(
    args: &ReportArgs,
    now: &Telemetry,
    before: Option<&Telemetry>,
    cgroups: &mut Cgroups,
) -> Result<()> {
    let report = Report::new(
        (args.by, args.sort),
        (args.top, args.inversions),
        &args.filter,
        now,
        before,
        |inode| cgroups.path(inode),
    );
    let text = if args.json {
        output::json(&report, false)?
    } else {
        report.table(args.by) + &report.inversions_text()
    };
    Ok(output::print(text)?)
}
