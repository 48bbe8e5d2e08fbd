// SPDX-License-Identifier: GPL-2.0-only
//! Figures for Prometheus and others that read OpenMetrics: a small HTTP server, which
//! asks the scheduler as any client of its statistics does, once for each scrape.

mod encode;

use crate::telemetry::Look;
use anyhow::{anyhow, Context, Result};
use log::{info, warn};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread;
use tiny_http::{Header, Method, Request, Response, Server};

const CONTENT_TYPE: &str =
    "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8";

/// ADDRESS:PORT, or a port of this machine that others cannot reach.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let local = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    (text.parse().map(local))
        .or_else(|_| text.parse())
        .map_err(|_| "neither a port nor ADDRESS:PORT, as 127.0.0.1:9977 or [::1]:9977".into())
}

/// Listens from now on, and answers until the process ends. Errors if it cannot.
pub fn start(address: SocketAddr) -> Result<()> {
    let server = Server::http(address)
        .map_err(|error| anyhow!("cannot offer metrics at {address}: {error}"))?;
    let content_type: Header = CONTENT_TYPE.parse().map_err(|()| anyhow!("no header"))?;
    thread::Builder::new()
        .name("metrics".into())
        .spawn(move || {
            for request in server.incoming_requests() {
                // Who asked may be gone.
                drop(answer(request, &content_type));
            }
            warn!("metrics are not offered any more");
        })
        .context("cannot offer metrics")?;
    info!("metrics at http://{address}/metrics");
    Ok(())
}

fn answer(request: Request, content_type: &Header) -> std::io::Result<()> {
    let path = request.url().split('?').next().unwrap_or_default();
    if (request.method(), path) != (&Method::Get, "/metrics") {
        let text = "GET /metrics is all that there is\n";
        return request.respond(Response::from_string(text).with_status_code(404));
    }
    let text = Look::take(false)
        .map_err(anyhow::Error::from)
        .and_then(|look| encode::encode(look).context("cannot write it"));
    match text {
        Ok(text) => request.respond(Response::from_string(text).with_header(content_type.clone())),
        Err(error) => {
            let text = format!("{error:#}\n");
            request.respond(Response::from_string(text).with_status_code(503))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_this_machines() {
        let of = |text| parse_address(text).map(|a| a.to_string());
        assert_eq!(of("9977").unwrap(), "127.0.0.1:9977");
        assert_eq!(of("0.0.0.0:1").unwrap(), "0.0.0.0:1");
        assert_eq!(of("[::1]:9977").unwrap(), "[::1]:9977");
        for bad in ["", "x", "65536", "localhost:1", "1.2.3.4"] {
            assert!(of(bad).unwrap_err().contains("neither"), "{bad}");
        }
    }

    #[test]
    fn a_port_that_is_taken_is_told() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let error = start(taken.local_addr().unwrap()).unwrap_err();
        assert!(format!("{error:#}").contains("cannot offer metrics at 127.0.0.1:"));
    }
}
