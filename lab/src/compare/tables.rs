// SPDX-License-Identifier: GPL-2.0-only
//! The tables for people: one for each workload, then what failed, and every
//! loss and win once more in words.

use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::{presets, CellAlignment, Table};

use super::results::{Record, Row};
use super::testbed::CONTROL;
use crate::figures::Better;
use freqlock::estimate::{Estimate, Verdict, MIN_RUNS};

const HEADER: [&str; 8] = [
    "metric",
    "scheduler",
    "runs",
    "median",
    "95% interval",
    "ratio",
    "95% interval",
    "verdict",
];

/// What stands beside it where there is a control.
const CONTROL_HEADER: [&str; 2] = ["control", "95% interval"];

/// Columns of words: metric, scheduler, verdict.
const LEFT: [usize; 3] = [0, 1, 7];

pub fn text(record: &Record) -> String {
    let mut out = title(record);
    for rows in record.summary.chunk_by(|a, b| a.workload == b.workload) {
        let workload = &rows[0].workload;
        let parameters = record
            .parameters
            .get(workload)
            .map_or_else(String::new, |all| format!(" ({})", all.join(", ")));
        out.push_str(&format!(
            "\n{workload}{parameters}\n{}\n",
            table(record, rows)
        ));
    }
    out.push('\n');
    out.push_str(&failures(record));
    if let Some(control) = &record.control {
        out.push_str(&failures(control).replace("Failed: ", "Failed on the control: "));
    }
    out.push_str(&verdicts(record));
    out.push_str(&shares(record));
    if record
        .summary
        .iter()
        .any(|row| row.value.interval.is_none() || row.verdict == Some(Verdict::Unknown))
    {
        out.push_str(&format!(
            "In brackets is the range of all values: a 95% interval, and so a verdict, needs {MIN_RUNS} rounds.\n"
        ));
    }
    out
}

fn title(record: &Record) -> String {
    let made = record.rounds_made();
    let rounds = match record.rounds {
        wanted if record.interrupted => format!("Interrupted before the end of round {wanted}"),
        wanted if made < wanted => format!("{made} of {wanted} rounds (the time was up)"),
        1 => "1 round".into(),
        wanted => format!("{wanted} rounds"),
    };
    let warmup = match record.warmup_rounds {
        0 => String::new(),
        n => format!(" after {n} of warm-up"),
    };
    let control = record.control.as_ref().map_or_else(String::new, |control| {
        format!(
            " Control: the ratio on {CONTROL}, whose {} CPUs never change their speed.",
            control.machine.cpus
        )
    });
    format!(
        "{}\n{rounds}{warmup}; ratio: to {} in the same round.{control}\n",
        record.machine, record.baseline
    )
}

fn table(record: &Record, rows: &[Row]) -> Table {
    let mut table = Table::new();
    let mut header = HEADER.to_vec();
    if record.control.is_some() {
        header.extend(CONTROL_HEADER);
    }
    table.load_style(presets::ASCII_MARKDOWN).set_header(header);
    let both = |estimate: Option<Estimate>| {
        estimate.map_or_else(Default::default, |estimate| {
            (ratio(estimate.median), interval(&estimate, ratio))
        })
    };
    for (i, row) in rows.iter().enumerate() {
        let first = i == 0 || rows[i - 1].metric != row.metric;
        let (median, range) = both(row.ratio);
        let mut cells = vec![
            if first { metric(row) } else { String::new() },
            row.name(),
            row.value.runs.to_string(),
            figure(row.value.median),
            interval(&row.value, figure),
            median,
            range,
            row.verdict.map_or("", Verdict::name).to_string(),
        ];
        if record.control.is_some() {
            let (median, range) = both(record.ratio_on_control(row));
            cells.extend([median, range]);
        }
        table.add_row(cells);
    }
    for (i, column) in table.column_iter_mut().enumerate() {
        if !LEFT.contains(&i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

pub fn metric(row: &Row) -> String {
    let better = match row.better {
        Better::Lower => "lower",
        Better::Higher => "higher",
    };
    format!("{}, {} ({better} is better)", row.metric, row.unit)
}

/// Four digits that count, more only before the point.
pub fn figure(value: f64) -> String {
    let before_point = if value < 1.0 {
        1
    } else {
        value.log10() as usize + 1
    };
    format!("{value:.*}", 4_usize.saturating_sub(before_point))
}

pub fn ratio(value: f64) -> String {
    format!("{value:.3}")
}

pub fn interval(estimate: &Estimate, format: impl Fn(f64) -> String) -> String {
    match estimate.interval {
        Some((low, high)) => format!("{} .. {}", format(low), format(high)),
        None => format!("({} .. {})", format(estimate.min), format(estimate.max)),
    }
}

fn failures(record: &Record) -> String {
    let mut counts: BTreeMap<_, u32> = BTreeMap::new();
    for (run, reason) in record.failures() {
        *counts
            .entry((&run.workload, &run.scheduler, reason))
            .or_default() += 1;
    }
    let mut out = String::new();
    for ((workload, scheduler, reason), count) in &counts {
        let times = if *count == 1 { "once" } else { "times" };
        let number = if *count == 1 {
            String::new()
        } else {
            format!("{count} ")
        };
        out.push_str(&format!(
            "Failed: {workload} under {scheduler}, {number}{times}: {reason}\n"
        ));
    }
    out
}

/// Losses first: they are what a scheduler's author would rather not see.
fn verdicts(record: &Record) -> String {
    let compared: Vec<_> = record
        .summary
        .iter()
        .filter(|row| row.verdict.is_some())
        .collect();
    let mut out = String::new();
    if compared.is_empty() {
        return out;
    }
    if (compared.iter()).all(|row| row.verdict == Some(Verdict::Unknown)) {
        return format!("Losses and wins: too few rounds for a verdict ({MIN_RUNS} are needed)\n");
    }
    for (name, verdict) in [("Losses", Verdict::Loss), ("Wins", Verdict::Win)] {
        let rows: Vec<_> = compared
            .iter()
            .filter(|row| row.verdict == Some(verdict))
            .collect();
        // Writing to a string cannot fail.
        writeln!(out, "{name}:{}", if rows.is_empty() { " none" } else { "" }).ok();
        for row in rows {
            if let Some(ratio) = &row.ratio {
                writeln!(
                    out,
                    "  {}: {} {} is {} of {}'s ({})",
                    row.name(),
                    row.workload,
                    row.metric,
                    self::ratio(ratio.median),
                    record.baseline,
                    interval(ratio, self::ratio)
                )
                .ok();
            }
        }
    }
    out
}

/// What schedulers reach of what a machine allows. Of several bounds the better one counts,
/// and each line says which that is.
fn shares(record: &Record) -> String {
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    let several = record.bounds.len() > 1;
    let mut out = String::new();
    for row in &record.summary {
        let (Some(share), Some(bound)) = (&row.share, &row.bound) else {
            continue;
        };
        if out.is_empty() {
            let better = if several { "the better of " } else { "" };
            out = format!(
                "Share of the reachable gain, {} to {better}{}:\n",
                record.baseline,
                record.bounds.join(" and ")
            );
        }
        let to = if several {
            format!(", to {bound}")
        } else {
            String::new()
        };
        out.push_str(&format!(
            "  {}: {} {} {} ({}){to}\n",
            row.name(),
            row.workload,
            row.metric,
            percent(share.median),
            interval(share, percent)
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::tests::{record, run};
    use super::*;

    fn rounds(scheduler: &str, values: &[f64]) -> Vec<super::super::runs::Run> {
        (1..)
            .zip(values)
            .map(|(round, value)| run("forkwait", scheduler, round, Some(*value)))
            .collect()
    }

    #[test]
    fn figures_have_four_digits() {
        for (value, text) in [
            (0.0, "0.000"),
            (0.1234, "0.123"),
            (1.0, "1.000"),
            (12.345, "12.35"),
            (999.96, "1000.0"),
            (1234.5, "1234"),
            (123456.0, "123456"),
        ] {
            assert_eq!(figure(value), text);
        }
    }

    #[test]
    fn a_table_with_a_loss_and_a_win() {
        let mut runs = rounds("eevdf", &[100.0; 6]);
        runs.extend(rounds("off", &[110.0, 111.0, 112.0, 113.0, 114.0, 115.0]));
        runs.extend(rounds("auto", &[90.0; 6]));
        let text = text(&record(&["eevdf", "off", "auto"], runs));
        let expected = "\
6 rounds after 1 of warm-up; ratio: to eevdf in the same round.

forkwait
| metric                     | scheduler | runs | median |   95% interval | ratio |   95% interval | verdict |
|----------------------------|-----------|------|--------|----------------|-------|----------------|---------|
| time, ms (lower is better) | eevdf     |    6 |  100.0 | 100.0 .. 100.0 |       |                |         |
|                            | off       |    6 |  112.5 | 110.0 .. 115.0 | 1.125 | 1.100 .. 1.150 | loss    |
|                            | auto      |    6 |  90.00 | 90.00 .. 90.00 | 0.900 | 0.900 .. 0.900 | win     |

Losses:
  off: forkwait time is 1.125 of eevdf's (1.100 .. 1.150)
Wins:
  auto: forkwait time is 0.900 of eevdf's (0.900 .. 0.900)
";
        let (machine, rest) = text.split_once('\n').unwrap();
        assert!(
            machine.starts_with("Linux 7.2.0, 4 CPUs (TCG), in an emulated VM"),
            "{machine}"
        );
        assert_eq!(rest, expected, "\n{text}");
    }

    #[test]
    fn the_control_stands_beside_and_its_failures_are_said() {
        let mut runs = rounds("eevdf", &[100.0; 6]);
        runs.extend(rounds("auto", &[90.0; 6]));
        let mut whole = record(&["eevdf", "auto", "limit"], runs.clone());
        runs.truncate(6);
        runs.extend(rounds("auto", &[101.0, 101.0, 102.0, 102.0, 103.0, 103.0]));
        runs.push(run("forkwait", "auto", 7, None));
        whole.control = Some(Box::new(record(&["eevdf", "auto"], runs)));
        assert!(whole.failed());
        let text = text(&whole);
        for line in [
            "Control: the ratio on symmetric-fixed, whose 4 CPUs never change their speed.\n",
            "| ratio |   95% interval | verdict | control |   95% interval |\n",
            "| 0.900 | 0.900 .. 0.900 | win     |   1.020 | 1.010 .. 1.030 |\n",
            "Failed on the control: forkwait under auto, once: broken\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_workload_that_is_set_up_otherwise_says_so() {
        let mut record = record(&["eevdf"], rounds("eevdf", &[100.0; 6]));
        assert!(text(&record).contains("\n\nforkwait\n|"));
        let parameters = ["FORKWAIT_CHAINS=2", "FORKWAIT_STEPS=5"].map(String::from);
        record
            .parameters
            .insert("forkwait".into(), parameters.into());
        let text = text(&record);
        assert!(
            text.contains("\n\nforkwait (FORKWAIT_CHAINS=2, FORKWAIT_STEPS=5)\n|"),
            "{text}"
        );
    }

    #[test]
    fn the_share_of_the_gain_is_said_where_there_is_a_limit() {
        let mut runs = rounds("eevdf", &[100.0; 6]);
        runs.extend(rounds("auto", &[70.0, 70.0, 72.0, 72.0, 74.0, 74.0]));
        runs.extend(rounds("limit", &[60.0; 6]));
        let text = text(&record(&["eevdf", "auto", "limit"], runs));
        assert!(
            text.contains(
                "Share of the reachable gain, eevdf to limit:\n  auto: forkwait time 70.0% (65.0% .. 75.0%)\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn of_two_bounds_the_better_one_counts_and_is_named() {
        let mut runs = rounds("eevdf", &[100.0; 6]);
        runs.extend(rounds("auto", &[90.0; 6]));
        runs.extend(rounds("limit", &[80.0; 6]));
        runs.extend(rounds("pinned:2", &[75.0; 6]));
        runs.extend(rounds("pinned:3", &[60.0; 6]));
        let text = text(&record(&["eevdf", "auto", "limit", "best-of-pinned"], runs));
        for line in [
            "| best-of-pinned (3 CPUs) |    6 |  60.00 |",
            "  best-of-pinned (3 CPUs): forkwait time is 0.600 of eevdf's (0.600 .. 0.600)\n",
            "Share of the reachable gain, eevdf to the better of limit and best-of-pinned:\n  \
             auto: forkwait time 25.0% (25.0% .. 25.0%), to best-of-pinned (3 CPUs)\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(!text.contains("pinned:3"), "{text}");
    }

    #[test]
    fn few_rounds_give_no_verdict() {
        let mut runs = rounds("eevdf", &[100.0, 101.0]);
        runs.extend(rounds("auto", &[50.0, 51.0]));
        let text = text(&record(&["eevdf", "auto"], runs));
        assert!(text.contains("(0.500 .. 0.505) | too few |"), "{text}");
        assert!(
            text.contains("too few rounds for a verdict (6 are needed)\n"),
            "{text}"
        );
        assert!(!text.contains("none"), "{text}");
        assert!(text.ends_with("needs 6 rounds.\n"), "{text}");
    }

    #[test]
    fn a_title_says_when_rounds_are_missing() {
        let mut record = record(&["eevdf"], rounds("eevdf", &[100.0; 4]));
        let second = |record: &Record| title(record).lines().nth(1).map(str::to_string);
        assert_eq!(
            second(&record).as_deref(),
            Some("4 of 6 rounds (the time was up) after 1 of warm-up; ratio: to eevdf in the same round.")
        );
        record.interrupted = true;
        assert_eq!(
            second(&record).as_deref(),
            Some("Interrupted before the end of round 6 after 1 of warm-up; ratio: to eevdf in the same round.")
        );
    }

    #[test]
    fn failures_are_named_and_counted() {
        let mut runs = rounds("eevdf", &[100.0; 6]);
        runs.push(run("forkwait", "auto", 1, None));
        runs.push(run("forkwait", "auto", 2, None));
        runs.push(run("other", "eevdf", 2, None));
        let text = text(&record(&["eevdf", "auto"], runs));
        assert!(
            text.contains("Failed: forkwait under auto, 2 times: broken\nFailed: other under eevdf, once: broken\n"),
            "{text}"
        );
    }
}
