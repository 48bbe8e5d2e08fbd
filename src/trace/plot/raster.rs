// SPDX-License-Identifier: GPL-2.0-only
//! Pixels that plotters draws on, with a font that needs no file, and PNG of them
//! (RFC 2083).

use embedded_graphics::mono_font::iso_8859_1::FONT_7X13;
use embedded_graphics::mono_font::MonoTextStyle;
use embedded_graphics::pixelcolor::BinaryColor;
use embedded_graphics::prelude::{Dimensions, DrawTarget, Drawable, Pixel, Point};
use embedded_graphics::primitives::Rectangle;
use embedded_graphics::text::{Baseline, Text};
use flate2::write::ZlibEncoder;
use flate2::Compression;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};
use std::convert::Infallible;
use std::io::{self, Write};

/// Of a character; all text has one size.
const CHARACTER: (u32, u32) = (7, 13);
/// Red, green and blue of a pixel.
const BYTES: usize = 3;

/// Room for a picture.
pub fn pixels((width, height): (u32, u32)) -> Vec<u8> {
    vec![0; width as usize * height as usize * BYTES]
}

/// Draws on pixels.
pub struct Raster<'a> {
    pixels: &'a mut [u8],
    size: (u32, u32),
}

impl<'a> Raster<'a> {
    /// Those of [`pixels`].
    pub fn new(pixels: &'a mut [u8], size: (u32, u32)) -> Self {
        Self { pixels, size }
    }
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

impl DrawingBackend for Raster<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, colour: BackendColor) -> Drawn {
        let (width, height) = self.size;
        let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else {
            return Ok(());
        };
        if x < width && y < height {
            let at = (y as usize * width as usize + x as usize) * BYTES;
            let (red, green, blue) = colour.rgb;
            for (old, new) in self.pixels[at..at + BYTES]
                .iter_mut()
                .zip([red, green, blue])
            {
                let mixed = f64::from(*old) * (1.0 - colour.alpha) + f64::from(new) * colour.alpha;
                *old = mixed.round() as u8;
            }
        }
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        _: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        let (width, height) = CHARACTER;
        Ok((width * text.chars().count() as u32, height))
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        pos: BackendCoord,
    ) -> Drawn {
        let (width, height) = self.estimate_text_size(text, style)?;
        let (width, height) = (width as i32, height as i32);
        let left = match style.anchor().h_pos {
            HPos::Left => 0,
            HPos::Right => -width,
            HPos::Center => -width / 2,
        };
        let top = match style.anchor().v_pos {
            VPos::Top => 0,
            VPos::Center => -height / 2,
            VPos::Bottom => -height,
        };
        let mut ink = Ink::default();
        let font = MonoTextStyle::new(&FONT_7X13, BinaryColor::On);
        let at = Point::new(left, top);
        let Ok(_) = Text::with_baseline(text, at, font, Baseline::Top).draw(&mut ink);
        for point in ink.0 {
            let (x, y) = style.transform().transform(point.x, point.y);
            self.draw_pixel((pos.0 + x, pos.1 + y), style.color())?;
        }
        Ok(())
    }
}

/// Where text has ink.
#[derive(Default)]
struct Ink(Vec<Point>);

impl Dimensions for Ink {
    fn bounding_box(&self) -> Rectangle {
        Rectangle::with_corners(
            Point::new_equal(i32::MIN / 4),
            Point::new_equal(i32::MAX / 4),
        )
    }
}

impl DrawTarget for Ink {
    type Color = BinaryColor;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<BinaryColor>>>(
        &mut self,
        pixels: I,
    ) -> Result<(), Infallible> {
        let set = pixels.into_iter().filter(|pixel| pixel.1.is_on());
        self.0.extend(set.map(|pixel| pixel.0));
        Ok(())
    }
}

/// The file.
pub fn png(pixels: &[u8], (width, height): (u32, u32)) -> io::Result<Vec<u8>> {
    /// Eight bits of each of red, green and blue; nothing else is special.
    const KIND: [u8; 5] = [8, 2, 0, 0, 0];
    let mut rows = ZlibEncoder::new(Vec::new(), Compression::default());
    for row in pixels.chunks_exact(width as usize * BYTES) {
        // No filter.
        rows.write_all(&[0])?;
        rows.write_all(row)?;
    }
    let head = [&width.to_be_bytes()[..], &height.to_be_bytes(), &KIND].concat();
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    for (name, content) in [
        (b"IHDR", &head[..]),
        (b"IDAT", &rows.finish()?),
        (b"IEND", &[]),
    ] {
        file.extend((content.len() as u32).to_be_bytes());
        let begin = file.len();
        file.extend(name);
        file.extend(content);
        let sum = crc32fast::hash(&file[begin..]);
        file.extend(sum.to_be_bytes());
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::ZlibDecoder;
    use plotters::prelude::{FontTransform, IntoDrawingArea, IntoFont, Text, RED, WHITE};
    use std::io::Read;

    #[test]
    fn text_has_ink_where_it_stands_turned_and_not_elsewhere() {
        const SIZE: (u32, u32) = (60, 60);
        let mut all = pixels(SIZE);
        let area = Raster::new(&mut all, SIZE).into_drawing_area();
        area.fill(&WHITE).unwrap();
        let style = ("sans-serif", 14).into_font().color(&RED);
        area.draw(&Text::new("Hi", (0, 0), style.clone())).unwrap();
        let turned = style.transform(FontTransform::Rotate270);
        area.draw(&Text::new("Hi", (40, 59), turned)).unwrap();
        area.present().unwrap();
        drop(area);
        let ink = |left: u32, top: u32, width: u32, height: u32| {
            let rows = top..top + height;
            let points = rows.flat_map(|y| (left..left + width).map(move |x| y * SIZE.0 + x));
            points
                .filter(|at| all[*at as usize * BYTES + 1] < 255)
                .count()
        };
        let whole = ink(0, 0, 60, 60);
        assert!(whole > 20, "{whole}");
        assert_eq!(ink(0, 0, 14, 13), whole / 2);
        assert_eq!(ink(40, 45, 13, 15), whole / 2);
    }

    #[test]
    fn a_file_has_its_size_and_its_pixels() {
        let file = png(&[1, 2, 3, 4, 5, 6], (1, 2)).unwrap();
        assert_eq!(&file[12..24], b"IHDR\0\0\0\x01\0\0\0\x02");
        let at = file.windows(4).position(|four| four == b"IDAT").unwrap();
        let mut rows = Vec::new();
        ZlibDecoder::new(&file[at + 4..])
            .read_to_end(&mut rows)
            .unwrap();
        assert_eq!(rows, [0, 1, 2, 3, 0, 4, 5, 6]);
    }
}
