// SPDX-License-Identifier: GPL-2.0-only
//! scx_freqlock-lab: compares schedulers, on this machine and on simulated ones. It does
//! the commands `compare`, `machine` and `promises` of scx_freqlock, which starts it with
//! its own arguments; the two have one definition of these (freqlock::lab_args).

mod calibration;
mod campaign;
mod check;
mod compare;
mod figures;
mod process;
mod promises;
mod recorded;
mod schedulers;
mod sim;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use freqlock::lab_args::{CompareArgs, MachineArgs, PromisesArgs};
use freqlock::output;

/// What clap exits with, for what it cannot know itself.
const WRONG_USAGE: u8 = 2;

/// Compare schedulers, on this machine and on simulated ones.
#[derive(Debug, Parser)]
#[command(name = "scx_freqlock", version)]
enum Command {
    Compare(CompareArgs),
    #[command(subcommand)]
    Machine(MachineArgs),
    Promises(PromisesArgs),
}

fn main() -> ExitCode {
    let command = Command::try_parse().unwrap_or_else(|error| output::end_by(&error));
    run(&command).unwrap_or_else(|error| output::failed(&error, || status(&error)))
}

fn run(command: &Command) -> Result<ExitCode> {
    Ok(match command {
        Command::Compare(args) => match &args.campaign {
            Some(file) => campaign::run(file, args)?,
            None => compare::run(args)?,
        },
        Command::Machine(MachineArgs::Calibrate(args)) => calibration::run(args)?,
        Command::Machine(MachineArgs::Check(args)) => check::run(args)?,
        Command::Machine(MachineArgs::Gate(args)) => check::gate::run(args)?,
        Command::Machine(MachineArgs::List { machines, format }) => {
            sim::run::list(machines.as_deref(), *format)?
        }
        Command::Machine(MachineArgs::Run(args)) => sim::run::run_one(args)?,
        Command::Promises(args) => {
            let judged = promises::judge(&args.results)?;
            output::show(args.format.json, &judged, ToString::to_string)?;
            ExitCode::SUCCESS
        }
    })
}

fn status(error: &anyhow::Error) -> ExitCode {
    if let Some(error) = error.downcast_ref::<sim::error::Error>() {
        return ExitCode::from(error.status());
    }
    if let Some(error) = error.downcast_ref::<check::Error>() {
        return ExitCode::from(error.status());
    }
    if let Some(error) = error.downcast_ref::<campaign::Error>() {
        return ExitCode::from(if error.is_usage() { WRONG_USAGE } else { 1 });
    }
    match error.downcast_ref::<compare::Error>() {
        Some(error) if error.is_usage() => ExitCode::from(WRONG_USAGE),
        _ => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Command::command().debug_assert();
    }
}
