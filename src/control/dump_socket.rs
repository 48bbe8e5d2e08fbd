// SPDX-License-Identifier: GPL-2.0-only
//! The socket by which a flight recorder is told to write what it has: `dump` asks, a line
//! of JSON answers what was written, or why nothing was.

use super::server::{listen, make};
use anyhow::{anyhow, ensure, Context, Result};
use crossbeam::channel::{bounded, Receiver, Sender};
use log::warn;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Where it listens.
pub const SOCKET: &str = "/run/scx_freqlock/record";
const REQUEST: &str = "dump\n";
/// Who connects and asks nothing keeps others waiting for no longer.
const SILENCE: Duration = Duration::from_secs(1);
/// Buffers may be gigabytes.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was written, or why nothing was, in words.
pub type Answer = Result<String, String>;

/// The socket, for as long as this lives.
pub struct Server {
    path: PathBuf,
    /// Each is to be answered.
    pub requests: Receiver<Sender<Answer>>,
}

impl Server {
    /// Listens at `path`, where only one can.
    pub fn start(path: &Path) -> Result<Self> {
        let cannot = || format!("cannot listen at {}", path.display());
        make(path.parent().context("the socket has no folder")?).with_context(cannot)?;
        ensure!(
            UnixStream::connect(path).is_err(),
            "another flight recorder runs: end it first"
        );
        let listener = listen(path).with_context(cannot)?;
        let (to, requests) = bounded(1);
        thread::Builder::new()
            .name("dump".into())
            .spawn(move || accept(&listener, &to))?;
        let path = path.into();
        Ok(Self { path, requests })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its folder goes with the rest of /run.
        drop(fs::remove_file(&self.path));
    }
}

/// One after the other: more than one dump at a time would be of the same.
fn accept(listener: &UnixListener, to: &Sender<Sender<Answer>>) {
    for stream in listener.incoming() {
        let served = stream.and_then(|stream| serve(&stream, to));
        if let Err(why) = served {
            warn!("who asked for a dump got no answer: {why}");
        }
    }
}

fn serve(stream: &UnixStream, to: &Sender<Sender<Answer>>) -> io::Result<()> {
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))?;
    let mut request = String::new();
    let limit = REQUEST.len() as u64;
    BufReader::new(stream.take(limit)).read_line(&mut request)?;
    if request != REQUEST {
        return Ok(());
    }
    let (send, answer) = bounded(1);
    // Without the one that asks or the one that records, nobody is interested.
    let answer = match to.send(send).ok().and_then(|()| answer.recv().ok()) {
        Some(answer) => answer,
        None => Err("the recording has ended".into()),
    };
    let mut line = serde_json::to_string(&answer)?;
    line.push('\n');
    let mut stream = stream;
    stream.write_all(line.as_bytes())
}

/// Has the flight recorder that listens at `path` write what it has; what it says of that.
pub fn dump(path: &Path) -> Result<String> {
    let stream = UnixStream::connect(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            anyhow!("no flight recorder runs: start one with `scx_freqlock record --overwrite`")
        }
        _ => anyhow!(error).context(format!("cannot ask at {}", path.display())),
    })?;
    stream.set_read_timeout(Some(PATIENCE))?;
    (&stream).write_all(REQUEST.as_bytes())?;
    let mut line = String::new();
    BufReader::new(&stream)
        .read_line(&mut line)
        .context("the flight recorder does not answer")?;
    ensure!(!line.is_empty(), "the recording has ended");
    let answer: Answer = serde_json::from_str(&line)
        .with_context(|| format!("the flight recorder answers `{}`", line.trim()))?;
    answer.map_err(|why| anyhow!(why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn who_asks_gets_what_the_recorder_says_and_others_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("folder/record");
        let server = Server::start(&path).unwrap();
        let requests = server.requests.clone();
        let recorder = thread::spawn(move || {
            let answers = [Ok("written".to_string()), Err("full".to_string())];
            for (answer, request) in answers.into_iter().zip(requests.iter()) {
                request.send(answer).unwrap();
            }
        });
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        let mut other = UnixStream::connect(&path).unwrap();
        other.write_all(b"what\n").unwrap();
        let mut answer = String::new();
        assert_eq!(other.read_to_string(&mut answer).unwrap(), 0);
        assert_eq!(dump(&path).unwrap(), "written");
        assert_eq!(dump(&path).unwrap_err().to_string(), "full");
        recorder.join().unwrap();
        let second = Server::start(&path).err().unwrap();
        assert!(second.to_string().contains("another"), "{second}");
        drop(server);
        let nobody = dump(&path).unwrap_err();
        assert!(nobody.to_string().contains("--overwrite"), "{nobody}");
    }
}
