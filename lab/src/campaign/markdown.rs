// SPDX-License-Identifier: GPL-2.0-only
//! A campaign as Markdown: losses first.

use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::{presets, Table as Cells};

use super::rows::{Line, Place, Table, FAR};
use crate::compare::tables::{figure, interval, metric, ratio};
use crate::schedulers::KERNEL;
use freqlock::estimate::{Verdict, MIN_RUNS};

pub const METHOD: &str = "\
Each seed is one run of a workload under each scheduler; ratios are to the baseline's run of the same seed. Printed are \
medians, with 95% intervals of the median by order statistics (David and Nagaraja, Order Statistics). Whether a ratio \
differs from 1 says the exact two-sided sign test; over all comparisons of the campaign the false discovery rate is held \
at 5% (Benjamini and Hochberg, 1995), and that decides what is called a win or a loss. \"Level with the best\" is a row \
on which the 95% interval of the ratio to the best scheduler has 1 in it.";

pub fn text(table: &Table) -> String {
    let mut out = String::from("# Benchmarks\n\n");
    // Writing to a string cannot fail.
    writeln!(
        out,
        "Written by `scx_freqlock compare --campaign` (scx_freqlock {}), not by hand. At most {} seeds a row.\n",
        table.version, table.seeds
    )
    .ok();
    for place in &table.machines {
        writeln!(out, "- **{}**: {}", place.label, place.record.machine).ok();
    }
    out.push('\n');
    out.push_str(&standings(table));
    section(
        &mut out,
        &format!("Losses to {}", table.baseline),
        &or_unknown(table, verdicts(table, Verdict::Loss)),
    );
    section(
        &mut out,
        "Rows on which another scheduler is better",
        &or_unknown(table, behind(table)),
    );
    section(
        &mut out,
        &format!("Wins over {}", table.baseline),
        &or_unknown(table, verdicts(table, Verdict::Win)),
    );
    for place in &table.machines {
        section(
            &mut out,
            &format!("All rows: {}", place.label),
            &all_rows(table, place),
        );
    }
    section(&mut out, "Schedulers", &schedulers(table));
    section(&mut out, "Runs that failed", &failures(table));
    section(&mut out, "How it was measured", METHOD);
    out
}

/// For standard output.
pub fn summary(table: &Table) -> String {
    let losses = or_unknown(table, verdicts(table, Verdict::Loss));
    let losses = match losses.trim_end() {
        "" => " none".into(),
        losses => format!("\n{losses}"),
    };
    format!(
        "{}Losses to {}:{losses}\n",
        standings(table),
        table.baseline
    )
}

fn section(out: &mut String, title: &str, text: &str) {
    let text = if text.is_empty() {
        "None."
    } else {
        text.trim_end()
    };
    writeln!(out, "\n## {title}\n\n{text}").ok();
}

/// What to say where no row has a verdict, since none has the seeds for one.
fn or_unknown(table: &Table, text: String) -> String {
    if text.is_empty() && (table.seeds as usize) < MIN_RUNS {
        format!(
            "Not known: no row has the {MIN_RUNS} seeds that a verdict needs. The ratios are below.\n"
        )
    } else {
        text
    }
}

fn standings(table: &Table) -> String {
    let mut out = String::new();
    for (scheduler, standing) in table.standings() {
        let unknown = match standing.unknown {
            0 => String::new(),
            n => format!("; {n} have too few seeds to say ({MIN_RUNS} are needed)"),
        };
        writeln!(
            out,
            "- `{scheduler}` is best or level with the best on {} of {} rows, and more than {:.0}% behind {} on {}{unknown}.",
            standing.level,
            standing.rows,
            FAR * 100.0,
            table.baseline,
            standing.far,
        )
        .ok();
    }
    out
}

fn cells(header: &[&str]) -> Cells {
    let mut cells = Cells::new();
    cells
        .load_style(presets::ASCII_MARKDOWN)
        .set_header(header.to_vec());
    cells
}

/// Text that may have any characters, in a cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn verdicts(table: &Table, verdict: Verdict) -> String {
    let lines = table.with(verdict);
    if lines.is_empty() {
        return String::new();
    }
    let mut header = vec![
        "machine",
        "workload",
        "metric",
        "scheduler",
        "ratio",
        "95% interval",
        "q",
    ];
    let losses = verdict == Verdict::Loss;
    if losses {
        header.push("why");
    }
    let mut rows = cells(&header);
    for line in lines {
        let row = &line.row;
        let Some(of) = &row.ratio else {
            continue;
        };
        let mut words = vec![
            line.machine.clone(),
            row.workload.clone(),
            metric(row),
            cell(&row.name()),
            ratio(of.median),
            interval(of, ratio),
            line.q.map_or_else(String::new, |q| format!("{q:.4}")),
        ];
        if losses {
            words.push(why(line));
        }
        rows.add_row(words);
    }
    format!("{rows}\n")
}

fn why(line: &Line) -> String {
    cell(line.why.as_deref().unwrap_or("not explained yet"))
}

fn behind(table: &Table) -> String {
    let lines = table.behind();
    if lines.is_empty() {
        return String::new();
    }
    let mut rows = cells(&[
        "machine",
        "workload",
        "metric",
        "scheduler",
        "best",
        "ratio to it",
        "95% interval",
        "why",
    ]);
    for line in lines {
        let Some((best, of)) = &line.best else {
            continue;
        };
        rows.add_row([
            line.machine.clone(),
            line.row.workload.clone(),
            metric(&line.row),
            cell(&line.row.name()),
            cell(best),
            ratio(of.median),
            interval(of, ratio),
            why(line),
        ]);
    }
    format!("{rows}\n")
}

/// A row for each metric, with a column for each scheduler.
fn all_rows(table: &Table, place: &Place) -> String {
    let here: Vec<&Line> = table
        .lines
        .iter()
        .filter(|line| line.machine == place.label)
        .collect();
    let others: Vec<&String> = place
        .record
        .schedulers
        .iter()
        .filter(|name| **name != table.baseline)
        .collect();
    let mut header = vec![
        "workload".to_string(),
        "metric".into(),
        cell(&table.baseline),
    ];
    header.extend(others.iter().map(|name| cell(name)));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut rows = cells(&header);
    let same =
        |a: &&Line, b: &&Line| (&a.row.workload, &a.row.metric) == (&b.row.workload, &b.row.metric);
    for of_metric in here.chunk_by(same) {
        let row = &of_metric[0].row;
        let under = |name: &str| of_metric.iter().find(|line| line.row.scheduler == name);
        let base = under(&table.baseline);
        let mut words = vec![
            row.workload.clone(),
            metric(row),
            base.map_or("failed".into(), |line| figure(line.row.value.median)),
        ];
        for name in &others {
            words.push(match under(name) {
                None => "failed".into(),
                Some(line) => match (&line.row.ratio, line.corrected) {
                    (Some(of), Some(verdict)) => format!("{} {}", ratio(of.median), verdict.name()),
                    _ => figure(line.row.value.median),
                },
            });
        }
        rows.add_row(words);
    }
    if here.is_empty() {
        return String::new();
    }
    format!(
        "Medians of {}, and of the others the ratio to it.\n\n{rows}\n",
        table.baseline
    )
}

/// Each with what /sys/kernel/sched_ext says, or why it did not load.
pub fn schedulers(table: &Table) -> String {
    let mut out = String::new();
    for place in &table.machines {
        for name in &place.record.schedulers {
            let runs = || {
                place
                    .record
                    .runs
                    .iter()
                    .filter(|run| run.scheduler == *name)
            };
            let ops = runs().find_map(|run| run.ops.as_deref());
            let failed = place
                .record
                .failures()
                .find(|(run, _)| run.scheduler == *name);
            let said = match (ops, failed) {
                _ if name == KERNEL => format!("Linux {}", place.record.machine.kernel),
                (Some(ops), _) => format!("`{ops}`"),
                (None, Some((_, reason))) => format!("did not load, because: {reason}"),
                (None, None) if runs().next().is_none() => "not run yet".into(),
                (None, None) => format!("Linux {}", place.record.machine.kernel),
            };
            writeln!(out, "- {}, `{name}`: {said}", place.label).ok();
        }
        for line in &place.left_out {
            writeln!(out, "- {}: did not load, because {line}", place.label).ok();
        }
    }
    out
}

pub fn failures(table: &Table) -> String {
    let mut counts: BTreeMap<_, u32> = BTreeMap::new();
    for place in &table.machines {
        for (run, reason) in place.record.failures() {
            *counts
                .entry((&place.label, &run.workload, &run.scheduler, reason))
                .or_default() += 1;
        }
    }
    let mut out = String::new();
    for ((machine, workload, scheduler, reason), count) in counts {
        writeln!(
            out,
            "- {machine}, {workload} under `{scheduler}`, {count} of {}: {reason}",
            table.seeds
        )
        .ok();
    }
    out
}
