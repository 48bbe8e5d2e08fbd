// SPDX-License-Identifier: GPL-2.0-only
//! A picture of a machine's rows: how many times as good as the baseline each scheduler is.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::rows::{Line, Place, Table};
use crate::figures::Better;
use freqlock::estimate::Estimate;

const WIDTH: u32 = 960;
/// For each row, and for what is above and below all of them.
const ROW: u32 = 26;
const AROUND: u32 = 90;
const POINT: u32 = 4;

/// The share of the axis that stays free beyond its first and last value.
const SPARE: f64 = 1.1;

#[derive(Debug, thiserror::Error)]
#[error("cannot draw {machine}: {reason}")]
pub struct Error {
    machine: String,
    reason: String,
}

/// The picture as SVG; none if nothing was compared. To the right is better, on a logarithmic
/// axis; bars are 95% intervals, or ranges of too few values.
pub fn svg(table: &Table, place: &Place) -> Result<Option<String>, Error> {
    let lines: Vec<&Line> = (table.lines.iter())
        .filter(|line| line.machine == place.label)
        .filter(|line| line.row.ratio.is_some_and(|ratio| ratio.min > 0.0))
        .collect();
    if lines.is_empty() {
        return Ok(None);
    }
    let mut out = String::new();
    draw(&mut out, table, place, &lines).map_err(|error| Error {
        machine: place.label.clone(),
        reason: error.to_string(),
    })?;
    Ok(Some(out))
}

/// Least, median and most, as how many times as good.
fn as_good(line: &Line, ratio: &Estimate) -> (f64, f64, f64) {
    let (low, high) = ratio.bounds();
    match line.row.better {
        Better::Higher => (low, ratio.median, high),
        Better::Lower => (1.0 / high, 1.0 / ratio.median, 1.0 / low),
    }
}

fn name(line: &Line) -> String {
    format!("{} {}", line.row.workload, line.row.metric)
}

fn draw(
    out: &mut String,
    table: &Table,
    place: &Place,
    lines: &[&Line],
) -> Result<(), Box<dyn std::error::Error>> {
    let mut names: Vec<String> = lines.iter().map(|line| name(line)).collect();
    names.dedup();
    let points = lines
        .iter()
        .filter_map(|line| Some((*line, as_good(line, &line.row.ratio?))));
    let points: Vec<_> = points.collect();
    let (least, most) = points
        .iter()
        .fold((1.0_f64, 1.0_f64), |(least, most), (_, p)| {
            (least.min(p.0), most.max(p.2))
        });
    let size = (WIDTH, AROUND + ROW * names.len() as u32);
    let area: DrawingArea<_, Shift> = SVGBackend::with_string(out, size).into_drawing_area();
    area.fill(&WHITE)?;
    let rows = names.len();
    let mut chart = ChartBuilder::on(&area)
        .caption(
            format!("{}: times as good as {}", place.label, table.baseline),
            ("sans-serif", 15),
        )
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(220)
        .build_cartesian_2d((least / SPARE..most * SPARE).log_scale(), 0.0..rows as f64)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_label_style(("sans-serif", 12))
        .light_line_style(WHITE)
        .draw()?;
    for (row, name) in names.iter().enumerate() {
        let at = chart.backend_coord(&(least / SPARE, rows as f64 - row as f64 - 0.5));
        let style = ("sans-serif", 12).into_text_style(&area);
        let style = style.pos(Pos::new(HPos::Right, VPos::Center));
        area.draw_text(name, &style, (at.0 - 8, at.1))?;
    }
    chart.draw_series(LineSeries::new([(1.0, 0.0), (1.0, rows as f64)], BLACK))?;
    let others: Vec<&String> = place
        .record
        .schedulers
        .iter()
        .filter(|other| **other != table.baseline)
        .collect();
    for (i, scheduler) in others.iter().enumerate() {
        let colour = Palette99::pick(i).to_rgba();
        let shift = (i as f64 + 1.0) / (others.len() as f64 + 1.0);
        let bars = points
            .iter()
            .filter(|(line, _)| line.row.scheduler == **scheduler);
        let bars = bars.filter_map(|(line, (low, median, high))| {
            let row = names.iter().position(|other| *other == name(line))?;
            let y = rows as f64 - row as f64 - shift;
            Some(ErrorBar::new_horizontal(
                y,
                *low,
                *median,
                *high,
                colour.filled(),
                POINT,
            ))
        });
        chart
            .draw_series(bars)?
            .label(scheduler.as_str())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour));
    }
    chart
        .configure_series_labels()
        .border_style(BLACK)
        .background_style(WHITE)
        .draw()?;
    area.present()?;
    Ok(())
}
