// SPDX-License-Identifier: MIT
//! freqlock-run: runs a program on libfreqlock's locks.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

#[path = "../kind.rs"]
#[allow(dead_code)]
mod kind;

const LIBRARY: &str = "libfreqlock_preload.so";
const PRELOAD: &str = "LD_PRELOAD";

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
    #[arg(long, value_name = "TIME", value_parser = duration)]
    slo: Option<u64>,
    /// Which lock the program gets: `freqlock`; or, to compare with, libc's own by the same way
    /// (`pthread`, or `null`), or one that spins
    #[arg(long, value_name = "KIND", default_value = kind::KINDS[0].0, value_parser = kinds())]
    lock: String,
    /// The library to load. Default: libfreqlock_preload.so beside this program or in ../lib
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Prints the manual page
    #[arg(long, hide = true, exclusive = true)]
    manual: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

fn kinds() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(kind::KINDS.map(|(name, _)| name)).map(|name| name.to_owned())
}

/// In ns.
fn duration(text: &str) -> Result<u64, String> {
    let units = [
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
    ];
    let (number, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))
        .ok_or("a time is a number with ns, us, ms or s, as in 500us")?;
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .filter(|&ns| ns > 0)
        .ok_or_else(|| "a time is a whole number, more than 0, with its unit".to_owned())
}

/// Where the library is: in the place named, beside the program, or where meson installs it.
fn find_library(named: Option<PathBuf>) -> Result<PathBuf, String> {
    if let Some(named) = named {
        return named
            .canonicalize()
            .map_err(|error| format!("{}: {error}", named.display()));
    }
    let me = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = me.parent().unwrap_or(Path::new("/"));
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let places = [
        folder.to_owned(),
        folder.join("../lib"),
        folder.join("../lib").join(triplet),
        folder.join("../lib64"),
    ];
    places
        .iter()
        .find_map(|place| place.join(LIBRARY).canonicalize().ok())
        .ok_or_else(|| {
            format!(
                "{LIBRARY} is neither beside {} nor in ../lib; name it with --library",
                me.display()
            )
        })
}

/// LD_PRELOAD with the library before what is there already.
fn preload(library: &Path) -> Result<OsString, String> {
    let mut value = library.as_os_str().to_owned();
    // The dynamic linker splits there, and no character can hide it.
    if value.to_string_lossy().contains([' ', ':']) {
        return Err(format!(
            "{}: LD_PRELOAD takes no path with a space or a colon",
            library.display()
        ));
    }
    if let Some(before) = std::env::var_os(PRELOAD).filter(|before| !before.is_empty()) {
        value.push(":");
        value.push(before);
    }
    Ok(value)
}

fn run(args: Args) -> Result<(), (String, u8)> {
    if args.manual {
        let page = clap_mangen::Man::new(Args::command());
        return (page.render(&mut std::io::stdout())).map_err(|error| (error.to_string(), 1));
    }
    let library = find_library(args.library).map_err(|error| (error, 2))?;
    let mut command = Command::new(&args.command[0]);
    command
        .args(&args.command[1..])
        .env(PRELOAD, preload(&library).map_err(|error| (error, 2))?)
        .env(kind::LOCK, args.lock);
    match args.slo {
        Some(ns) => command.env(kind::SLO_NS, ns.to_string()),
        None => command.env_remove(kind::SLO_NS),
    };
    // As a shell's: 127 where there is none, 126 where it cannot be executed.
    let error = command.exec();
    let status = if error.kind() == std::io::ErrorKind::NotFound {
        127
    } else {
        126
    };
    Err((
        format!("{}: {error}", args.command[0].to_string_lossy()),
        status,
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
