// SPDX-License-Identifier: GPL-2.0-only
//! Draws, with plotters: CPUs as lanes over time, and distributions as curves.

use super::picture::{Area, Drawing, Outcome};
use super::speeds::{Part, Speeds};
use crate::units;
use hdrhistogram::Histogram;
use plotters::prelude::*;

const WIDTH: u32 = 1200;
const LANE: u32 = 40;
/// Title and axis.
const AROUND: u32 = 100;
const CURVES: (u32, u32) = (900, 560);
/// Points of a curve that lie nearer to each other than this are one.
const NEAR: (f64, f64) = (1.01, 0.1);

/// From blue, the slowest, to red; pale where idle.
fn colour(speed: f64, busy: f64) -> RGBColor {
    let paint = 0.25 + 0.75 * busy.clamp(0.0, 1.0);
    let mix = |slow: f64, fast: f64| {
        let full = slow + (fast - slow) * speed.clamp(0.0, 1.0);
        (255.0 - (255.0 - full) * paint).round() as u8
    };
    RGBColor(mix(40.0, 215.0), mix(90.0, 40.0), mix(200.0, 30.0))
}

/// What of a part is seen, in hundredths: mean speed and busy share; none if it is not known.
fn seen(part: &Part) -> Option<(u32, u32)> {
    let hundredths = |share: f64| (share * 100.0).round() as u32;
    part.speed()
        .map(|speed| (hundredths(speed), hundredths(part.busy())))
}

/// Each CPU as a lane, as high and as red as it was fast; nothing where nothing was recorded.
pub struct Lanes<'a> {
    pub speeds: &'a Speeds,
    pub title: String,
}

impl Drawing for Lanes<'_> {
    fn size(&self) -> Option<(u32, u32)> {
        let count = self.speeds.lanes().len() as u32;
        (count > 0 && self.speeds.length() > 0).then_some((WIDTH, AROUND + LANE * count))
    }

    fn draw<B: DrawingBackend>(&self, area: &Area<B>) -> Outcome
    where
        B::ErrorType: 'static,
    {
        let speeds = self.speeds;
        let lanes = speeds.lanes();
        let (count, length) = (lanes.len(), speeds.length());
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 16))
            .margin(8)
            .x_label_area_size(36)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..length as f64, 0.0..count as f64)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_desc("time")
            .x_label_formatter(&|ns| units::time(*ns as u64))
            .light_line_style(WHITE)
            .draw()?;
        for (at, (id, parts)) in lanes.enumerate() {
            let base = (count - 1 - at) as f64;
            let mut from = 0;
            // Parts that look alike are drawn as one.
            for alike in parts.chunk_by(|a, b| seen(a) == seen(b)) {
                let to = from + alike.len() as u64;
                let (left, right) = (from * speeds.width(), to * speeds.width());
                from = to;
                let Some((speed, busy)) = seen(&alike[0]) else {
                    continue;
                };
                let (speed, busy) = (f64::from(speed) / 100.0, f64::from(busy) / 100.0);
                let corners = [
                    (left as f64, base),
                    (right.min(length) as f64, base + 0.9 * speed),
                ];
                chart.draw_series([Rectangle::new(corners, colour(speed, busy).filled())])?;
            }
            let (_, y) = chart.backend_coord(&(0.0, base + 0.5));
            area.draw(&Text::new(
                format!("CPU {id}"),
                (14, y - 7),
                ("sans-serif", 14),
            ))?;
        }
        Ok(())
    }
}

/// How large a share of waits was over after which time.
pub struct Curve<'a> {
    name: &'a str,
    count: u64,
    /// ns, and per cent.
    points: Vec<(f64, f64)>,
}

impl<'a> Curve<'a> {
    /// Of waits that there are.
    pub fn of(name: &'a str, waits: &Histogram<u64>) -> Self {
        let count = waits.len();
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut sum = 0;
        for step in waits.iter_recorded() {
            sum += step.count_since_last_iteration();
            let ns = step.value_iterated_to().max(1) as f64;
            let point = (ns, 100.0 * sum as f64 / count as f64);
            let is_near = |last: &(f64, f64)| {
                sum < count && ns < last.0 * NEAR.0 && point.1 - last.1 < NEAR.1
            };
            match points.last() {
                Some(last) if is_near(last) => {}
                Some(_) => points.push(point),
                // The first step begins at none.
                None => points.extend([(ns, 0.0), point]),
            }
        }
        Self {
            name,
            count,
            points,
        }
    }
}

/// Curves over time, which is logarithmic.
pub struct Curves<'a> {
    pub curves: Vec<Curve<'a>>,
    pub title: String,
}

impl Drawing for Curves<'_> {
    fn size(&self) -> Option<(u32, u32)> {
        (!self.curves.is_empty()).then_some(CURVES)
    }

    fn draw<B: DrawingBackend>(&self, area: &Area<B>) -> Outcome
    where
        B::ErrorType: 'static,
    {
        const SPARE: f64 = 1.25;
        let times = || self.curves.iter().flat_map(|curve| &curve.points);
        let least = times().map(|(ns, _)| *ns).fold(f64::INFINITY, f64::min);
        let most = times().map(|(ns, _)| *ns).fold(0.0, f64::max);
        // A decade at least: its ends are where the axis has its numbers.
        let x = (least / SPARE..most.max(least * 10.0) * SPARE).log_scale();
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 16))
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(x, 0.0..100.0)?;
        chart
            .configure_mesh()
            .x_desc("over after")
            .x_label_formatter(&|ns| units::time(*ns as u64))
            .y_desc("per cent of all")
            .light_line_style(WHITE)
            .draw()?;
        for (at, curve) in self.curves.iter().enumerate() {
            let colour = Palette99::pick(at).to_rgba();
            chart
                .draw_series(LineSeries::new(
                    curve.points.iter().copied(),
                    colour.stroke_width(2),
                ))?
                .label(format!("{}: {}", curve.name, curve.count))
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .border_style(BLACK)
            .background_style(WHITE)
            .draw()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_has_a_point_where_it_changes_and_few_in_all() {
        let mut waits = Histogram::<u64>::new(3).unwrap();
        for ns in [100, 100, 100, 2000] {
            waits.record(ns).unwrap();
        }
        let curve = Curve::of("", &waits);
        assert_eq!(curve.points, [(100.0, 0.0), (100.0, 75.0), (2000.0, 100.0)]);
        (1..100_000).for_each(|ns| waits.record(ns).unwrap());
        let points = Curve::of("", &waits).points;
        assert!((1000..2000).contains(&points.len()), "{}", points.len());
        // They lie where the waits do: a tenth of them is over after a tenth of the time.
        let tenth = points.iter().find(|(ns, _)| *ns >= 10_000.0).unwrap();
        assert!((tenth.1 - 10.0).abs() < 0.2, "{tenth:?}");
    }

    #[test]
    fn colours_run_from_blue_to_red_and_idle_time_is_pale() {
        assert_eq!(colour(0.0, 1.0), RGBColor(40, 90, 200));
        assert_eq!(colour(1.0, 1.0), RGBColor(215, 40, 30));
        assert_eq!(colour(1.0, 0.0), RGBColor(245, 201, 199));
    }
}
