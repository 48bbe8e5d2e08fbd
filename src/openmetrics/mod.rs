// SPDX-License-Identifier: GPL-2.0-only
//! Figures for Prometheus and others that read OpenMetrics, by a small HTTP server, which
//! asks the scheduler as any client of its statistics does, once a second at most.

mod cache;
mod encode;

use crate::http::{Address, Limits, Page, Server};
use crate::look::Look;
use anyhow::{Context, Result};
use cache::Cached;
use log::info;
use std::thread;
use std::time::{Duration, Instant};

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// One Prometheus needs one.
const LIMITS: Limits = Limits {
    connections: 64,
    within: Duration::from_secs(10),
};

/// Listens from now on, and answers until the process ends. Errors if it cannot.
pub fn start(address: &Address) -> Result<()> {
    let listeners =
        (address.listen()).with_context(|| format!("cannot offer metrics at {address}"))?;
    for listener in &listeners {
        info!("metrics at http://{}/metrics", listener.local_addr()?);
    }
    let mut cached = Cached::default();
    let page = move |path: &str| match path.split('?').next() {
        Some("/metrics") => cached.get(Instant::now, look),
        _ => Page::plain(404, "GET /metrics is all that there is\n"),
    };
    let server = Server::new(listeners, LIMITS, page)?;
    thread::Builder::new()
        .name("metrics".into())
        .spawn(move || server.serve())
        .context("cannot offer metrics")?;
    Ok(())
}

fn look() -> Page {
    let text = Look::take(false)
        .map_err(anyhow::Error::from)
        .and_then(|look| encode::encode(look).context("cannot write it"));
    match text {
        Ok(text) => Page::ok(CONTENT_TYPE, text),
        Err(error) => Page::plain(503, &format!("{error:#}\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_port_that_is_taken_and_a_name_that_is_none_are_reported() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = |text: &str| format!("{:#}", start(&text.parse().unwrap()).unwrap_err());
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
