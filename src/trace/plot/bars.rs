// SPDX-License-Identifier: GPL-2.0-only
//! The ratios of a comparison (`scx_freqlock compare --json`), as bars from 1, which is the
//! baseline.

use super::picture::{Area, Drawing, Error, Outcome, Picture};
use crate::foreign::Foreign;
use plotters::prelude::*;
use serde::Deserialize;

/// Of the files that this program reads.
const FORMAT: u32 = 1;
/// More would not be looked at.
const MOST: usize = 200;
const WIDTH: u32 = 1000;
/// Names of bars.
const NAMES: u32 = 420;
const BAR: u32 = 24;
/// Title and axis.
const AROUND: u32 = 90;

#[derive(Deserialize)]
struct Comparison {
    format: u32,
    baseline: Foreign,
    summary: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    workload: Foreign,
    metric: Foreign,
    better: Foreign,
    scheduler: Foreign,
    ratio: Option<Ratio>,
}

#[derive(Deserialize)]
struct Ratio {
    median: f64,
    interval: Option<(f64, f64)>,
    min: f64,
    max: f64,
}

/// A bar: what it is of, and from where to where its end may be.
struct Bar {
    name: String,
    median: f64,
    bounds: (f64, f64),
    is_better: bool,
}

struct Bars {
    bars: Vec<Bar>,
    title: String,
}

/// The picture of a comparison, by its JSON; none if nothing stands beside the baseline.
pub fn picture(json: &str) -> Result<Option<Picture>, Error> {
    let wrong = |why: String| Error(format!("it is no file of compare --json: {why}"));
    let all: Comparison = serde_json::from_str(json).map_err(|why| wrong(why.to_string()))?;
    if all.format != FORMAT {
        return Err(wrong(format!("its format is {}, not {FORMAT}", all.format)));
    }
    let bars = all.summary.iter().filter_map(|row| {
        let ratio = row.ratio.as_ref()?;
        let bounds = ratio.interval.unwrap_or((ratio.min, ratio.max));
        let is_drawn = [ratio.median, bounds.0, bounds.1]
            .iter()
            .all(|value| value.is_finite() && *value >= 0.0);
        let is_less = row.better.raw() == "lower";
        is_drawn.then(|| Bar {
            name: format!("{} {}, {}", row.workload, row.metric, row.scheduler),
            median: ratio.median,
            bounds,
            is_better: (ratio.median < 1.0) == is_less,
        })
    });
    Picture::of(
        "bars",
        &Bars {
            bars: bars.take(MOST).collect(),
            title: format!(
                "ratio to {}, green where better; lines: 95% interval, or the range of few runs",
                all.baseline
            ),
        },
    )
}

impl Drawing for Bars {
    fn size(&self) -> Option<(u32, u32)> {
        let count = self.bars.len() as u32;
        (count > 0).then_some((WIDTH, AROUND + BAR * count))
    }

    fn draw<B: DrawingBackend>(&self, area: &Area<B>) -> Outcome
    where
        B::ErrorType: 'static,
    {
        let ends = || {
            self.bars
                .iter()
                .flat_map(|bar| [bar.bounds.0, bar.bounds.1])
        };
        let least = ends().fold(1.0, f64::min);
        let most = ends().fold(1.0, f64::max);
        let spare = (most - least).max(0.01) * 0.05;
        let count = self.bars.len();
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 16))
            .margin(10)
            .x_label_area_size(36)
            .y_label_area_size(NAMES)
            .build_cartesian_2d(least - spare..most + spare, 0.0..count as f64)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .light_line_style(WHITE)
            .draw()?;
        for (at, bar) in self.bars.iter().enumerate() {
            let base = (count - 1 - at) as f64;
            let colour = match bar.is_better {
                true => RGBColor(40, 140, 70),
                false => RGBColor(200, 70, 50),
            };
            let corners = [(1.0, base + 0.2), (bar.median, base + 0.8)];
            let middle = base + 0.5;
            let line = [(bar.bounds.0, middle), (bar.bounds.1, middle)];
            chart.draw_series([Rectangle::new(corners, colour.filled())])?;
            chart.draw_series([PathElement::new(line, BLACK)])?;
            let (_, y) = chart.backend_coord(&(1.0, middle));
            let text = format!("{}: {:.3}", bar.name, bar.median);
            area.draw(&Text::new(text, (14, y - 7), ("sans-serif", 14)))?;
        }
        let one = [(1.0, 0.0), (1.0, count as f64)];
        chart.draw_series([PathElement::new(one, BLACK)])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::tests::HOSTILE;

    fn comparison(format: u32) -> String {
        let row = |scheduler: &str, ratio: serde_json::Value| {
            serde_json::json!({"workload": HOSTILE, "metric": "elapsed_s", "better": "lower",
                "scheduler": scheduler, "ratio": ratio})
        };
        let ratio = serde_json::json!({"median": 0.9, "interval": null, "min": 0.8, "max": 1.1});
        let summary = [row("eevdf", serde_json::Value::Null), row("auto", ratio)];
        serde_json::json!({"format": format, "baseline": "eevdf", "summary": summary}).to_string()
    }

    #[test]
    fn a_bar_stands_for_each_ratio_and_names_are_text() {
        let picture = picture(&comparison(FORMAT)).unwrap().unwrap();
        assert!(
            picture.svg.contains("elapsed_s, auto: 0.900"),
            "{}",
            picture.svg
        );
        assert!(!picture.svg.contains("elapsed_s, eevdf"));
        assert!(!picture.svg.contains("<script") && !picture.svg.contains("<img"));
    }

    #[test]
    fn what_is_no_comparison_is_refused() {
        for bad in ["", "{}", "[]", &comparison(FORMAT + 1)] {
            let refused = picture(bad).unwrap_err().to_string();
            assert!(refused.contains("no file of compare --json"), "{refused}");
        }
        let empty = r#"{"format": 1, "baseline": "eevdf", "summary": []}"#;
        assert!(picture(empty).unwrap().is_none());
    }
}
