// SPDX-License-Identifier: GPL-2.0-only
//! Reports to systemd how far the scheduler is (sd_notify(3)), where a unit of Type=notify has
//! started it.

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// What has come, and a line of words for `systemctl status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State<'a> {
    /// It is on its way.
    Starting(&'a str),
    /// It is in charge.
    Ready(&'a str),
    /// It ends, for whatever reason.
    Stopping(&'a str),
}

/// Does nothing where nobody asked for it.
pub fn announce(state: State) -> io::Result<()> {
    match std::env::var_os("NOTIFY_SOCKET") {
        Some(address) => send(address, message(state).as_bytes()),
        None => Ok(()),
    }
}

fn message(state: State) -> String {
    let (word, line) = match state {
        State::Starting(line) => ("", line),
        State::Ready(line) => ("READY=1\n", line),
        State::Stopping(line) => ("STOPPING=1\n", line),
    };
    // Lines are assignments.
    format!("{word}STATUS={}", line.replace('\n', " "))
}

fn send(address: OsString, message: &[u8]) -> io::Result<()> {
    let address = match address.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path))?,
    };
    UnixDatagram::unbound()?
        .send_to_addr(message, &address)
        .map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_one_line() {
        let text = message(State::Ready("mode auto\nX=1"));
        assert_eq!(text, "READY=1\nSTATUS=mode auto X=1");
        assert_eq!(message(State::Starting("a")), "STATUS=a");
        assert_eq!(message(State::Stopping("b")), "STOPPING=1\nSTATUS=b");
    }

    #[test]
    fn it_reaches_sockets_by_path_and_by_abstract_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let name = format!("scx_freqlock-test-{}", std::process::id());
        let abstract_name = SocketAddr::from_abstract_name(&name).unwrap();
        for (socket, address) in [
            (UnixDatagram::bind(&path).unwrap(), path.into_os_string()),
            (
                UnixDatagram::bind_addr(&abstract_name).unwrap(),
                format!("@{name}").into(),
            ),
        ] {
            send(address, b"READY=1").unwrap();
            let mut got = [0; 16];
            assert_eq!(socket.recv(&mut got).unwrap(), 7);
            assert_eq!(&got[..7], b"READY=1");
        }
    }
}
