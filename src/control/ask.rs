// SPDX-License-Identifier: GPL-2.0-only
//! Asks the running scheduler over its control socket.

use super::protocol::{Answer, Request, SOCKET};
use crate::stats;
use anyhow::{bail, Context, Result};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A scheduler that loads itself again answers after that.
const PATIENCE: Duration = Duration::from_secs(10);

/// The error of an answer that is not the one asked for.
pub fn unexpected<T>(answer: Answer) -> Result<T> {
    match answer {
        Answer::Error(why) => bail!(why),
        other => bail!("the scheduler answered something else: {other:?}"),
    }
}

/// Asks the running scheduler.
pub fn ask(request: &Request) -> Result<Answer> {
    let stream = UnixStream::connect(SOCKET).map_err(|error| match error.kind() {
        // Another scheduler may be.
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => stats::running()
            .err()
            .unwrap_or_else(|| stats::Error::NoAnswer(format!("nobody listens at {SOCKET}"))),
        _ => stats::Error::of(&error.into()),
    })?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    (&stream).write_all(line.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(&stream)
        .read_line(&mut answer)
        .context("the running scx_freqlock does not answer")?;
    serde_json::from_str(&answer)
        .with_context(|| format!("the running scx_freqlock answers `{}`", answer.trim()))
}
