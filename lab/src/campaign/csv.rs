// SPDX-License-Identifier: GPL-2.0-only
//! The rows of a campaign as CSV (RFC 4180), one line each.

use std::fmt::Write;

use super::rows::{Line, Table};
use crate::figures::Better;
use freqlock::estimate::{Estimate, Verdict};

const HEADER: [&str; 19] = [
    "machine",
    "workload",
    "metric",
    "unit",
    "better",
    "scheduler",
    "runs",
    "median",
    "low",
    "high",
    "ratio",
    "ratio_low",
    "ratio_high",
    "p",
    "q",
    "verdict",
    "best",
    "why",
    // Of scx_freqlock, which made the runs: tables of several are put together.
    "version",
];

pub fn text(table: &Table) -> String {
    let mut out = HEADER.join(",") + "\n";
    for line in &table.lines {
        let cells: Vec<String> = cells(table, line).iter().map(|cell| quoted(cell)).collect();
        // Writing to a string cannot fail.
        writeln!(out, "{}", cells.join(",")).ok();
    }
    out
}

fn cells(table: &Table, line: &Line) -> [String; 19] {
    let row = &line.row;
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let bounds = |estimate: Option<Estimate>| {
        let (low, high) = estimate.and_then(|estimate| estimate.interval).unzip();
        [number(low), number(high)]
    };
    let [low, high] = bounds(Some(row.value));
    let [ratio_low, ratio_high] = bounds(row.ratio);
    let better = match row.better {
        Better::Lower => "lower",
        Better::Higher => "higher",
    };
    [
        line.machine.clone(),
        row.workload.clone(),
        row.metric.clone(),
        row.unit.clone(),
        better.into(),
        row.name(),
        row.value.runs.to_string(),
        row.value.median.to_string(),
        low,
        high,
        number(row.ratio.map(|ratio| ratio.median)),
        ratio_low,
        ratio_high,
        number(row.p),
        number(line.q),
        line.corrected.map_or("", Verdict::name).into(),
        line.best
            .as_ref()
            .map_or_else(|| row.name(), |(name, _)| name.clone()),
        line.why.clone().unwrap_or_default(),
        table.version.clone(),
    ]
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_cell_is_quoted() {
        assert_eq!(quoted("off:--slice-us=2"), "off:--slice-us=2");
        assert_eq!(
            quoted("off '--cpus=1,2' \"x\""),
            "\"off '--cpus=1,2' \"\"x\"\"\""
        );
    }
}
