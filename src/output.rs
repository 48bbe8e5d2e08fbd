// SPDX-License-Identifier: GPL-2.0-only
//! The output of commands. Nothing here panics if it cannot be written, as the
//! macros of the standard library do: a full disk or a closed pipe is no fault of
//! the program. And nothing but line ends acts on a terminal, even if it was not
//! escaped before ([`crate::foreign`]).

use crate::foreign;
use ratatui::crossterm::terminal;
use serde::Serialize;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

/// For every command that prints data.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Format {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Why a command could not print.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The reader closed it: that needs no message.
    #[error("standard output is closed")]
    Closed,
    /// A full disk, for example.
    #[error("cannot write to standard output")]
    Write(#[source] io::Error),
    /// What was to be printed has no form in JSON.
    #[error("cannot write JSON")]
    Json(#[source] serde_json::Error),
}

/// Columns of lines for people: the terminal's, or those of the smallest usual one.
pub fn width() -> usize {
    const USUAL: u16 = 80;
    let columns = match io::stdout().is_terminal() {
        true => terminal::size().map_or(USUAL, |(columns, _)| columns),
        false => USUAL,
    };
    // Not even one is known of some terminals.
    usize::from(columns.max(USUAL))
}

/// Writes to standard output, now. Errors where not all of it can be written.
pub fn print(text: impl AsRef<str>) -> Result<(), Error> {
    pass_on(foreign::lines(text.as_ref()).as_bytes())
}

/// The same with what another program wrote, as it is.
pub fn pass_on(bytes: &[u8]) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Error::Closed,
            _ => Error::Write(error),
        })
}

/// A JSON document, of several lines for people who look at it, or of one line where
/// many follow each other.
pub fn json<T: Serialize>(what: &T, pretty: bool) -> serde_json::Result<String> {
    let text = match pretty {
        true => serde_json::to_string_pretty(what)?,
        false => serde_json::to_string(what)?,
    };
    Ok(foreign::json(&text).into_owned() + "\n")
}

/// Prints JSON, or else text for people.
pub fn show<T: Serialize>(
    as_json: bool,
    what: &T,
    text: impl FnOnce(&T) -> String,
) -> anyhow::Result<()> {
    Ok(print(match as_json {
        true => json(what, true)?,
        false => text(what),
    })?)
}

/// Ends a program whose command line has no meaning, or asked for help. Help that cannot
/// be written is an error; clap would print it and be content.
pub fn end_by(error: &clap::Error) -> ! {
    let printed = error.print().and_then(|()| io::stdout().flush());
    match printed {
        Err(why) if !error.use_stderr() && why.kind() != ErrorKind::BrokenPipe => {
            let line = anyhow::Error::new(Error::Write(why));
            say(format_args!("scx_freqlock: {line:#}"));
            std::process::exit(1)
        }
        _ => std::process::exit(error.exit_code()),
    }
}

/// How a program ends that failed with `error`: it is printed, with its exit status.
pub fn failed(error: &anyhow::Error, status: impl FnOnce() -> ExitCode) -> ExitCode {
    // As `scx_freqlock knobs | head` does.
    if let Some(Error::Closed) = error.downcast_ref() {
        return ExitCode::SUCCESS;
    }
    // Not {:?}: that may print a backtrace.
    say(format_args!("scx_freqlock: {error:#}"));
    status()
}

/// A line on standard error, for people; where it cannot be written, it is lost.
pub fn say(line: impl std::fmt::Display) {
    drop(write_line(&mut io::stderr(), line));
}

/// A line for people.
pub fn write_line(to: &mut impl Write, line: impl std::fmt::Display) -> io::Result<()> {
    writeln!(to, "{}", foreign::lines(&line.to_string()))
}
