// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock compare --campaign`: workloads x machines x schedulers x seeds, in a folder of
//! results that a process after another, or one on another host, adds to.
//!
//! [`campaign_file`] is what is wanted, [`store`] the folder, [`site`] one machine with its runs,
//! [`rows`] what all of them say together, and [`publish`] writes that down: [`markdown`],
//! [`sortable_page`] with what [`gain_plot`] draws, and [`csv`].

mod archive;
mod campaign_error;
mod campaign_file;
#[cfg(test)]
mod campaign_tests;
mod csv;
mod gain_plot;
mod markdown;
mod publish;
mod rows;
mod site;
mod sortable_page;
mod store;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::compare::plan;
use crate::compare::progress::Progress;
use crate::compare::runs::Watch;
use crate::sim::batch::Interrupt;
use crate::sim::run::to_stdout;
use archive::Archive;
pub use campaign_error::Error;
use campaign_file::Campaign;
use freqlock::lab_args::CompareArgs;
use freqlock::output;
use indicatif::HumanDuration;
use site::{Bases, Site};
use store::Store;

/// What the shell gives for a program that Ctrl-C has ended.
const INTERRUPTED: u8 = 130;

/// Makes what is missing of a campaign, and writes the reports of what is there. Failure means
/// that a run gave no figures.
pub fn run(path: &Path, args: &CompareArgs) -> Result<ExitCode, Error> {
    let campaign = Campaign::load(path)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    if let Some(from) = &args.from {
        let archive = Archive::load(from)?;
        return report(&campaign, &name, &archive, from, args);
    }
    let mut bases = Bases::new();
    let mut sites: Vec<Site> = (campaign.machines.iter())
        .map(|machine| Site::new(&campaign, machine, args, &mut bases))
        .collect::<Result<_, _>>()?;
    // clap wants one with the other.
    let results = args.results.clone().unwrap_or_default();
    let store = Store::open(&results)?;
    for site in &mut sites {
        let taken = site.load(&store, &args.merge)?;
        if taken > 0 {
            output::say(format_args!("{}: {taken} results taken", site.label));
        }
    }
    announce(&campaign, &sites, args);
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    // Before the runs, that they are not lost because of a misspelt folder.
    for to in [&args.report, &args.publish].into_iter().flatten() {
        std::fs::create_dir_all(to).map_err(|source| Error::Write {
            path: to.into(),
            source,
        })?;
    }
    let interrupt = Interrupt::on_signal()?;
    let made = make(&campaign, &mut sites, &store, &interrupt, args);
    let archive = Archive::new(sites.iter().map(Site::archived).collect());
    let reported = report(&campaign, &name, &archive, &results, args);
    made?;
    let status = reported?;
    Ok(if interrupt.happened() {
        output::say("interrupted: the same command goes on");
        ExitCode::from(INTERRUPTED)
    } else {
        status
    })
}

/// Writes the reports of some runs, which are in `from`.
fn report(
    campaign: &Campaign,
    name: &str,
    archive: &Archive,
    from: &Path,
    args: &CompareArgs,
) -> Result<ExitCode, Error> {
    let table = archive
        .table(campaign)
        .map_err(|reason| archive::Error::Wrong {
            path: from.into(),
            reason,
        })?;
    let beside = args.results.as_deref();
    let written = match args.report.as_deref().or(beside) {
        Some(to) => publish::write(&table, to),
        None => Ok(()),
    };
    let kept = match &args.publish {
        Some(to) => publish::keep(&table, archive, name, to),
        None => Ok(()),
    };
    to_stdout(markdown::summary(&table))?;
    written.and(kept)?;
    Ok(ExitCode::from(u8::from(table.failed())))
}

/// What is left of the whole, for this host.
fn left(campaign: &Campaign, site: &Site, args: &CompareArgs) -> Vec<plan::Place> {
    let rounds = 0..campaign.seeds;
    rounds
        .flat_map(|round| site.missing(round, args.part))
        .collect()
}

/// Says what will be done, and for how long as far as that is known.
fn announce(campaign: &Campaign, sites: &[Site], args: &CompareArgs) {
    let (mut time, mut known, mut runs) = (Duration::ZERO, 0, 0);
    for site in sites {
        for line in &site.left_out {
            output::say(format_args!("{}: {line}", site.label));
        }
        let left = left(campaign, site, args);
        let (there, wanted, left_nr) = (site.kept(), site.wanted(), left.len());
        output::say(format_args!(
            "{}: {there} of {wanted} runs are there, {left_nr} are to be made here",
            site.label
        ));
        runs += left_nr;
        if let Some(expected) = site.expected(&left, args.jobs) {
            time += expected;
            known += left_nr;
        }
    }
    let long = match known {
        0 => "; the first ones will show how long they take".into(),
        n if n == runs => format!(", {}", about(time)),
        n => format!(", {} for {n} of them", about(time)),
    };
    let until = args.budget().map_or_else(String::new, |budget| {
        format!(
            "; no round begins that would end later than {}",
            about(budget)
        )
    });
    if runs > 0 {
        output::say(format_args!("{runs} runs{long}{until}"));
    }
}

fn about(time: Duration) -> HumanDuration {
    HumanDuration(Duration::from_secs(time.as_secs()))
}

/// Makes the runs, a seed on all machines before the next one, so that whenever it ends each
/// row has as many.
fn make(
    campaign: &Campaign,
    sites: &mut [Site],
    store: &Store,
    interrupt: &Interrupt,
    args: &CompareArgs,
) -> Result<(), Error> {
    let total: usize = sites
        .iter()
        .map(|site| left(campaign, site, args).len())
        .sum();
    let mut progress = Progress::of(total as u64, campaign.seeds, args.budget());
    let (begin, mut any) = (Instant::now(), false);
    for round in 0..campaign.seeds {
        for site in &mut *sites {
            let missing = site.missing(round, args.part);
            if missing.is_empty() {
                continue;
            }
            let expected = site.expected(&missing, args.jobs).unwrap_or_default();
            if any && out_of_time(args.budget(), begin.elapsed(), expected) {
                progress.finish();
                output::say("the time is up: the same command goes on");
                return Ok(());
            }
            any = true;
            let result = site.run(&missing, args.jobs, store, interrupt, &mut progress);
            if result.is_err() || interrupt.happened() {
                progress.finish();
                return result;
            }
        }
    }
    progress.finish();
    Ok(())
}

/// Would that end too late?
fn out_of_time(budget: Option<Duration>, elapsed: Duration, expected: Duration) -> bool {
    budget.is_some_and(|budget| elapsed + expected > budget)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_begins_that_would_end_too_late() {
        let seconds = Duration::from_secs;
        assert!(!out_of_time(None, seconds(1_000_000), seconds(1)));
        assert!(!out_of_time(Some(seconds(60)), seconds(40), seconds(20)));
        assert!(out_of_time(Some(seconds(60)), seconds(40), seconds(21)));
    }
}
