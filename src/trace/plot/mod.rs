// SPDX-License-Identifier: GPL-2.0-only
//! Pictures of a trace, as SVG and PNG: `scx_freqlock analyze --plot`.
//!
//! - `raster`: what plotters draws on, for PNG.
//! - `bars`: the ratios of a comparison.
//! - `speeds`: how fast and how busy each CPU was, by parts of the time.
//! - `draw`: these as lanes, and distributions of waits as curves.

pub mod bars;
mod draw;
mod raster;
mod speeds;

use super::analysis::Analysis;
use super::format::Head;
use crate::foreign;
use draw::{Curve, Curves, Lanes};
use hdrhistogram::Histogram;
use plotters::coord::Shift;
use plotters::prelude::*;
use raster::Raster;
pub use speeds::Speeds;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw: {0}")]
pub struct Error(String);

type Area<B> = DrawingArea<B, Shift>;
type Outcome = Result<(), Box<dyn std::error::Error>>;

/// What can be drawn on anything.
trait Drawing {
    /// In pixels; none if there is nothing to see.
    fn size(&self) -> Option<(u32, u32)>;
    /// Draws it on white.
    fn draw<B: DrawingBackend>(&self, area: &Area<B>) -> Outcome
    where
        B::ErrorType: 'static;
}

/// A picture, twice.
#[derive(Debug)]
pub struct Picture {
    /// Of the files that it is for, without their ends.
    pub name: &'static str,
    /// As text.
    pub svg: String,
    /// In pixels.
    pub png: Vec<u8>,
}

impl Picture {
    fn of(name: &'static str, drawing: &impl Drawing) -> Result<Option<Self>, Error> {
        fn draw<B: DrawingBackend>(drawing: &impl Drawing, on: B) -> Outcome
        where
            B::ErrorType: 'static,
        {
            let area = on.into_drawing_area();
            area.fill(&WHITE)?;
            drawing.draw(&area)?;
            Ok(area.present()?)
        }
        let Some(size) = drawing.size() else {
            return Ok(None);
        };
        let failed = |why: Box<dyn std::error::Error>| Error(why.to_string());
        let mut svg = String::new();
        draw(drawing, SVGBackend::with_string(&mut svg, size)).map_err(failed)?;
        let mut pixels = raster::pixels(size);
        draw(drawing, Raster::new(&mut pixels, size)).map_err(failed)?;
        let png = raster::png(&pixels, size).map_err(|why| Error(why.to_string()))?;
        Ok(Some(Self { name, svg, png }))
    }
}

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
