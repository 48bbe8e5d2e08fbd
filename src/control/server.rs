// SPDX-License-Identifier: GPL-2.0-only
//! Listens for requests, one thread to a connection, and passes them to the main
//! loop. Requests are bounded in length, time and number, and wait on their own:
//! scheduling continues whatever happens here.

use super::protocol::{Answer, Peer, Request};
use anyhow::{Context, Result};
use crossbeam::channel::{bounded, Receiver, Sender};
use log::warn;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// All knobs in one request take less than a tenth of it.
const MAX_LINE: u64 = 64 << 10;
/// More get an error and are closed.
const MAX_CONNECTIONS: usize = 32;
/// A connection without a request for this time is closed, too.
const SILENCE: Duration = Duration::from_secs(5);
/// In the socket's folder.
const LOCK: &str = "lock";
/// One that was killed a moment ago still has to be taken apart by the kernel.
const LEAVING: Duration = Duration::from_secs(2);
/// Until the next try when the system has no file or thread to give.
const AGAIN: Duration = Duration::from_millis(100);

/// A request, to be answered.
pub struct Asked {
    /// Not checked, but for its form.
    pub request: Request,
    /// Who asks, by the socket's credentials.
    pub by: Peer,
    /// Takes one answer.
    pub answer: Sender<Answer>,
}

/// The socket, for as long as this lives.
pub struct Server {
    path: PathBuf,
    /// Nobody else has one in this folder meanwhile.
    _lock: File,
}

/// The other one may have begun a moment ago: the kernel does not know of it before it is
/// calibrated and loaded.
#[derive(Debug, thiserror::Error)]
#[error("scx_freqlock runs already, or is about to, as process {0}: end it first")]
struct Running(String);

impl Server {
    /// Listens at `path`, in a folder of its own. Errors where it cannot be made, or
    /// another process listens there: then what is that one's stays as it is.
    pub fn start(path: &Path) -> Result<(Self, Receiver<Asked>)> {
        let dir = path.parent().context("no folder for the control socket")?;
        let cannot = || format!("cannot listen at {}", path.display());
        make(dir).with_context(cannot)?;
        let lock = lock(&dir.join(LOCK))?;
        let listener = listen(path).with_context(cannot)?;
        let (to, requests) = bounded(MAX_CONNECTIONS);
        let server = Self {
            path: path.into(),
            _lock: lock,
        };
        thread::Builder::new()
            .name("control".into())
            .spawn(move || accept(&listener, &to))?;
        Ok((server, requests))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its folder goes with the rest of /run.
        drop(fs::remove_file(&self.path));
    }
}

/// Nobody else may write to the folder, which others may pass through to the page of CPUs.
pub(super) fn make(dir: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o711).create(dir)?;
    Ok(fs::set_permissions(dir, Permissions::from_mode(0o711))?)
}

/// Locks a file for as long as it is open, and writes the owner's PID into it. It
/// is never removed, or there could be two.
fn lock(path: &Path) -> Result<File> {
    let cannot = || format!("cannot lock {}", path.display());
    let mut file = (File::options().read(true).write(true).create(true))
        .truncate(false)
        .mode(0o600)
        .open(path)
        .with_context(cannot)?;
    let until = Instant::now() + LEAVING;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(AGAIN),
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                (&mut file).take(20).read_to_string(&mut pid).ok();
                return Err(Running(pid.trim().into()).into());
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
        }
    }
    file.set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .with_context(cannot)?;
    Ok(file)
}

/// Only this user can connect: a connection between the two calls is refused by its
/// credentials.
pub(super) fn listen(path: &Path) -> Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

fn accept(listener: &UnixListener, to: &Sender<Asked>) {
    let connections = Arc::new(AtomicUsize::new(0));
    let mut in_trouble = false;
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Once: it may last.
                if !in_trouble {
                    warn!("clients of the control socket have to wait: {error}");
                }
                in_trouble = true;
                thread::sleep(AGAIN);
                continue;
            }
        };
        in_trouble = false;
        if connections.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
            connections.fetch_sub(1, Ordering::Relaxed);
            let too_many = Answer::Error(format!("{MAX_CONNECTIONS} ask already: ask again"));
            // A client that does not read it is closed all the same.
            drop(send(&stream, &too_many));
            continue;
        }
        let to = to.clone();
        let place = connections.clone();
        let spawned = thread::Builder::new().spawn(move || {
            // However it ends, and whatever the other side made of it.
            drop(serve(&stream, &to));
            place.fetch_sub(1, Ordering::Relaxed);
        });
        if let Err(error) = spawned {
            // Its connection is closed with what was to serve it.
            warn!("clients of the control socket have to retry: {error}");
            connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Answers one connection until it ends.
fn serve(stream: &UnixStream, to: &Sender<Asked>) -> io::Result<()> {
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))?;
    let peer = getsockopt(stream, PeerCredentials)?;
    let by = Peer {
        uid: peer.uid(),
        pid: peer.pid(),
    };
    if by.uid != 0 && by.uid != geteuid().as_raw() {
        return send(stream, &Answer::Error("only root may ask".into()));
    }
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line)?;
        match line.last() {
            None => return Ok(()),
            Some(b'\n') => {}
            Some(_) if line.len() as u64 == MAX_LINE => {
                let long = format!("a request is a line of less than {MAX_LINE} bytes");
                return send(stream, &Answer::Error(long));
            }
            // Its end did not come.
            Some(_) => return Ok(()),
        }
        send(stream, &ask(&line, by, to))?;
    }
}

fn ask(line: &[u8], by: Peer, to: &Sender<Asked>) -> Answer {
    let request = match serde_json::from_slice(line) {
        Ok(request) => request,
        Err(error) => return Answer::Error(format!("not a request: {error}")),
    };
    let (answer, answered) = bounded(1);
    let asked = Asked {
        request,
        by,
        answer,
    };
    let gone = || Answer::Error("the scheduler is about to end".into());
    match to.send(asked) {
        Ok(()) => answered.recv().unwrap_or_else(|_| gone()),
        Err(_) => gone(),
    }
}

fn send(mut stream: &UnixStream, answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    stream.write_all(&line)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::context::InForce;
    use crate::control::Settings;
    use crate::knobs::Tunables;
    use crate::mode::Mode;
    use crate::settings::Assignment;
    use std::net::Shutdown;
    use tempfile::TempDir;

    /// A server with knobs behind it.
    pub struct Running {
        dir: TempDir,
        _server: Server,
    }

    pub fn start() -> Running {
        let dir = tempfile::tempdir().unwrap();
        let (server, requests) = Server::start(&dir.path().join("folder/control")).unwrap();
        thread::spawn(move || {
            let mut settings = Settings::new(Tunables::new(Mode::Auto), InForce::default());
            for asked in requests {
                asked
                    .answer
                    .send(settings.answer(&asked.request, asked.by, 1, |_| Ok(None)))
                    .unwrap();
            }
        });
        Running {
            dir,
            _server: server,
        }
    }

    impl Running {
        pub fn connect(&self) -> UnixStream {
            UnixStream::connect(self.dir.path().join("folder/control")).unwrap()
        }

        /// Every answer to these bytes.
        fn answers(&self, bytes: &[u8]) -> Vec<Answer> {
            let mut stream = self.connect();
            // It may be closed before it has taken all.
            drop(stream.write_all(bytes));
            drop(stream.shutdown(Shutdown::Write));
            let lines = BufReader::new(stream).lines().map_while(Result::ok);
            lines
                .map(|line| serde_json::from_str(&line).unwrap())
                .collect()
        }
    }

    #[test]
    fn requests_are_answered_line_by_line() {
        let running = start();
        let set = Request::Set(vec![Assignment::parse("slice_us=2000").unwrap()]);
        let set = serde_json::to_string(&set).unwrap();
        let answers = running.answers(format!("{set}\n\"undo\"\n\"undo\"\n").as_bytes());
        assert!(
            matches!(&answers[..], [Answer::Changed(a), Answer::Changed(b), Answer::Error(_)]
                if a[0].after == "2000" && b[0].after == "4000" && a[0].by.pid == std::process::id() as i32),
            "{answers:?}"
        );
    }

    #[test]
    fn others_cannot_get_there() {
        let running = start();
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(running.dir.path().join("folder")), 0o711);
        assert_eq!(mode(running.dir.path().join("folder/control")), 0o600);
    }

    #[test]
    fn a_second_one_names_the_first_and_leaves_it_alone() {
        let running = start();
        let path = running.dir.path().join("folder/control");
        let second = Server::start(&path).err().unwrap().to_string();
        let first = format!("process {}: end it first", std::process::id());
        assert!(second.ends_with(&first), "{second}");
        assert_eq!(running.answers(b"\"undo\"\n").len(), 1);
        let Running { dir, _server } = running;
        drop(_server);
        assert!(!path.exists());
        Server::start(&path).unwrap();
        drop(dir);
    }

    #[test]
    fn a_long_line_is_refused_and_the_next_connection_answered() {
        let running = start();
        let answers = running.answers(&vec![b'x'; 1 << 20]);
        assert!(
            matches!(&answers[..], [Answer::Error(why)] if why.contains("less than"))
                || answers.is_empty(),
            "{answers:?}"
        );
        assert_eq!(running.answers(b"\"get\"").len(), 0, "half a message");
        assert_eq!(running.answers(b"\"get\"\n").len(), 1);
    }

    #[test]
    fn too_many_connections_get_an_error() {
        let running = start();
        let held: Vec<UnixStream> = (0..1000).map(|_| running.connect()).collect();
        let mut line = String::new();
        BufReader::new(&held[999]).read_line(&mut line).unwrap();
        assert!(line.contains("ask again"), "{line}");
        // Those that were there before are answered still.
        writeln!(&held[0], "\"get\"").unwrap();
        let mut first = String::new();
        BufReader::new(&held[0]).read_line(&mut first).unwrap();
        assert!(first.contains("slice_us"), "{first}");
        drop(held);
        // Each frees its place when its thread sees that it is gone.
        while running.answers(b"\"get\"\n")[0] == Answer::Error("32 ask already: ask again".into())
        {
            thread::yield_now();
        }
    }
}
