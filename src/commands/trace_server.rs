// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock view --serve`: a page of a trace and the events that it asks for, by HTTP.
//! A trace has the names of all tasks and is for its owner alone, but any user of this machine
//! may connect: who does not know the address, of which 128 bits are random, gets nothing.

use super::trace_files;
use crate::http::{Address, Limits, Page, Server};
use crate::output;
use crate::trace::viewer::{Parts, Sizes, View};
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// One browser needs one; a part of a slow reader is some megabytes.
const LIMITS: Limits = Limits {
    connections: 16,
    within: Duration::from_secs(60),
};

/// 128 random bits, in digits.
fn secret() -> Result<String> {
    let mut bytes = [0; 16];
    (File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)))
        .context("cannot read /dev/urandom")?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

/// The times that a query names, ns since the trace began.
fn times(query: &str) -> Option<(u64, u64)> {
    let (from, to) = query.strip_prefix("from=")?.split_once("&to=")?;
    let (from, to) = (from.parse().ok()?, to.parse().ok()?);
    (from <= to).then_some((from, to))
}

/// What is under the secret address.
fn answer<R: Read + Seek>(parts: &mut Parts<R>, page: &Arc<str>, path: &str) -> Page {
    if path.is_empty() {
        return Page::ok("text/html; charset=utf-8", page.clone());
    }
    match path.strip_prefix("part?").map(times) {
        Some(Some((from, to))) => match parts.part(from, to) {
            Ok(text) => Page::ok("application/json", text),
            Err(failed) => Page::plain(503, &format!("the trace cannot be read: {failed}\n")),
        },
        Some(None) => Page::plain(
            400,
            "a part is from=NS&to=NS, in whole ns since the trace began\n",
        ),
        None => Page::plain(404, "there is no such page\n"),
    }
}

/// Serves it until the process ends.
pub fn serve(
    file: &Path,
    trace: trace_files::Read,
    views: &[View],
    address: &Address,
) -> Result<()> {
    let listeners = (address.listen()).with_context(|| format!("cannot serve at {address}"))?;
    let mut parts =
        Parts::new(trace, Sizes::default()).with_context(|| trace_files::cannot_read(file))?;
    let mut page = Vec::new();
    parts.page(views, &mut page)?;
    let page: Arc<str> = String::from_utf8(page)?.into();
    let secret = secret()?;
    let size = parts.size();
    for listener in &listeners {
        output::say(format_args!(
            "{} events of {} CPUs are at http://{}/{secret}/ until Ctrl-C",
            size.events,
            size.cpus,
            listener.local_addr()?
        ));
    }
    let under = format!("/{secret}/");
    let server = Server::new(listeners, LIMITS, move |path| {
        match path.strip_prefix(&under) {
            Some(path) => answer(&mut parts, &page, path),
            None => Page::plain(
                404,
                "take the whole address that scx_freqlock view printed\n",
            ),
        }
    })?;
    server.serve()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::format::{End, Head};
    use crate::trace::reader::Trace;
    use crate::trace::writer::Writer;
    use std::io::Cursor;

    #[test]
    fn there_is_a_page_and_parts_of_it_and_nothing_else() {
        let writer = Writer::new(Vec::new(), &Head::default()).unwrap();
        let bytes = writer.end(&End::default()).unwrap();
        let trace = Trace::open(Cursor::new(bytes)).unwrap();
        let mut parts = Parts::new(trace, Sizes::default()).unwrap();
        let mut status = |path: &str| answer(&mut parts, &"page".into(), path).status;
        assert_eq!((status(""), status("part?from=0&to=1")), (200, 200));
        assert_eq!((status("part"), status("../part?from=0&to=1")), (404, 404));
        for wrong in [
            "",
            "from=1",
            "from=2&to=1",
            "from=-1&to=2",
            "from=0&to=99999999999999999999",
        ] {
            assert_eq!(status(&format!("part?{wrong}")), 400, "{wrong}");
        }
    }

    #[test]
    fn no_two_addresses_are_the_same() {
        let (one, other) = (secret().unwrap(), secret().unwrap());
        assert_eq!((one.len(), other.len()), (32, 32));
        assert_ne!(one, other);
    }
}
