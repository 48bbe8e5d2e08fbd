// SPDX-License-Identifier: GPL-2.0-only
//! Figures for Prometheus and others that read OpenMetrics: a small HTTP server, which
//! asks the scheduler as any client of its statistics does, once a second at most.

mod cache;
mod encode;
mod http;

use crate::look::Look;
use anyhow::{bail, Context, Result};
use cache::Cached;
use http::{Limits, Page, Server};
use log::{info, warn};
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// One Prometheus needs one.
const LIMITS: Limits = Limits {
    connections: 64,
    within: Duration::from_secs(10),
};

/// Where figures are offered: a host, by name or number, and a port.
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

/// HOST:PORT, or a port of this machine that others cannot reach. What a name stands for
/// is asked when figures are to be offered there.
pub fn parse_address(text: &str) -> Result<Address, String> {
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

/// Listens from now on, and answers until the process ends. Errors if it cannot.
pub fn start(address: &Address) -> Result<()> {
    let listeners =
        listen(address).with_context(|| format!("cannot offer metrics at {address}"))?;
    for listener in &listeners {
        info!("metrics at http://{}/metrics", listener.local_addr()?);
    }
    let mut cached = Cached::default();
    let page = move || cached.get(Instant::now, look);
    let server = Server::new(listeners, "/metrics", LIMITS, page)?;
    thread::Builder::new()
        .name("metrics".into())
        .spawn(move || server.serve())
        .context("cannot offer metrics")?;
    Ok(())
}

/// At every address that a name stands for, as localhost does for two: but for those of a
/// kind that this machine has not.
fn listen(address: &Address) -> Result<Vec<TcpListener>> {
    let known = (address.host.as_str(), address.port).to_socket_addrs()?;
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
                    "metrics are not at all that {} stands for: {error}",
                    address.host
                );
            }
            Ok(listeners)
        }
        (true, Some(error)) => Err(error.into()),
        (true, None) => bail!("the name stands for no address"),
    }
}

fn is_not_here(error: &io::Error) -> bool {
    let kind = error.raw_os_error().map(nix::errno::Errno::from_raw);
    use nix::errno::Errno::{EADDRNOTAVAIL, EAFNOSUPPORT};
    matches!(kind, Some(EADDRNOTAVAIL | EAFNOSUPPORT))
}

fn look() -> Page {
    let text = Look::take(false)
        .map_err(anyhow::Error::from)
        .and_then(|look| encode::encode(look).context("cannot write it"));
    match text {
        Ok(text) => Page {
            content_type: CONTENT_TYPE,
            ..Page::plain(200, &text)
        },
        Err(error) => Page::plain(503, &format!("{error:#}\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_this_machines() {
        let of = |text| parse_address(text).map(|a| a.to_string());
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
        let listeners = listen(&parse_address("localhost:0").unwrap()).unwrap();
        assert!(!listeners.is_empty());
        for listener in &listeners {
            assert!(listener.local_addr().unwrap().ip().is_loopback());
        }
    }

    #[test]
    fn a_port_that_is_taken_and_a_name_that_is_none_are_reported() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = |text: &str| format!("{:#}", start(&parse_address(text).unwrap()).unwrap_err());
        let text = error(&port.to_string());
        assert!(text.contains("cannot offer metrics at 127.0.0.1:") && text.contains("in use"));
        let text = error("no.such.name.invalid:1");
        assert!(
            text.contains("cannot offer metrics at no.such.name.invalid:1: "),
            "{text}"
        );
        // Of the range for documentation: nobody's.
        assert!(error("192.0.2.1:1").contains("cannot offer metrics at 192.0.2.1:1: "));
    }
}
