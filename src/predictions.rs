// SPDX-License-Identifier: GPL-2.0-only
//! How good the predictions of mode auto are: two histograms of predicted
//! against real time, of waits and of bursts.

use crate::intf;
use scx_stats_derive::{stat_doc, Stats};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Buckets of times: below 1 us, then each twice as wide as the one before.
const SLOTS: usize = intf::fl_consts_FL_HIST_SLOTS as usize;
/// Values in a `struct fl_hist2`.
const CELLS: usize = SLOTS * SLOTS;

/// Both histograms, row by row: the predicted bucket is the row, the real one
/// the column.
#[stat_doc]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stats)]
#[stat(
    desc = "Predicted (row) against real (column) times of mode auto; bucket 0 is below 1 us, bucket n from 2^(n-1) us"
)]
pub struct Predictions {
    #[stat(desc = "Buckets in a row")]
    pub slots: u64,
    #[stat(desc = "From becoming runnable to running")]
    pub wait: Vec<u64>,
    #[stat(desc = "From one sleep to the next")]
    pub burst: Vec<u64>,
}

impl Predictions {
    /// From the values of both entries of the per-CPU map.
    pub fn from_maps(wait: &[Vec<u8>], burst: &[Vec<u8>]) -> Self {
        Self {
            slots: SLOTS as u64,
            wait: sum(wait),
            burst: sum(burst),
        }
    }

    /// Both tables as text, rows and columns by bucket.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (name, cells) in [("wait", &self.wait), ("burst", &self.burst)] {
            describe(&mut out, name, cells, self.slots.max(1) as usize);
        }
        out
    }
}

/// Adds up the values that each CPU has of a `struct fl_hist2`.
fn sum(values: &[Vec<u8>]) -> Vec<u64> {
    let mut cells = vec![0u64; CELLS];
    for value in values {
        let (words, _) = value.as_chunks::<8>();
        for (cell, word) in cells.iter_mut().zip(words) {
            *cell += u64::from_ne_bytes(*word);
        }
    }
    cells
}

/// How many predictions fell into the bucket of the real time, and into that
/// or a neighbour of it.
fn hits(cells: &[u64], slots: usize) -> (u64, u64) {
    let near = |most: usize| {
        cells
            .iter()
            .enumerate()
            .filter(|(i, _)| (i / slots).abs_diff(i % slots) <= most)
            .map(|(_, count)| count)
            .sum()
    };
    (near(0), near(1))
}

fn describe(out: &mut String, name: &str, cells: &[u64], slots: usize) {
    let total: u64 = cells.iter().sum();
    if total == 0 {
        let _ = writeln!(
            out,
            "{name}: nothing was predicted yet (only mode auto predicts)"
        );
        return;
    }
    let (same, near) = hits(cells, slots);
    let percent = |part: u64| 100.0 * part as f64 / total as f64;
    let _ = writeln!(
        out,
        "{name}: {total} predicted; within a factor of two: {:.1}% surely (the same bucket), {:.1}% at most (or the next)",
        percent(same),
        percent(near)
    );
    let used = |row_or_column: fn(usize, usize) -> usize| -> Vec<usize> {
        (0..slots)
            .filter(|&slot| {
                cells
                    .iter()
                    .enumerate()
                    .any(|(i, &count)| count > 0 && row_or_column(i, slots) == slot)
            })
            .collect()
    };
    let rows = used(|i, slots| i / slots);
    let columns = used(|i, slots| i % slots);
    let _ = write!(out, "{:>14}", "predicted\\real");
    for &column in &columns {
        let _ = write!(out, " {:>7}", label(column));
    }
    for &row in &rows {
        let _ = write!(out, "\n{:>14}", label(row));
        for &column in &columns {
            match cells[row * slots + column] {
                0 => out.push_str("       ."),
                count => {
                    let _ = write!(out, " {count:>7}");
                }
            }
        }
    }
    out.push('\n');
}

/// The lower end of a bucket.
fn label(slot: usize) -> String {
    let us = if slot == 0 { 0 } else { 1u64 << (slot - 1) };
    match us {
        0 => "<1us".into(),
        1..1024 => format!("{us}us"),
        1024..1_048_576 => format!("{}ms", us / 1024),
        _ => format!("{}s", us / 1_048_576),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(cells: &[(usize, usize, u64)]) -> Vec<u8> {
        let mut words = vec![0u64; CELLS];
        for &(row, column, count) in cells {
            words[row * SLOTS + column] = count;
        }
        words.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    #[test]
    fn values_of_all_cpus_are_added_up() {
        let wait = [value(&[(3, 4, 5)]), value(&[(3, 4, 7), (0, 0, 1)])];
        let predictions = Predictions::from_maps(&wait, &[]);
        assert_eq!(predictions.wait.len(), CELLS);
        assert_eq!(predictions.wait[3 * SLOTS + 4], 12);
        assert_eq!(predictions.wait[0], 1);
        assert_eq!(predictions.burst.iter().sum::<u64>(), 0);
    }

    #[test]
    fn the_size_is_that_of_the_bpf_struct() {
        assert_eq!(std::mem::size_of::<intf::fl_hist2>(), CELLS * 8);
        assert_eq!(value(&[]).len(), CELLS * 8);
    }

    #[test]
    fn rows_are_predicted_and_columns_are_real() {
        let wait = [value(&[(1, 1, 60), (1, 2, 20), (11, 5, 20)])];
        let text = Predictions::from_maps(&wait, &[]).text();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("wait: 100 predicted"), "{text}");
        assert!(
            lines[0].contains("60.0% surely") && lines[0].contains("80.0% at most"),
            "{text}"
        );
        let words =
            |line: &str| -> Vec<String> { line.split_whitespace().map(Into::into).collect() };
        assert_eq!(words(lines[1]), ["predicted\\real", "1us", "2us", "16us"]);
        assert_eq!(words(lines[2]), ["1us", "60", "20", "."]);
        assert_eq!(words(lines[3]), ["1ms", ".", ".", "20"]);
        assert!(lines[4].starts_with("burst: nothing"), "{text}");
    }

    #[test]
    fn labels_are_the_lower_ends() {
        let labels: Vec<String> = [0, 1, 2, 10, 11, 20, 21, 23].map(label).into();
        assert_eq!(
            labels,
            ["<1us", "1us", "2us", "512us", "1ms", "512ms", "1s", "4s"]
        );
    }
}
