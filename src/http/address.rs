// SPDX-License-Identifier: GPL-2.0-only
//! Where a server listens.

use anyhow::{bail, Context, Result};
use log::warn;
use nix::errno::Errno::{self, EADDRNOTAVAIL, EAFNOSUPPORT};
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::str::FromStr;

/// A host, by name or number, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    /// HOST:PORT, or a port of this machine that others cannot reach. What a name stands for
    /// is asked when it is listened there.
    fn from_str(text: &str) -> Result<Self, String> {
        let of = |host: &str, port: &str| {
            let port = port.parse().ok()?;
            let host = match host.strip_prefix('[') {
                Some(host) => host.strip_suffix(']')?,
                None if host.contains(':') => return None,
                None => host,
            };
            (!host.is_empty()).then(|| Address {
                host: host.into(),
                port,
            })
        };
        match text.rsplit_once(':') {
            Some((host, port)) => of(host, port),
            None => of(&Ipv4Addr::LOCALHOST.to_string(), text),
        }
        .ok_or_else(|| {
            "neither a port nor HOST:PORT, as 127.0.0.1:9977, [::1]:9977 or localhost:9977".into()
        })
    }
}

impl Address {
    /// Listens at every address that a name stands for, as localhost does for two: but for
    /// those of a kind that this machine has not.
    pub fn listen(&self) -> Result<Vec<TcpListener>> {
        let known = (self.host.as_str(), self.port).to_socket_addrs()?;
        let known: BTreeSet<SocketAddr> = known.collect();
        let (mut listeners, mut missing) = (Vec::new(), None);
        for one in known {
            match TcpListener::bind(one) {
                Ok(listener) => listeners.push(listener),
                Err(error) if is_not_here(&error) => missing = Some(error),
                Err(error) => return Err(error).with_context(|| one.to_string()),
            }
        }
        match (listeners.is_empty(), missing) {
            (false, missing) => {
                if let Some(error) = missing {
                    warn!(
                        "it is not listened at all that {} stands for: {error}",
                        self.host
                    );
                }
                Ok(listeners)
            }
            (true, Some(error)) => Err(error.into()),
            (true, None) => bail!("the name stands for no address"),
        }
    }
}

fn is_not_here(error: &io::Error) -> bool {
    let kind = error.raw_os_error().map(Errno::from_raw);
    matches!(kind, Some(EADDRNOTAVAIL | EAFNOSUPPORT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_this_machines() {
        let of = |text: &str| text.parse().map(|a: Address| a.to_string());
        assert_eq!(of("9977").unwrap(), "127.0.0.1:9977");
        for good in ["0.0.0.0:1", "[::1]:9977", "localhost:9977", "a.example:1"] {
            assert_eq!(of(good).unwrap(), good);
        }
        for bad in [
            "", "x", "65536", ":1", "[]:1", "::1:9977", "[::1:1", "1.2.3.4", "a:b", "a:",
        ] {
            assert!(of(bad).unwrap_err().contains("neither"), "{bad}");
        }
    }

    #[test]
    fn a_name_is_listened_at_by_all_its_addresses() {
        let address: Address = "localhost:0".parse().unwrap();
        let listeners = address.listen().unwrap();
        assert!(!listeners.is_empty());
        for listener in &listeners {
            assert!(listener.local_addr().unwrap().ip().is_loopback());
        }
    }
}
