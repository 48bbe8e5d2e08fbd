// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock compare`: the workloads of bench/ under one scheduler after
//! another, in turns, so that what changes on the machine meanwhile falls on
//! all of them alike. Medians with intervals, and losses are printed too.
//!
//! [`plan`] says what is run in which order; [`host`] runs it here, [`simulated`] on
//! simulated machines, `traced` under the recorder there; [`runs`] are what that gives, [`results`] sums it up and is
//! written as JSON, [`tables`] and [`curve`] show it, and [`testbed`] says where all
//! this ran.

#[cfg(test)]
mod bench_tests;
mod curve;
pub mod host;
#[cfg(test)]
mod host_tests;
pub mod plan;
pub mod progress;
pub mod results;
pub mod runs;
pub mod simulated;
pub mod tables;
pub mod testbed;
#[cfg(test)]
pub mod tests;
mod traced;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;

use crate::process::Event;
use crate::sim;
use crate::sim::batch::Interrupt;
use freqlock::lab_args::CompareArgs;
use freqlock::output;
use freqlock::preflight;
use host::Engine;
use plan::Plan;
use progress::Progress;
use results::Record;
use runs::{Results, Watch};
use simulated::Simulation;
use testbed::Machine;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Plan(#[from] plan::Error),
    #[error(transparent)]
    Preflight(#[from] preflight::Error),
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Draw(#[from] curve::Error),
    #[error("cannot catch Ctrl-C")]
    Signal(#[from] ctrlc::Error),
    #[error(transparent)]
    Engine(#[from] runs::Error),
    #[error(transparent)]
    Simulation(#[from] sim::error::Error),
}

impl Error {
    /// Is it the command line that is to be changed?
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Plan(_) => true,
            Self::Simulation(error) => error.is_usage(),
            _ => false,
        }
    }
}

/// What the shell gives for a program that Ctrl-C has ended.
const INTERRUPTED: u8 = 130;

/// Compares as `args` say, with the table on standard output. Failure means
/// that at least one run gave no figures.
pub fn run(args: &CompareArgs) -> Result<ExitCode, Error> {
    if let Some(name) = &args.machine {
        return run_simulated(name, args);
    }
    let resolved = Plan::resolve(args, &plan::Places::of_this_process())?;
    for line in &resolved.left_out {
        output::say(line);
    }
    let plan = resolved.plan;
    if plan.loads_schedulers() {
        preflight::run()?;
    }
    let (sender, events) = mpsc::channel();
    let interrupt = sender.clone();
    ctrlc::set_handler(move || {
        // Nobody listens any more once the last run is over.
        interrupt.send(Event::Interrupted).ok();
    })?;
    let mut engine = Engine::new("/sys/kernel/sched_ext", args.timeout(), sender, events);
    let mut progress = Progress::on_stderr(&plan);
    let mut stdout = std::io::stdout().lock();
    compare(
        &plan,
        Files::create(args)?,
        Machine::look(Path::new("/")),
        |watch| engine.run(&plan, watch),
        &mut progress,
        &mut stdout,
    )
}

/// The same on a simulated machine; rounds are seeds.
fn run_simulated(name: &str, args: &CompareArgs) -> Result<ExitCode, Error> {
    let simulation = Simulation::new(name, args)?;
    let bench = plan::Places::of_this_process().bench;
    let resolved = simulation.plan(&args.with_seeds_as_rounds(), &bench)?;
    for line in &resolved.left_out {
        output::say(line);
    }
    let plan = resolved.plan;
    let interrupt = Interrupt::on_signal()?;
    let control = (!args.no_control)
        .then(|| simulation.control(&plan))
        .transpose()?
        .flatten();
    let files = Files::create(args)?;
    let on = |simulation: &Simulation, plan: &Plan, later: u64| {
        let mut progress = Progress::on_simulated(plan, later);
        let mut results =
            simulation.run(plan, simulation.jobs(args.jobs), &interrupt, &mut progress);
        progress.finish();
        let broken = results.broken.take();
        (Record::new(plan, simulation.machine(), results), broken)
    };
    let later = (control.as_ref()).map_or(0, |(_, plan)| plan.total_runs());
    let (mut record, mut broken) = on(&simulation, &plan, later);
    if let Some((control, plan)) = control.filter(|_| !record.interrupted) {
        output::say(format_args!(
            "now the same on the control, {}",
            testbed::CONTROL
        ));
        let on_control = on(&control, &plan, 0);
        record.control = Some(Box::new(on_control.0));
        broken = on_control.1;
    }
    let exit = publish(&record, files, &mut std::io::stdout().lock())?;
    broken.map_or(Ok(exit), |error| Err(error.into()))
}

fn compare(
    plan: &Plan,
    files: Files,
    machine: Machine,
    run: impl FnOnce(&mut dyn Watch) -> Results,
    progress: &mut dyn Watch,
    out: &mut dyn Write,
) -> Result<ExitCode, Error> {
    let mut results = run(progress);
    progress.finish();
    let broken = results.broken.take();
    let exit = publish(&Record::new(plan, machine, results), files, out)?;
    broken.map_or(Ok(exit), |error| Err(error.into()))
}

/// What is written beside the table.
struct Files {
    json: Option<(PathBuf, std::fs::File)>,
    curves: Option<PathBuf>,
}

impl Files {
    /// Before the runs, that they are not lost because of a misspelt folder.
    fn create(args: &CompareArgs) -> Result<Self, Error> {
        let curves = args.curves.clone();
        if let Some(dir) = &curves {
            std::fs::create_dir_all(dir).map_err(|source| Error::Write {
                path: dir.clone(),
                source,
            })?;
        }
        let json = args.json.as_deref().map(create).transpose()?;
        Ok(Self { json, curves })
    }

    fn write(self, record: &Record) -> Result<(), Error> {
        if let Some((path, mut file)) = self.json {
            serde_json::to_writer_pretty(&mut file, record)
                .map_err(std::io::Error::from)
                .and_then(|()| writeln!(file))
                .map_err(|source| Error::Write { path, source })?;
        }
        let Some(dir) = self.curves else {
            return Ok(());
        };
        let curves = curve::curves(&record.summary);
        if curves.is_empty() {
            output::say("no curves: no workload has a metric with a number in its name");
        }
        for curve in curves {
            let path = dir.join(format!("{}-{}.svg", curve.workload, curve.metric));
            std::fs::write(&path, curve.svg(record)?)
                .map_err(|source| Error::Write { path, source })?;
        }
        Ok(())
    }
}

/// Writes the files and the table, which is not lost where they cannot be written, and
/// gives the exit status.
fn publish(record: &Record, files: Files, out: &mut dyn Write) -> Result<ExitCode, Error> {
    let written = files.write(record);
    match out.write_all(tables::text(record).as_bytes()) {
        // As `compare | head` does: the reader closed the pipe.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        result => result.map_err(|source| Error::Write {
            path: "standard output".into(),
            source,
        })?,
    }
    written?;
    Ok(if record.was_interrupted() {
        ExitCode::from(INTERRUPTED)
    } else if record.failed() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn create(path: &Path) -> Result<(PathBuf, std::fs::File), Error> {
    std::fs::File::create(path)
        .map(|file| (path.to_path_buf(), file))
        .map_err(|source| Error::Write {
            path: path.to_path_buf(),
            source,
        })
}
