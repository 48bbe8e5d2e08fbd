// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock machine list` and `machine run`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use serde::Serialize;

use super::description::{self, Description};
use super::error::Error;
use super::flat::Variant;
use super::folders::{default_kit, machines_dir};
use super::job::{keep, make_folder, simulate, Base, Job};
use super::qemu;
use crate::process::Event;
use freqlock::lab_args::RunArgs;
use freqlock::output::{self, Format};

/// A machine as it is listed.
#[derive(Debug, Serialize)]
struct Listed {
    name: String,
    cpus: u32,
    description: String,
}

/// Prints the machines of this folder, or of the usual one.
pub fn list(dir: Option<&Path>, format: Format) -> Result<ExitCode, Error> {
    let dir = &machines_dir(dir)?;
    let mut machines = Vec::new();
    for name in description::names(dir)? {
        let machine = Description::load(&name, dir)?;
        machines.push(Listed {
            cpus: machine.cpus(),
            description: machine.description,
            name,
        });
    }
    let text = match format.json {
        true => output::json(&machines, true).map_err(output::Error::Json)?,
        false => (machines.iter())
            .map(|machine| format!("{:<18} {}\n", machine.name, machine.description))
            .collect(),
    };
    output::print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// Does what the command line says. The status is the command's own.
pub fn run_one(args: &RunArgs) -> Result<ExitCode, Error> {
    let dir = machines_dir(args.machines.as_deref())?;
    let mut machine = Description::load(&args.machine, &dir)?;
    if let Some(cpus) = args.cpus {
        machine = machine.cut(cpus).map_err(Error::Usage)?;
    }
    // Before the run, that it is not lost because of a misspelt folder.
    if let Some(to) = &args.record {
        make_folder(to)?;
    }
    let kit = (args.kit.clone()).unwrap_or_else(|| default_kit(&dir, args.arch));
    let base = Base::load(&kit, args.arch)?;
    let job = Job {
        memory_mb: args.memory_mb.unwrap_or(machine.memory_mb).into(),
        machine,
        variant: Variant {
            always_top: args.always_top,
            migration_cost: args.migration_cost,
        },
        kernel_args: args.kernel_args.clone(),
        seed: args.seed,
        shift_us: args.shift_us,
        limit_s: args.limit_s,
        timeout: Duration::from_secs(args.timeout_s),
        scheduler: base.scheduler(&args.scheduler)?,
        command: args.command.clone(),
    };
    let (sender, events) = mpsc::channel();
    let interrupt = sender.clone();
    ctrlc::set_handler(move || {
        // Nobody listens any more once the run is over.
        interrupt.send(Event::Interrupted).ok();
    })?;
    let outcome = simulate(&base, &job, &sender, &events).inspect_err(|error| {
        // Why it failed is said after that, and is what counts.
        if let Error::Qemu(qemu::Error::Guest(failed)) = error {
            pass_on(&failed.stdout, &failed.stderr).ok();
        }
    })?;
    pass_on(&outcome.report.stdout, &outcome.report.stderr)?;
    if let Some(to) = &args.record {
        keep(to, &base, &job, &outcome)?;
    }
    let record = &outcome.record;
    output::say(format_args!(
        "machine: {} ({} CPUs), seed {}: {:.3} ms of its time, {:.1} s of the host's after {:.1} s to boot",
        job.machine.name,
        job.machine.cpus(),
        job.seed,
        record.command_ns() as f64 / 1e6,
        record.command_host_ns() as f64 / 1e9,
        record.begin_host_ns as f64 / 1e9,
    ));
    Ok(ExitCode::from(outcome.report.status))
}

/// What the command said.
fn pass_on(stdout: &[u8], stderr: &[u8]) -> Result<(), Error> {
    to_stdout(stdout)?;
    // Standard error may be closed; there is nowhere left to say so.
    std::io::stderr().write_all(stderr).ok();
    Ok(())
}

pub fn to_stdout(data: impl AsRef<[u8]>) -> Result<(), Error> {
    match output::pass_on(data.as_ref()) {
        // As `machine run … | head` does, whose exit status is the command's all the same.
        Err(output::Error::Closed) => Ok(()),
        result => Ok(result?),
    }
}
