// SPDX-License-Identifier: GPL-2.0-only
//! What commands say. Nothing here panics where it cannot be written, as the macros of
//! the standard library do: a full disk or a closed pipe is no fault of the program.

use serde::Serialize;
use std::io::{self, ErrorKind, Write};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Who read it has had enough: nothing that one needs to be told.
    #[error("standard output is closed")]
    Closed,
    #[error("cannot write to standard output")]
    Write(#[source] io::Error),
}

/// Writes to standard output, now. Errors where not all of it can be written.
pub fn print(text: impl AsRef<[u8]>) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_ref())
        .and_then(|()| out.flush())
        .map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Error::Closed,
            _ => Error::Write(error),
        })
}

/// Prints JSON, or else text for people.
pub fn show<T: Serialize>(
    json: bool,
    what: &T,
    text: impl FnOnce(&T) -> String,
) -> anyhow::Result<()> {
    Ok(print(match json {
        true => serde_json::to_string_pretty(what)? + "\n",
        false => text(what),
    })?)
}

/// A line on standard error, for people; where it cannot be written, they are not told.
pub fn say(line: impl std::fmt::Display) {
    drop(writeln!(io::stderr(), "{line}"));
}
