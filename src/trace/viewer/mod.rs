// SPDX-License-Identifier: GPL-2.0-only
//! A trace as one page of HTML that needs nothing else: `scx_freqlock view`.
//!
//! - `lanes`: the events by CPU, as columns.
//! - `tiles`: levels of detail, for where there are too many events to be drawn.
//! - `html`: both and the names, packed, in a page.
//! - `parts`: a page of all of a long trace, and the events of parts of it, for a server.
//! - page.html, page.css and the scripts are what is the same in each page; views/ has what
//!   the page can show, as data.

mod html;
mod lanes;
mod parts;
mod tiles;

use super::reader::{Error, Trace};
use super::Failed;
use lanes::Builder;
use std::io::{Read, Seek, Write};

pub use html::View;
pub use parts::{Parts, Sizes};

/// What a browser can hold: some 40 bytes an event.
const MOST_EVENTS: u64 = 20_000_000;

/// How much is in a page.
#[derive(Debug)]
pub struct Written {
    /// Events.
    pub events: u64,
    /// CPUs.
    pub cpus: usize,
}

/// Writes the page of all of the trace, with the usual views and these.
pub fn write<R: Read + Seek>(
    trace: Trace<R>,
    views: &[View],
    to: &mut impl Write,
) -> Result<Written, Failed> {
    if trace.events > MOST_EVENTS {
        return Err(Failed::TooMany(trace.events, MOST_EVENTS));
    }
    let about = html::About::of(&trace);
    let end_ns = trace.end.as_ref().map_or(0, |end| end.end_ns);
    let mut builder = Builder::new(&trace.head);
    trace.replay(|item| {
        builder.take(item);
        Ok::<_, Error>(())
    })?;
    let lanes = builder.finish(end_ns);
    let levels = tiles::levels(&lanes);
    html::write(&about, &lanes, &levels, views, None, to)?;
    Ok(Written {
        events: lanes.count,
        cpus: lanes.lanes.len(),
    })
}

#[cfg(test)]
mod parts_tests;
#[cfg(test)]
mod tests;
