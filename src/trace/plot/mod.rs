// SPDX-License-Identifier: GPL-2.0-only
//! Pictures of a trace, as SVG and PNG: `scx_freqlock analyze --plot`.
//!
//! - `picture`: what can be drawn, as both.
//! - `raster`: what plotters draws on, for PNG.
//! - `bars`: the ratios of a comparison.
//! - `speeds`: how fast and how busy each CPU was, by parts of the time.
//! - `draw`: these as lanes, and distributions of waits as curves.

pub mod bars;
mod draw;
mod picture;
mod raster;
mod speeds;

use super::analysis::Analysis;
use super::format::Head;
use crate::foreign;
use draw::{Curve, Curves, Lanes};
use hdrhistogram::Histogram;
pub use picture::{Error, Picture};
pub use speeds::Speeds;

/// Those that there is something to see in.
pub fn pictures(analysis: &Analysis, speeds: &Speeds) -> Result<Vec<Picture>, Error> {
    let of = describe(&analysis.head);
    let what = match analysis.speeds_known {
        true => "speed of CPUs, pale where idle",
        false => "CPUs, pale where idle; their speeds are not known",
    };
    let lanes = Lanes {
        speeds,
        title: format!("{of}: {what}"),
    };
    let waits = Curves {
        curves: curves(&[
            ("from wake-up to run", &analysis.wake_waits),
            ("from preemption to run", &analysis.preempted_waits),
        ]),
        title: format!("{of}: waits for a CPU"),
    };
    let locks = Curves {
        curves: curves(&[("from wait to handoff", &analysis.decisions.lock_waits)]),
        title: format!("{of}: waits for locks"),
    };
    let all = [
        Picture::of("speeds", &lanes)?,
        Picture::of("waits", &waits)?,
        Picture::of("locks", &locks)?,
    ];
    Ok(all.into_iter().flatten().collect())
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
