// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock machine calibrate`: fits a machine's description to what bench/calibrate has
//! measured, and holds the two beside each other. scripts/calibrate makes the measurements.
//!
//! [`measured`] is what was printed, [`fit`] the model's parameters, [`described`] the file
//! that they make, [`value`] each thing by name, and [`beside`] the verdicts.

mod beside;
mod described;
mod fit;
mod measured;
#[cfg(test)]
mod tests;
mod value;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::sim::description::Description;
use crate::sim::error::Error;
use crate::sim::folders::machines_dir;
use crate::sim::run::to_stdout;
use beside::{Beside, Other, Tolerances};
use fit::Fit;
use freqlock::lab_args::CalibrateArgs;
use measured::Measured;

/// Failure means that something is outside its tolerance.
pub fn run(args: &CalibrateArgs) -> Result<ExitCode, Error> {
    let dir = machines_dir(args.machines.as_deref())?;
    let measured = load(&args.measured)?;
    let fit = Fit::new(&measured);
    let values = value::of_fit(&fit, &measured);
    if let Some(path) = &args.write {
        let otherwise = Description::load(&args.otherwise, &dir)?;
        let text = described::text(&fit, &measured, &otherwise);
        // What is written is a machine.
        Description::parse("calibrated", &text).map_err(|reason| {
            let path = args.measured.display();
            Error::Usage(format!("{path} fits no machine: {reason}"))
        })?;
        std::fs::write(path, text).map_err(|source| Error::Write {
            path: path.clone(),
            source,
        })?;
    }
    let (others, other) = match (&args.beside, &args.against) {
        (Some(path), _) => {
            let model = load(path)?;
            (value::of_fit(&Fit::new(&model), &model), Other::Model)
        }
        (None, Some(machine)) => {
            let machine = Description::load(machine, &dir)?;
            (value::of_description(&machine), Other::Description)
        }
        (None, None) => {
            to_stdout(value::list(&values))?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let path = tolerances(&dir);
    let tolerances = Tolerances::parse(&read(&path)?).map_err(|reason| wrong(&path, &reason))?;
    let beside = Beside::new(&values, &others, other, &tolerances);
    to_stdout(beside.text(&tolerances))?;
    Ok(ExitCode::from(u8::from(beside.outside > 0)))
}

/// They lie beside the program that they are about.
fn tolerances(machines: &Path) -> PathBuf {
    machines.with_file_name("bench/calibrate/tolerances.toml")
}

fn load(path: &Path) -> Result<Measured, Error> {
    Measured::parse(&read(path)?).map_err(|reason| wrong(path, &reason))
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.into(),
        source,
    })
}

fn wrong(path: &Path, reason: &str) -> Error {
    Error::Usage(format!("{}: {reason}", path.display()))
}
