// SPDX-License-Identifier: GPL-2.0-only
//! Draws what a workload measures at several points, as `critical` does for
//! critical sections of several lengths: its metrics are called METRIC_NUMBERUNIT,
//! throughput_500us for one, and become one curve for each scheduler over the
//! number. Both axes are logarithmic.

use std::ops::Range;

use plotters::prelude::*;

use super::results::{Record, Row};
use freqlock::estimate::Estimate;

const SIZE: (u32, u32) = (900, 560);
const POINT: u32 = 4;

/// The share of an axis that stays free beyond its first and last value.
const SPARE: f64 = 1.25;

#[derive(Debug, thiserror::Error)]
#[error("cannot draw the curves: {0}")]
pub struct Error(String);

#[derive(Debug, PartialEq)]
pub struct Curve {
    pub workload: String,
    /// Its name without the number: throughput.
    pub metric: String,
    unit: String,
    x_unit: String,
    /// By scheduler, each point being a number and what was measured there.
    lines: Vec<(String, Vec<(f64, Estimate)>)>,
}

/// Name, number and unit of the number, if `metric` has them.
fn parts(metric: &str) -> Option<(&str, f64, &str)> {
    let (name, tail) = metric.rsplit_once('_')?;
    let unit = tail.trim_start_matches(|c: char| c.is_ascii_digit());
    let x: f64 = tail[..tail.len() - unit.len()].parse().ok()?;
    let is_word = !unit.is_empty() && unit.chars().all(|c| c.is_ascii_alphabetic());
    (is_word && x > 0.0).then_some((name, x, unit))
}

/// All curves of two points and more. What is 0 has no place on such an axis.
pub fn curves(rows: &[Row]) -> Vec<Curve> {
    let mut all: Vec<Curve> = Vec::new();
    for row in rows.iter().filter(|row| row.value.min > 0.0) {
        let Some((metric, x, x_unit)) = parts(&row.metric) else {
            continue;
        };
        let same = |curve: &Curve| {
            (curve.workload.as_str(), curve.metric.as_str()) == (&row.workload, metric)
                && (curve.unit.as_str(), curve.x_unit.as_str()) == (&row.unit, x_unit)
        };
        let at = all.iter().position(same).unwrap_or_else(|| {
            all.push(Curve {
                workload: row.workload.clone(),
                metric: metric.into(),
                unit: row.unit.clone(),
                x_unit: x_unit.into(),
                lines: Vec::new(),
            });
            all.len() - 1
        });
        let lines = &mut all[at].lines;
        match lines.iter_mut().find(|(name, _)| *name == row.scheduler) {
            Some((_, points)) => points.push((x, row.value)),
            None => lines.push((row.scheduler.clone(), vec![(x, row.value)])),
        }
    }
    for curve in &mut all {
        for (_, points) in &mut curve.lines {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
    }
    all.retain(|curve| curve.lines.iter().any(|(_, points)| points.len() > 1));
    all
}

impl Curve {
    /// The picture as SVG: medians, and intervals or ranges as bars.
    pub fn svg(&self, record: &Record) -> Result<String, Error> {
        let mut out = String::new();
        self.draw(&mut out, record)
            .map_err(|error| Error(error.to_string()))?;
        Ok(out)
    }

    fn draw(&self, out: &mut String, record: &Record) -> Result<(), Box<dyn std::error::Error>> {
        let points = || self.lines.iter().flat_map(|(_, points)| points);
        let x = axis(points().map(|(x, _)| *x));
        let y = axis(points().flat_map(|(_, value)| <[f64; 2]>::from(value.bounds())));
        let area = SVGBackend::with_string(out, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        // Its first sentence; the others are said where the table is.
        let machine = record.machine.to_string();
        let machine = machine.split(". ").next().unwrap_or_default();
        let title = format!("{}, {}. {machine}", self.workload, self.metric);
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 15))
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(80)
            .build_cartesian_2d(x.log_scale(), y.log_scale())?;
        chart
            .configure_mesh()
            .x_desc(&self.x_unit)
            .y_desc(&self.unit)
            .light_line_style(WHITE)
            .draw()?;
        for (i, (scheduler, points)) in self.lines.iter().enumerate() {
            let colour = Palette99::pick(i).to_rgba();
            chart
                .draw_series(LineSeries::new(
                    points.iter().map(|(x, value)| (*x, value.median)),
                    colour.stroke_width(2),
                ))?
                .label(scheduler)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour));
            chart.draw_series(points.iter().map(|(x, value)| {
                let (low, high) = value.bounds();
                ErrorBar::new_vertical(*x, low, value.median, high, colour.filled(), POINT)
            }))?;
        }
        chart
            .configure_series_labels()
            .border_style(BLACK)
            .background_style(WHITE)
            .draw()?;
        area.present()?;
        Ok(())
    }
}

/// From below the least of `values` to above the most.
fn axis(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (least, most) = values.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
        (least.min(value), most.max(value))
    });
    least / SPARE..most * SPARE
}

#[cfg(test)]
mod tests {
    use super::super::runs::{Outcome, Run};
    use super::super::tests::{record, run};
    use super::*;
    use crate::figures::{Better, Metric};

    /// A round in which `scheduler` has these metrics.
    fn round(scheduler: &str, round: u32, metrics: &[(&str, f64)]) -> Run {
        let metric = |(name, value): &(&str, f64)| Metric {
            name: name.to_string(),
            value: *value,
            unit: "1/s".into(),
            better: Better::Higher,
        };
        Run {
            outcome: Outcome::Metrics(metrics.iter().map(metric).collect()),
            ..run("forkwait", scheduler, round, None)
        }
    }

    fn sample() -> Record {
        let of = |name: &str, factor: f64| {
            [1.0, 3.0].map(|value| {
                let rates = [
                    ("rate_500us", value * factor),
                    ("rate_5us", 100.0 * value * factor),
                    ("rate_50us", 10.0 * value * factor),
                    ("other", 7.0),
                    ("single_5us", 7.0),
                    ("nothing_5us", 0.0),
                    ("nothing_50us", 0.0),
                ];
                round(name, value as u32, &rates)
            })
        };
        record(
            &["eevdf", "auto"],
            [of("eevdf", 1.0), of("auto", 2.0)].concat(),
        )
    }

    #[test]
    fn names_with_a_number_and_a_unit_are_points() {
        assert_eq!(
            parts("wait_longest_500us"),
            Some(("wait_longest", 500.0, "us"))
        );
        for other in [
            "throughput",
            "p99.9",
            "a_us",
            "a_5",
            "a_0us",
            "free_p99",
            "x_5u-s",
        ] {
            assert_eq!(parts(other), None, "{other}");
        }
    }

    #[test]
    fn points_of_one_metric_are_one_curve_by_their_numbers() {
        let curves = curves(&sample().summary);
        assert_eq!(curves.len(), 1, "{curves:?}");
        let curve = &curves[0];
        assert_eq!(
            (curve.metric.as_str(), curve.x_unit.as_str()),
            ("rate", "us")
        );
        let medians = |line: usize| -> Vec<(f64, f64)> {
            let points = &curve.lines[line].1;
            points.iter().map(|(x, value)| (*x, value.median)).collect()
        };
        assert_eq!(curve.lines[0].0, "eevdf");
        assert_eq!(medians(0), [(5.0, 200.0), (50.0, 20.0), (500.0, 2.0)]);
        assert_eq!(medians(1), [(5.0, 400.0), (50.0, 40.0), (500.0, 4.0)]);
    }

    #[test]
    fn the_picture_says_what_is_drawn() {
        let record = sample();
        let picture = curves(&record.summary)[0].svg(&record).unwrap();
        assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
        for word in ["forkwait, rate. ", "eevdf", "auto", "1/s", "us", "7.2.0"] {
            assert!(picture.contains(word), "{word}");
        }
        let lines = picture.matches(r#"stroke-width="2" points="#).count();
        assert_eq!(lines, 2, "one for each scheduler");
    }

    #[test]
    fn axes_hold_every_value() {
        assert_eq!(axis([4.0, 1.0, 2.0].into_iter()), 0.8..5.0);
    }
}
