// SPDX-License-Identifier: GPL-2.0-only
//! Pictures of a trace, as SVG: `scx_freqlock analyze --plot`.
//!
//! - `speeds`: how fast and how busy each CPU was, by parts of the time.
//! - `draw`: these as lanes, and distributions of waits as curves.

mod draw;
mod speeds;

use super::analysis::Analysis;
use super::format::Head;
use crate::foreign;
use draw::Curve;
use hdrhistogram::Histogram;
pub use speeds::Speeds;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw: {0}")]
pub struct Error(String);

/// A picture.
#[derive(Debug)]
pub struct Picture {
    /// The file that it is for.
    pub name: &'static str,
    /// Its text.
    pub svg: String,
}

/// Those that there is something to see in.
pub fn pictures(analysis: &Analysis, speeds: &Speeds) -> Result<Vec<Picture>, Error> {
    let of = describe(&analysis.head);
    let what = match analysis.speeds_known {
        true => "speed of CPUs, pale where idle",
        false => "CPUs, pale where idle; their speeds are not known",
    };
    let mut pictures = Vec::new();
    let mut add = |name, drawn: Result<Option<String>, Box<dyn std::error::Error>>| {
        let svg = drawn.map_err(|why| Error(why.to_string()))?;
        pictures.extend(svg.map(|svg| Picture { name, svg }));
        Ok(())
    };
    add("speeds.svg", draw::lanes(speeds, &format!("{of}: {what}")))?;
    let waits = [
        ("from wake-up to run", &analysis.wake_waits),
        ("from preemption to run", &analysis.preempted_waits),
    ];
    let title = format!("{of}: waits for a CPU");
    add("waits.svg", draw::curves(&curves(&waits), &title))?;
    let waits = [("from wait to handoff", &analysis.decisions.lock_waits)];
    let title = format!("{of}: waits for locks");
    add("locks.svg", draw::curves(&curves(&waits), &title))?;
    Ok(pictures)
}

/// Where and under which scheduler it was recorded.
fn describe(head: &Head) -> String {
    let release = foreign::Escaped(&head.release);
    match &head.scheduler {
        Some(scheduler) => format!("Linux {release}, {scheduler}"),
        None => format!("Linux {release}"),
    }
}

fn curves<'a>(waits: &[(&'a str, &Histogram<u64>)]) -> Vec<Curve<'a>> {
    let some = waits.iter().filter(|(_, waits)| !waits.is_empty());
    some.map(|(name, waits)| Curve::of(name, waits)).collect()
}

#[cfg(test)]
mod tests;
