// SPDX-License-Identifier: MIT
//! The picture: throughput and latency over the bound, and the line on which a latency is the bound.

use crate::program::Setting;
use crate::range::time;
use crate::summary::{Row, Spread, Summary, CPUS};
use anyhow::anyhow;
use libfreqlock::latencies::Kind;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use std::ops::Range;

const SIZE: (u32, u32) = (900, 560);
const POINT: u32 = 4;

/// The share of an axis that stays free beyond its first and last value.
const SPARE: f64 = 1.25;

/// As CPUS.
const COLOURS: [RGBColor; 3] = [BLACK, RED, GREEN];

pub fn svg(summary: &Summary) -> anyhow::Result<String> {
    let mut out = String::new();
    draw(&mut out, summary).map_err(|error| anyhow!("cannot draw the picture: {error}"))?;
    Ok(out)
}

/// The bound of a row, in ns.
fn bound(row: &Row) -> Option<f64> {
    match row.setting {
        Setting::Slo(ns) => Some(ns as f64),
        Setting::Pthread | Setting::NoBound => None,
    }
}

/// What has no bound is the same everywhere; its dash and gap, in pixels.
fn dash(setting: Setting) -> (i32, i32) {
    if setting == Setting::Pthread {
        (2, 4)
    } else {
        (8, 4)
    }
}

fn draw(out: &mut String, summary: &Summary) -> Result<(), Box<dyn std::error::Error>> {
    let rows = &summary.rows;
    let x = axis(rows.iter().filter_map(bound));
    let most = rows
        .iter()
        .map(|row| row.throughput.most)
        .fold(0.0, f64::max);
    let latencies = rows.iter().flat_map(|row| row.p99.iter().flatten());
    let ends = latencies.flat_map(|p99| [p99.least, p99.most]);
    let latency = axis(
        ends.chain(rows.iter().filter_map(bound))
            .filter(|ns| *ns > 0.0),
    );
    let (first, last) = (x.start, x.end);

    let area = SVGBackend::with_string(out, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(&summary.program, ("sans-serif", 15))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(80)
        .right_y_label_area_size(80)
        .build_cartesian_2d(x.clone().log_scale(), 0.0..most * SPARE)?
        .set_secondary_coord(x.log_scale(), latency.log_scale());
    let of = match summary.of.latency {
        Kind::Epoch => "epochs",
        Kind::Wait => "waits for locks",
    };
    let ns = |ns: &f64| time(*ns as u64);
    chart
        .configure_mesh()
        .x_desc("bound (SLO)")
        .y_desc(format!("throughput ({})", summary.of.throughput))
        .x_label_formatter(&ns)
        .light_line_style(WHITE)
        .draw()?;
    chart
        .configure_secondary_axes()
        .y_desc(format!("p99 of {of}"))
        .y_label_formatter(&ns)
        .draw()?;

    let throughput: Vec<(f64, Spread)> = points(rows, |row| Some(row.throughput));
    chart
        .draw_series(LineSeries::new(
            throughput.iter().map(|(x, y)| (*x, y.median)),
            BLUE.stroke_width(3),
        ))?
        .label("throughput")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], BLUE.stroke_width(3)));
    chart.draw_series(throughput.iter().map(|(x, y)| {
        ErrorBar::new_vertical(*x, y.least, y.median, y.most, BLUE.filled(), POINT)
    }))?;
    for row in rows.iter().filter(|row| bound(row).is_none()) {
        let y = row.throughput.median;
        let (size, spacing) = dash(row.setting);
        chart
            .draw_series(DashedLineSeries::new(
                [(first, y), (last, y)],
                size,
                spacing,
                BLUE.stroke_width(2),
            ))?
            .label(format!("throughput, {}", row.setting))
            .legend(move |(x, y)| {
                DashedPathElement::new([(x, y), (x + 16, y)], size, spacing, BLUE.stroke_width(2))
            });
    }

    // Where all CPUs are alike, each thread is on a big one.
    let alike = rows.iter().all(|row| row.p99[2].is_none());
    for (i, colour) in COLOURS
        .into_iter()
        .enumerate()
        .filter(|(i, _)| *i == 0 || !alike)
    {
        let p99 = points(rows, |row| row.p99[i].filter(|p99| p99.median > 0.0));
        chart
            .draw_secondary_series(LineSeries::new(
                p99.iter().map(|(x, y)| (*x, y.median)),
                colour.stroke_width(2),
            ))?
            .label(format!("p99, {}", CPUS[i].0))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour));
        chart.draw_secondary_series(p99.iter().map(|(x, y)| {
            ErrorBar::new_vertical(*x, y.least, y.median, y.most, colour.filled(), POINT)
        }))?;
    }
    let control = rows.iter().find(|row| row.setting == Setting::Pthread);
    if let Some(p99) = control
        .and_then(|row| row.p99[0])
        .filter(|p99| p99.median > 0.0)
    {
        let (size, spacing) = dash(Setting::Pthread);
        chart
            .draw_secondary_series(DashedLineSeries::new(
                [(first, p99.median), (last, p99.median)],
                size,
                spacing,
                BLACK.stroke_width(2),
            ))?
            .label(format!("p99, {}", Setting::Pthread))
            .legend(move |(x, y)| {
                DashedPathElement::new([(x, y), (x + 16, y)], size, spacing, BLACK.stroke_width(2))
            });
    }
    let grey = RGBColor(150, 150, 150);
    chart
        .draw_secondary_series(LineSeries::new([(first, first), (last, last)], grey))?
        .label("p99 = bound")
        .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], grey));
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .border_style(BLACK)
        .background_style(WHITE)
        .draw()?;
    area.present()?;
    Ok(())
}

/// Of the rows with a bound.
fn points(rows: &[Row], value: impl Fn(&Row) -> Option<Spread>) -> Vec<(f64, Spread)> {
    let of = rows.iter().filter_map(|row| bound(row).zip(value(row)));
    of.collect()
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
    use super::*;
    use crate::samples::{program, sample};

    #[test]
    fn the_picture_has_each_setting_and_says_what_is_drawn() {
        let settings = [
            Setting::Pthread,
            Setting::Slo(10_000),
            Setting::Slo(1_000_000),
            Setting::NoBound,
        ];
        let samples: Vec<_> = settings
            .iter()
            .map(|&setting| sample(setting, 1, 10, 0))
            .collect();
        let summary = Summary::new(&settings, &samples, &program(None)).unwrap();
        let picture = svg(&summary).unwrap();
        assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
        for words in [
            "program",
            "bound (SLO)",
            "throughput (epochs/s)",
            "p99 of epochs",
            "throughput, pthread",
            "throughput, freqlock without a bound",
            "p99, all",
            "p99, pthread",
            "p99 = bound",
            "100us",
        ] {
            assert!(picture.contains(words), "{words}");
        }
        assert!(!picture.contains("p99, little"), "all CPUs are alike in it");
    }
}
