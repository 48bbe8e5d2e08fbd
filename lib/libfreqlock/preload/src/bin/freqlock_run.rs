// SPDX-License-Identifier: MIT
//! freqlock-run: runs a program on libfreqlock's locks.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{CommandFactory, Parser};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

#[path = "../kind.rs"]
#[allow(dead_code)]
mod kind;
#[path = "../setup.rs"]
mod setup;

/// Runs a program, and those that it starts, with the locks of libfreqlock in place of libc's.
///
/// Mutexes, spin locks, reader-writer locks and condition variables are replaced, but for those that
/// are robust, inherit priorities, or are shared between processes.
#[derive(Parser)]
#[command(name = "freqlock-run", version)]
struct Args {
    /// How long 99% of waits for a lock may take at most, outside of the program's own epochs:
    /// a number with ns, us, ms or s. Without it, a thread on a little CPU lets those on big ones
    /// take a lock first for up to 100 ms
    #[arg(long, value_name = "TIME", value_parser = setup::duration)]
    slo: Option<u64>,
    /// Which lock the program gets: `freqlock`; or, to compare with, libc's own by the same way
    /// (`pthread`, or `null`), or one that spins
    #[arg(long, value_name = "KIND", default_value = kind::KINDS[0].0, value_parser = kinds())]
    lock: String,
    #[command(flatten)]
    started: setup::Started,
}

fn kinds() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(kind::KINDS.map(|(name, _)| name)).map(|name| name.to_owned())
}

fn run(args: Args) -> Result<(), (String, u8)> {
    if args.started.manual {
        let page = clap_mangen::Man::new(Args::command());
        return (page.render(&mut std::io::stdout())).map_err(|error| (error.to_string(), 1));
    }
    let preload = args.started.preload().map_err(|error| (error, 2))?;
    let program = args.started.command;
    let mut command = Command::new(&program[0]);
    command
        .args(&program[1..])
        .env(setup::PRELOAD, preload)
        .env(kind::LOCK, args.lock);
    match args.slo {
        Some(ns) => command.env(kind::SLO_NS, ns.to_string()),
        None => command.env_remove(kind::SLO_NS),
    };
    let error = command.exec();
    Err((
        format!("{}: {error}", program[0].to_string_lossy()),
        setup::status(&error),
    ))
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err((error, status)) => {
            let _ = writeln!(std::io::stderr(), "freqlock-run: {error}");
            ExitCode::from(status)
        }
    }
}
