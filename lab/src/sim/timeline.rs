// SPDX-License-Identifier: GPL-2.0-only
//! Draws how the frequency of every CPU went while a command ran: time to the
//! right, a lane to each CPU, the frequency as height and as colour.

use plotters::prelude::*;

use super::description::{Description, FULL};
use super::flat::places;
use super::record::Record;

const WIDTH: u32 = 1200;
const LANE: u32 = 44;
const HEADER: u32 = 40;
const FOOTER: u32 = 50;

/// Finer than this is not seen.
const COLUMNS: usize = 1000;

#[derive(Debug, thiserror::Error)]
#[error("cannot draw the timeline: {0}")]
pub struct Error(String);

/// The mean speed in each of `columns` equal parts of the command's time.
fn lanes(record: &Record, cpus: usize, columns: usize) -> Vec<Vec<f64>> {
    let (begin, length) = (record.begin_ns, record.command_ns().max(1));
    // Where each CPU is, and since when; 0 until its first line.
    let mut now = vec![(begin, 0.0); cpus];
    let mut sums = vec![vec![0.0; columns]; cpus];
    let mut add = |cpu: usize, from: u64, to: u64, speed: f64| {
        let column = |ns: u64| (ns - begin) as f64 * columns as f64 / length as f64;
        let (from, to) = (column(from), column(to));
        let first = from as usize;
        for (at, sum) in sums[cpu].iter_mut().enumerate().skip(first) {
            let part = to.min(at as f64 + 1.0) - from.max(at as f64);
            if part <= 0.0 {
                break;
            }
            *sum += speed * part;
        }
    };
    for change in &record.changes {
        let cpu = change.cpu as usize;
        let Some((since, speed)) = now.get_mut(cpu) else {
            continue;
        };
        let ns = change.ns.clamp(begin, record.end_ns);
        add(cpu, *since, ns, *speed);
        (*since, *speed) = (ns, f64::from(change.speed));
    }
    for (cpu, (since, speed)) in now.into_iter().enumerate() {
        add(cpu, since, record.end_ns, speed);
    }
    sums
}

/// From blue, the slowest, to red.
fn colour(speed: f64, floor: f64) -> RGBColor {
    let warm = ((speed - floor) / (f64::from(FULL) - floor).max(1.0)).clamp(0.0, 1.0);
    let mix = |cold: f64, hot: f64| (cold + (hot - cold) * warm).round() as u8;
    RGBColor(mix(70.0, 210.0), mix(130.0, 40.0), mix(200.0, 30.0))
}

/// The picture as SVG.
pub fn svg(machine: &Description, record: &Record, title: &str) -> Result<String, Error> {
    let mut out = String::new();
    draw(&mut out, machine, record, title).map_err(|error| Error(error.to_string()))?;
    Ok(out)
}

fn draw(
    out: &mut String,
    machine: &Description,
    record: &Record,
    title: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    let places = places(machine);
    let lanes = lanes(record, places.len(), COLUMNS);
    let height = HEADER + LANE * places.len() as u32 + FOOTER;
    let area = SVGBackend::with_string(out, (WIDTH, height)).into_drawing_area();
    area.fill(&WHITE)?;
    let length_ms = record.command_ns().max(1) as f64 / 1e6;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 18))
        .margin(8)
        .x_label_area_size(36)
        .y_label_area_size(110)
        .build_cartesian_2d(0.0..length_ms, 0.0..places.len() as f64)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_desc("time of the simulated machine, ms")
        .light_line_style(WHITE)
        .draw()?;
    for (cpu, (lane, place)) in lanes.iter().zip(&places).enumerate() {
        let cluster = &machine.clusters[place.cluster];
        let floor = f64::from(cluster.opps.first().map_or(FULL, |o| cluster.speed(o.mhz)));
        let base = (places.len() - 1 - cpu) as f64;
        let step = length_ms / COLUMNS as f64;
        // Columns of one height are drawn as one.
        let mut from = 0;
        while from < COLUMNS {
            let same = lane[from..]
                .iter()
                .take_while(|speed| (**speed - lane[from]).abs() < 0.5)
                .count();
            let top = base + 0.9 * lane[from] / f64::from(FULL);
            let corners = [
                (from as f64 * step, base),
                ((from + same) as f64 * step, top),
            ];
            let style = colour(lane[from], floor).filled();
            chart.draw_series([Rectangle::new(corners, style)])?;
            from += same;
        }
        let (_, y) = chart.backend_coord(&(0.0, base + 0.5));
        let label = format!("{cpu}: {} MHz", cluster.top_mhz());
        area.draw(&Text::new(label, (14, y - 7), ("sans-serif", 14)))?;
    }
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::description::tests::small;
    use super::super::record::tests::sample;
    use super::*;

    #[test]
    fn lanes_are_mean_speeds_of_the_commands_time() {
        // The command ran from 1 to 5 ms; CPU 1 went from 256 to 1024 at 2 ms.
        let lanes = lanes(&sample(), 2, 8);
        assert_eq!(lanes[0], [256.0; 8]);
        assert_eq!(lanes[1][..2], [256.0; 2]);
        assert_eq!(lanes[1][2..], [1024.0; 6]);
        let coarse = super::lanes(&sample(), 2, 2);
        assert_eq!(coarse[1], [640.0, 1024.0]);
    }

    #[test]
    fn lines_for_other_cpus_and_empty_runs_do_no_harm() {
        let mut record = sample();
        record.end_ns = record.begin_ns;
        assert_eq!(lanes(&record, 1, 4)[0], [0.0; 4]);
    }

    #[test]
    fn colours_run_from_cold_to_hot() {
        assert_eq!(colour(256.0, 256.0), RGBColor(70, 130, 200));
        assert_eq!(colour(1024.0, 256.0), RGBColor(210, 40, 30));
        assert_eq!(colour(1024.0, 1024.0), RGBColor(70, 130, 200));
    }

    #[test]
    fn a_picture_has_a_lane_to_each_cpu() {
        let picture = svg(&small(), &sample(), "small: sleep <1>").unwrap();
        assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
        for part in ["small: sleep &lt;1&gt;", "0: 2000 MHz", "3: 2000 MHz", "ms"] {
            assert!(picture.contains(part), "{part}");
        }
        assert_eq!(
            picture,
            svg(&small(), &sample(), "small: sleep <1>").unwrap()
        );
    }
}
