// SPDX-License-Identifier: GPL-2.0-only
//! What can be drawn, as a file of SVG and one of PNG.

use super::raster::{self, Raster};
use plotters::coord::Shift;
use plotters::prelude::*;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw: {0}")]
pub struct Error(pub(super) String);

pub type Area<B> = DrawingArea<B, Shift>;
pub type Outcome = Result<(), Box<dyn std::error::Error>>;

/// What can be drawn on anything.
pub trait Drawing {
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
    /// None if there is nothing to see.
    pub fn of(name: &'static str, drawing: &impl Drawing) -> Result<Option<Self>, Error> {
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
