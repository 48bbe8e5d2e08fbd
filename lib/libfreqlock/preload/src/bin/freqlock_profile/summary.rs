// SPDX-License-Identifier: MIT
//! What the runs come to: medians for the table and the picture, and a line for each run for CSV.

use crate::program::{Program, Sample, Setting};
use crate::range::time;
use anyhow::bail;
use comfy_table::{presets, CellAlignment, Table};
use libfreqlock::latencies::{Cpus, Figures, Kind};
use std::fmt::{self, Write};

/// Of whom there are latencies, as columns name them.
pub const CPUS: [(&str, Cpus); 3] = [
    ("all", Cpus::All),
    ("big", Cpus::Big),
    ("little", Cpus::Little),
];

/// What throughput is, and in which unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Of {
    pub latency: Kind,
    pub throughput: &'static str,
}

/// Of some runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub least: f64,
    pub median: f64,
    pub most: f64,
}

pub struct Row {
    pub setting: Setting,
    pub throughput: Spread,
    /// As CPUS, in ns; none where nothing was measured.
    pub p99: [Option<Spread>; 3],
}

pub struct Summary {
    pub program: String,
    pub of: Of,
    pub rows: Vec<Row>,
}

impl Summary {
    pub fn new(
        settings: &[Setting],
        samples: &[Sample],
        program: &Program,
    ) -> anyhow::Result<Summary> {
        let of = measured(samples, program)?;
        let rows = settings.iter().map(|&setting| {
            let of_it = || samples.iter().filter(|sample| sample.setting == setting);
            Row {
                setting,
                throughput: spread(of_it().map(|sample| throughput(sample, of)).collect())
                    .unwrap_or(Spread {
                        least: 0.0,
                        median: 0.0,
                        most: 0.0,
                    }),
                p99: CPUS.map(|(_, cpus)| {
                    let p99 = |sample| figures(sample, of).p99(cpus).map(|ns| ns as f64);
                    spread(of_it().filter_map(p99).collect())
                }),
            }
        });
        Ok(Summary {
            program: program.name(),
            of,
            rows: rows.collect(),
        })
    }
}

/// Epochs, if the program has any; else waits. An error, if it has neither in any run with a bound to keep.
fn measured(samples: &[Sample], program: &Program) -> anyhow::Result<Of> {
    let have = |figures: fn(&Sample) -> &Figures| {
        let mut ours = (samples.iter()).filter(|sample| sample.setting != Setting::Pthread);
        ours.any(|sample| figures(sample).count(Cpus::All) > 0)
    };
    let is_printed = samples.iter().all(|sample| sample.printed.is_some());
    let (latency, throughput) = if have(|sample| &sample.epochs) {
        (Kind::Epoch, "epochs/s")
    } else if let Some(id) = program.epoch {
        bail!("{} ended no epoch {id}", program.name());
    } else if have(|sample| &sample.waits) {
        (Kind::Wait, "runs/s")
    } else {
        bail!(
            "{} ended no epoch and waited for no lock: there is no latency to be bounded",
            program.name()
        );
    };
    let throughput = if is_printed { "as printed" } else { throughput };
    Ok(Of {
        latency,
        throughput,
    })
}

fn figures(sample: &Sample, of: Of) -> &Figures {
    match of.latency {
        Kind::Epoch => &sample.epochs,
        Kind::Wait => &sample.waits,
    }
}

fn throughput(sample: &Sample, of: Of) -> f64 {
    match (sample.printed, of.latency) {
        (Some(printed), _) => printed,
        (None, Kind::Epoch) => sample.epochs.per_second(),
        (None, Kind::Wait) => 1.0 / sample.seconds,
    }
}

fn spread(mut values: Vec<f64>) -> Option<Spread> {
    values.sort_by(f64::total_cmp);
    let (least, most) = (*values.first()?, *values.last()?);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    Some(Spread {
        least,
        median: (low + high) / 2.0,
        most,
    })
}

/// A line for each run. Where there is no bound, or nothing was measured, a field is empty.
pub fn csv(samples: &[Sample], of: Of) -> String {
    let latency = match of.latency {
        Kind::Epoch => "epoch",
        Kind::Wait => "wait",
    };
    let mut text = "run,lock,slo_ns,seconds,throughput,unit,latency,count".to_owned();
    for (name, _) in CPUS {
        let _ = write!(text, ",p99_{name}_ns");
    }
    text.push('\n');
    for sample in samples {
        let slo = match sample.setting {
            Setting::Slo(ns) => ns.to_string(),
            Setting::Pthread | Setting::NoBound => String::new(),
        };
        let figures = figures(sample, of);
        let _ = write!(
            text,
            "{},{},{slo},{:.6},{:.6},{},{latency},{}",
            sample.run,
            sample.setting.lock(),
            sample.seconds,
            throughput(sample, of),
            of.throughput,
            figures.count(Cpus::All),
        );
        for (_, cpus) in CPUS {
            let p99 = figures.p99(cpus).map_or(String::new(), |ns| ns.to_string());
            let _ = write!(text, ",{p99}");
        }
        text.push('\n');
    }
    text
}

/// With four digits.
fn number(value: f64) -> String {
    let digits = (3.0 - value.abs().max(1e-9).log10().floor()).clamp(0.0, 9.0);
    format!("{value:.*}", digits as usize)
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.of.latency {
            Kind::Epoch => "epochs",
            Kind::Wait => "waits",
        };
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        let mut header = vec![
            "lock".to_owned(),
            "bound".into(),
            format!("throughput ({})", self.of.throughput),
            "to pthread".into(),
        ];
        header.extend(CPUS.map(|(name, _)| format!("p99 of {what}, {name}")));
        table.set_header(header);
        let control = self.rows.iter().find(|row| row.setting == Setting::Pthread);
        for row in &self.rows {
            let bound = match row.setting {
                Setting::Slo(ns) => time(ns),
                Setting::Pthread | Setting::NoBound => "none".into(),
            };
            let ratio = control.map(|control| row.throughput.median / control.throughput.median);
            let ratio = ratio.filter(|ratio| ratio.is_finite());
            let mut cells = vec![
                row.setting.lock().to_owned(),
                bound,
                number(row.throughput.median),
                ratio.map_or("-".into(), |ratio| format!("{ratio:.3}")),
            ];
            cells.extend(
                row.p99
                    .map(|p99| p99.map_or("-".into(), |p99| time(p99.median as u64))),
            );
            table.add_row(cells);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        write!(f, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{program, sample};

    #[test]
    fn epochs_count_where_there_are_any_then_waits() {
        let of = |epochs, waits, epoch| {
            // The control may have no latency, nor each run.
            let samples = [
                sample(Setting::Pthread, 1, 0, 0),
                sample(Setting::Slo(5), 1, epochs, waits),
                sample(Setting::NoBound, 1, 0, 0),
            ];
            measured(&samples, &program(epoch)).map_err(|error| error.to_string())
        };
        let found = of(10, 20, None).unwrap();
        assert_eq!((found.latency, found.throughput), (Kind::Epoch, "epochs/s"));
        let found = of(0, 20, None).unwrap();
        assert_eq!((found.latency, found.throughput), (Kind::Wait, "runs/s"));
        assert!(of(0, 20, Some(3)).unwrap_err().contains("no epoch 3"));
        assert!(of(0, 0, None).unwrap_err().contains("no latency"));
        let control = [sample(Setting::Pthread, 1, 10, 20)];
        assert!(measured(&control, &program(None)).is_err());
    }

    #[test]
    fn medians_are_of_the_setting_and_the_table_has_ratios() {
        let with = |setting, run, printed| Sample {
            printed: Some(printed),
            ..sample(setting, run, 10, 0)
        };
        let slo = Setting::Slo(46_400);
        let samples = [
            with(Setting::Pthread, 1, 100.0),
            with(slo, 1, 160.0),
            with(Setting::Pthread, 2, 120.0),
            with(slo, 2, 170.0),
        ];
        let summary = Summary::new(&[Setting::Pthread, slo], &samples, &program(None)).unwrap();
        let expected = Spread {
            least: 160.0,
            median: 165.0,
            most: 170.0,
        };
        assert_eq!(summary.rows[1].throughput, expected);
        let table = summary.to_string();
        let lines: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[1][..4], ["pthread", "none", "110.0", "1.000"]);
        assert_eq!(lines[2][..4], ["freqlock", "46.4us", "165.0", "1.500"]);
        let csv = csv(&samples, summary.of);
        assert_eq!(csv.lines().count(), 5);
        assert!(
            csv.contains("\n2,freqlock,46400,2.000000,170.000000,as printed,epoch,10,"),
            "{csv}"
        );
        assert!(csv.contains("\n1,pthread,,2.000000,100.000000,"), "{csv}");
    }

    #[test]
    fn numbers_have_four_digits() {
        for (value, text) in [
            (0.0, "0.000000000"),
            (0.012345, "0.01235"),
            (9.87654, "9.877"),
            (1234567.8, "1234568"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
