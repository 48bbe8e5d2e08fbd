// SPDX-License-Identifier: GPL-2.0-only
//! An HTTP server for pages that are asked for by GET, in one thread: connections are
//! bounded in number, in time and in the length of what they ask. Where there is no place
//! left, the connection that has been there longest makes room, so holding all of
//! them keeps nobody out: a client that asks as it connects, as all clients do, is
//! answered in the same round.
//!
//! Threads with blocking sockets would be simpler, but a time-out of theirs is for each
//! read alone, and a place can be taken from nobody. A server from a library brings an
//! asynchronous run time of some forty crates, for few pages.

mod address;

use log::warn;
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

pub use address::Address;

/// Of requests: what Prometheus sends has 300 bytes.
const MAX_REQUEST: usize = 8 << 10;
const MAX_HEADERS: usize = 64;
/// Until the next try when the system has no file to give.
const AGAIN: Duration = Duration::from_millis(100);
/// How long it is waited for the other side to close, so that it reads the answer first.
const LEAVE: Duration = Duration::from_secs(1);

/// What any number of clients together can take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// At a time.
    pub connections: usize,
    /// For the request, and again for the answer.
    pub within: Duration,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Page {
    /// Of HTTP: 200 if all is well.
    pub status: u16,
    /// Of the text.
    pub content_type: &'static str,
    /// All of it.
    pub text: Arc<str>,
}

impl Page {
    /// For people.
    pub fn plain(status: u16, text: &str) -> Self {
        Self {
            status,
            ..Self::ok("text/plain; charset=utf-8", text)
        }
    }

    /// What was asked for.
    pub fn ok(content_type: &'static str, text: impl Into<Arc<str>>) -> Self {
        Self {
            status: 200,
            content_type,
            text: text.into(),
        }
    }
}

/// `page` is called for each request, with its path and query.
pub struct Server<F> {
    listeners: Vec<TcpListener>,
    page: F,
    limits: Limits,
    /// The oldest first.
    connections: Vec<Connection>,
    /// Set while the system has nothing to give to a new connection.
    wait_until: Option<Instant>,
}

struct Connection {
    stream: TcpStream,
    until: Instant,
    state: State,
}

enum State {
    Asking(Vec<u8>),
    Answering(Answer),
    /// All is written: what still comes is thrown away.
    Leaving,
}

/// The page itself is shared: a thousand slow readers have one.
struct Answer {
    head: Vec<u8>,
    text: Arc<str>,
    sent: usize,
}

/// What a round of a connection came to.
enum Next {
    Wait,
    Close,
}

/// What is known of a request that has come in part or as a whole.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    More,
    Page(String),
    Wrong(u16, &'static str),
}

impl<F: FnMut(&str) -> Page> Server<F> {
    /// Errors of the system.
    pub fn new(listeners: Vec<TcpListener>, limits: Limits, page: F) -> io::Result<Self> {
        for listener in &listeners {
            listener.set_nonblocking(true)?;
        }
        Ok(Self {
            listeners,
            page,
            limits,
            connections: Vec::new(),
            wait_until: None,
        })
    }

    /// Until the process ends.
    pub fn serve(mut self) -> ! {
        let mut in_trouble = false;
        loop {
            let result = self.round();
            if let (Err(error), false) = (&result, in_trouble) {
                warn!("clients of the HTTP server may have to retry: {error}");
            }
            in_trouble = result.is_err();
            if in_trouble && self.wait_until.is_none() {
                thread::sleep(AGAIN);
            }
        }
    }

    /// Waits until there is something to do, and does it.
    fn round(&mut self) -> io::Result<()> {
        let (accept, ready) = self.wait()?;
        let mut ready = ready.into_iter();
        let Self {
            connections,
            page,
            limits,
            ..
        } = self;
        connections.retain_mut(|connection| {
            let now_ready = ready.next().unwrap_or(false);
            let next = match now_ready {
                true => connection.go_on(limits.within, page),
                false => Next::Wait,
            };
            matches!(next, Next::Wait) && Instant::now() < connection.until
        });
        match accept {
            true => self.accept(),
            false => Ok(()),
        }
    }

    /// Whether somebody wants to connect, and which connections have something to do.
    fn wait(&mut self) -> io::Result<(bool, Vec<bool>)> {
        let now = Instant::now();
        if self.wait_until.is_some_and(|until| until <= now) {
            self.wait_until = None;
        }
        let listeners = match self.wait_until {
            None => &self.listeners[..],
            Some(_) => &[],
        };
        let mut fds: Vec<PollFd> = (listeners.iter())
            .map(|listener| PollFd::new(listener.as_fd(), PollFlags::POLLIN))
            .collect();
        fds.extend(self.connections.iter().map(|connection| {
            let wanted = match connection.state {
                State::Answering(_) => PollFlags::POLLOUT,
                State::Asking(_) | State::Leaving => PollFlags::POLLIN,
            };
            PollFd::new(connection.stream.as_fd(), wanted)
        }));
        let ends = self.connections.iter().map(|connection| connection.until);
        let first = ends.chain(self.wait_until).min();
        let timeout = first.map_or(PollTimeout::NONE, |until| {
            // A millisecond is what poll counts in: rounded up, lest it turn in vain.
            let ms = until.saturating_duration_since(now).as_millis() + 1;
            PollTimeout::try_from(ms).unwrap_or(PollTimeout::MAX)
        });
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = fds.iter().map(|fd| fd.any().unwrap_or(false));
        let accept = ready
            .by_ref()
            .take(listeners.len())
            .fold(false, |a, b| a | b);
        Ok((accept, ready.collect()))
    }

    /// Takes in those who want to connect, as many as there are places at most: then the
    /// others are looked at again.
    fn accept(&mut self) -> io::Result<()> {
        for i in 0..self.listeners.len() {
            for _ in 0..self.limits.connections {
                let stream = match self.listeners[i].accept() {
                    Ok((stream, _)) => stream,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // The client has gone.
                    Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => {
                        self.wait_until = Some(Instant::now() + AGAIN);
                        return Err(error);
                    }
                };
                self.take_in(stream)?;
            }
        }
        Ok(())
    }

    fn take_in(&mut self, stream: TcpStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let mut connection = Connection {
            stream,
            until: Instant::now() + self.limits.within,
            state: State::Asking(Vec::new()),
        };
        // The request is mostly there already.
        let next = connection.go_on(self.limits.within, &mut self.page);
        if let Next::Wait = next {
            if self.connections.len() >= self.limits.connections {
                self.connections.remove(0);
            }
            self.connections.push(connection);
        }
        Ok(())
    }
}

impl Connection {
    /// As far as it goes without waiting.
    fn go_on(&mut self, within: Duration, page: &mut impl FnMut(&str) -> Page) -> Next {
        loop {
            match &mut self.state {
                State::Asking(request) => {
                    match read(&mut self.stream, MAX_REQUEST - request.len()) {
                        Ok(bytes) if bytes.is_empty() => return Next::Close,
                        Ok(bytes) => request.extend(bytes),
                        Err(error) => return unless_it_blocks(&error),
                    }
                    let answer = match asked(request) {
                        Asked::More => continue,
                        Asked::Page(path) => page(&path),
                        Asked::Wrong(status, why) => Page::plain(status, why),
                    };
                    self.state = State::Answering(Answer::new(answer));
                    self.until = Instant::now() + within;
                }
                State::Answering(answer) => {
                    let rest = answer.rest();
                    if rest.is_empty() {
                        // The client closes when it sees the end, and has read all by then.
                        drop(self.stream.shutdown(Shutdown::Write));
                        self.state = State::Leaving;
                        self.until = Instant::now() + LEAVE.min(within);
                        continue;
                    }
                    match self.stream.write(rest) {
                        Ok(0) => return Next::Close,
                        Ok(sent) => answer.sent += sent,
                        Err(error) => return unless_it_blocks(&error),
                    }
                }
                State::Leaving => match read(&mut self.stream, MAX_REQUEST) {
                    Ok(bytes) if bytes.is_empty() => return Next::Close,
                    // The rest of a request that was too long; there is an end to it, too.
                    Ok(_) => return Next::Wait,
                    Err(error) => return unless_it_blocks(&error),
                },
            }
        }
    }
}

fn read(stream: &mut TcpStream, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; most];
    let length = stream.read(&mut bytes)?;
    bytes.truncate(length);
    Ok(bytes)
}

fn unless_it_blocks(error: &io::Error) -> Next {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Next::Wait,
        _ => Next::Close,
    }
}

impl Answer {
    fn new(page: Page) -> Self {
        let reason = match page.status {
            200 => "OK",
            400 => "Bad Request",
            404 => "Not Found",
            405 => "Method Not Allowed",
            431 => "Request Header Fields Too Large",
            _ => "Service Unavailable",
        };
        let head = format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
            page.status,
            page.content_type,
            page.text.len()
        );
        Self {
            head: head.into(),
            text: page.text,
            sent: 0,
        }
    }

    fn rest(&self) -> &[u8] {
        match self.head.get(self.sent..) {
            Some(rest) if !rest.is_empty() => rest,
            _ => &self.text.as_bytes()[self.sent - self.head.len()..],
        }
    }
}

/// What these bytes ask for. No request for a page has a body that would have to be read.
fn asked(request: &[u8]) -> Asked {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(request) {
        Ok(httparse::Status::Partial) if request.len() < MAX_REQUEST => Asked::More,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            Asked::Wrong(431, "this is longer than any request for a page\n")
        }
        Err(_) => Asked::Wrong(400, "this is not HTTP/1.1\n"),
        Ok(httparse::Status::Complete(_)) => match (parsed.method, parsed.path) {
            (Some("GET"), Some(path)) => Asked::Page(path.into()),
            _ => Asked::Wrong(405, "pages are asked for by GET\n"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const GET: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";
    const LONG: Duration = Duration::from_secs(600);

    /// A server with a page of that many bytes; how often it was made.
    fn start(connections: usize, within: Duration, bytes: usize) -> (SocketAddr, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let limits = Limits {
            connections,
            within,
        };
        let made = Arc::new(AtomicUsize::new(0));
        let count = made.clone();
        let text: Arc<str> = "x".repeat(bytes).into();
        let page = move |path: &str| {
            if !path.starts_with("/metrics") {
                return Page::plain(404, "none\n");
            }
            count.fetch_add(1, Ordering::Relaxed);
            Page::ok("text/plain; charset=utf-8", text.clone())
        };
        let server = Server::new(vec![listener], limits, page).unwrap();
        thread::spawn(move || server.serve());
        (address, made)
    }

    fn send(address: SocketAddr, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    }

    /// All that is answered to these bytes.
    fn answer(address: SocketAddr, bytes: &[u8]) -> String {
        let mut text = String::new();
        send(address, bytes).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn the_page_is_there_and_nothing_else() {
        let (address, made) = start(4, LONG, 5);
        let page = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n\
                    Content-Length: 5\r\nCache-Control: no-store\r\nConnection: close\r\n\r\nxxxxx";
        assert_eq!(answer(address, GET), page);
        assert!(answer(address, b"GET /metrics?a=b HTTP/1.0\r\n\r\n").ends_with("xxxxx"));
        assert_eq!(made.load(Ordering::Relaxed), 2);
        for (wrong, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], 404),
            (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
            (b"rubbish\r\n\r\n", 400),
            (b"\x16\x03\x01\x02\x00\x01", 400),
        ] {
            let text = answer(address, wrong);
            assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{text}");
        }
        assert_eq!(made.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_request_that_comes_byte_by_byte_is_one() {
        let (address, _) = start(4, LONG, 5);
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        for byte in GET {
            stream.write_all(&[*byte]).unwrap();
        }
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.ends_with("xxxxx"), "{text}");
    }

    #[test]
    fn a_request_without_an_end_gets_an_error() {
        let (address, _) = start(4, LONG, 5);
        let mut long = b"GET /metrics HTTP/1.1\r\nX: ".to_vec();
        long.resize(3 * MAX_REQUEST, b'x');
        let text = answer(address, &long);
        assert!(text.starts_with("HTTP/1.1 431 "), "{text}");
        let many = "A: b\r\n".repeat(MAX_HEADERS + 1);
        let text = answer(address, format!("GET / HTTP/1.1\r\n{many}\r\n").as_bytes());
        assert!(text.starts_with("HTTP/1.1 431 "), "{text}");
    }

    #[test]
    fn who_holds_all_places_keeps_nobody_out() {
        let (address, _) = start(8, LONG, 8 << 20);
        let silent: Vec<TcpStream> = (0..200).map(|_| send(address, b"")).collect();
        let half: Vec<TcpStream> = (0..100).map(|_| send(address, b"GET /met")).collect();
        // Those never read.
        let slow: Vec<TcpStream> = (0..100).map(|_| send(address, GET)).collect();
        let (few, _) = start(8, LONG, 5);
        assert!(answer(few, GET).ends_with("xxxxx"), "another one");
        let text = answer(address, GET);
        assert!(text.ends_with("xxxxx") && text.len() > 8 << 20);
        // The oldest made room: it was closed.
        assert_eq!((&silent[0]).read(&mut [0]).unwrap_or(0), 0);
        drop((silent, half, slow));
    }

    #[test]
    fn who_takes_too_long_is_closed() {
        let (address, _) = start(8, Duration::from_millis(50), 64 << 20);
        assert_eq!(send(address, b"GET").read(&mut [0]).unwrap_or(0), 0);
        // It closes in the middle of the page, which no buffer holds as a whole.
        let slow = send(address, GET);
        while (&slow).write(b"\r\n").is_ok() {
            thread::yield_now();
        }
    }
}
