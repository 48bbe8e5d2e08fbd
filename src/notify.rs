// SPDX-License-Identifier: GPL-2.0-only
//! Tells systemd that the scheduler is in charge (sd_notify(3), READY=1), where
//! a unit of Type=notify has started it.

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Does nothing where nobody asked for it.
pub fn ready() -> io::Result<()> {
    match std::env::var_os("NOTIFY_SOCKET") {
        Some(address) => send(address, b"READY=1"),
        None => Ok(()),
    }
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
