// SPDX-License-Identifier: MIT
//! freqlock-profile: a program over a range of bounds for its latency, as a table, CSV and a picture.
//!
//! After the profiling tool of Liu et al., "Asymmetry-aware Scalable Locking" (PPoPP 2022), figure 8b.

mod graph;
mod program;
mod range;
#[cfg(test)]
mod samples;
mod summary;

#[path = "../../kind.rs"]
#[allow(dead_code)]
mod kind;
#[path = "../../setup.rs"]
mod setup;

use anyhow::Context;
use clap::{CommandFactory, Parser};
use program::{Failure, Program, Sample, Setting};
use range::Range;
use regex::Regex;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use summary::Summary;

/// Runs a program with libfreqlock's locks at several bounds for its latency (SLOs), and shows what
/// throughput and what latency each of them has.
///
/// If the program has epochs (freqlock.h), the bounds count for these in place of its own ones, the latency is
/// theirs, and the throughput is how many of them end in a second. Else the bounds count for its waits for locks, the
/// latency is that of waits for mutexes and for writing, and the throughput is one divided by the run time.
/// `--throughput` takes it from what the program prints.
///
/// Each round runs the program with libc's own locks by the same way ("pthread"), at each bound, and without
/// a bound. PREFIX.csv has a line for each run; the table and PREFIX.svg have medians, and from the least to the most
/// as bars. On machines whose CPUs are all alike the bounds change nothing.
#[derive(Parser)]
#[command(name = "freqlock-profile", version)]
struct Args {
    /// The bounds: from the first time to the second one, each a number with ns, us, ms or s
    #[arg(long, value_name = "FROM..TO", default_value = "10us..10ms", value_parser = range::parse)]
    slo: (u64, u64),
    /// How many of them, each the same factor above the one before
    #[arg(long, value_name = "N", default_value_t = 7)]
    points: u32,
    /// How often the program runs with each
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Only epochs of this number count, and only these get the bounds
    #[arg(long, value_name = "ID")]
    epoch: Option<u32>,
    /// What the program prints of its throughput: a regular expression with the number in parentheses, as in
    /// '([0-9.]+) ops/sec'. Of several lines that have one, the last counts
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    throughput: Option<Regex>,
    /// Where the figures go: PREFIX.csv and PREFIX.svg
    #[arg(long, value_name = "PREFIX", default_value = "freqlock-profile")]
    output: PathBuf,
    #[command(flatten)]
    started: setup::Started,
}

fn pattern(text: &str) -> Result<Regex, String> {
    let regex = Regex::new(text).map_err(|error| error.to_string())?;
    if regex.captures_len() == 2 {
        Ok(regex)
    } else {
        Err("one part of it has to be in parentheses: the number".into())
    }
}

/// A file that has its name once all of it is written.
struct Output {
    file: tempfile::NamedTempFile,
    path: PathBuf,
}

impl Output {
    fn create(prefix: &Path, extension: &str) -> anyhow::Result<Output> {
        let mut path = prefix.as_os_str().to_owned();
        path.push(".");
        path.push(extension);
        let path = PathBuf::from(path);
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let file = tempfile::Builder::new()
            // As other files are; what is temporary is the owner's alone.
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .tempfile_in(folder.unwrap_or(Path::new(".")))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Output { file, path })
    }

    fn finish(mut self, text: &str) -> anyhow::Result<()> {
        self.file
            .write_all(text.as_bytes())
            .and_then(|()| Ok(self.file.persist(&self.path)?))
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        Ok(())
    }
}

/// All runs, in rounds, so that what disturbs the machine for a while falls on all settings.
fn measure(program: &Program, settings: &[Setting], runs: u32) -> Result<Vec<Sample>, Failure> {
    let mut samples = Vec::new();
    for run in 1..=runs {
        for &setting in settings {
            say(&format!("run {run} of {runs}: {setting}"));
            samples.push(program.run(setting, run)?);
        }
    }
    Ok(samples)
}

fn say(line: &str) {
    // There is nobody to tell that it could not be written.
    let _ = writeln!(std::io::stderr(), "freqlock-profile: {line}");
}

fn run(args: Args) -> Result<(), Failure> {
    if args.started.manual {
        let page = clap_mangen::Man::new(Args::command());
        page.render(&mut std::io::stdout())
            .context("cannot print the manual page")?;
        return Ok(());
    }
    let range = Range::new(args.slo, args.points).map_err(Failure::usage)?;
    let csv = Output::create(&args.output, "csv").map_err(Failure::usage)?;
    let svg = Output::create(&args.output, "svg").map_err(Failure::usage)?;
    let preload = args.started.preload().map_err(Failure::usage)?;
    let program = Program {
        command: args.started.command,
        preload,
        epoch: args.epoch,
        throughput: args.throughput,
    };
    if libfreqlock::speed_source() == "all equal" {
        say("all CPUs are alike, so bounds change nothing here");
    }
    let settings: Vec<Setting> = std::iter::once(Setting::Pthread)
        .chain(range.slos().map(Setting::Slo))
        .chain([Setting::NoBound])
        .collect();
    let samples = measure(&program, &settings, args.runs)?;
    let summary = Summary::new(&settings, &samples, &program)?;
    csv.finish(&summary::csv(&samples, summary.of))?;
    svg.finish(&graph::svg(&summary)?)?;
    writeln!(std::io::stdout(), "{summary}").context("cannot print the table")?;
    Ok(())
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say(&format!("{:#}", failure.error));
            ExitCode::from(failure.status)
        }
    }
}
