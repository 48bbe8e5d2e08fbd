// SPDX-License-Identifier: GPL-2.0-only
//! What came out of a comparison, raw and summed up: the JSON of `--json`, and
//! all that the tables are made of.

use std::collections::BTreeMap;

use serde::Serialize;

use super::plan::Plan;
use super::runs::{Outcome, Results, Run};
use super::testbed::{Machine, LIMIT};
use crate::figures::{Better, Metric};
use freqlock::estimate::{estimate, Estimate, Verdict};

/// Changes when a reader of the JSON would have to change.
const FORMAT: u32 = 1;

/// A limit that is nearer to the baseline than this part of it is no limit.
const LEAST_WAY: f64 = 0.005;

#[derive(Debug, Serialize)]
pub struct Record {
    format: u32,
    version: &'static str,
    pub machine: Machine,
    pub schedulers: Vec<String>,
    pub baseline: String,
    /// By workload, of those that were set up otherwise than usual.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Vec<String>>,
    /// Rounds that were wanted; fewer were made if the time was up.
    pub rounds: u32,
    pub warmup_rounds: u32,
    /// Ended by Ctrl-C: runs are missing.
    pub interrupted: bool,
    pub summary: Vec<Row>,
    /// In the order in which they were made.
    pub runs: Vec<Run>,
    /// The same on the control, beside a simulated machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<Box<Record>>,
}

/// One metric of one workload under one scheduler.
#[derive(Debug, PartialEq, Serialize)]
pub struct Row {
    pub workload: String,
    pub metric: String,
    pub unit: String,
    pub better: Better,
    pub scheduler: String,
    pub value: Estimate,
    /// Value by the baseline's of the same round; none for the baseline itself.
    pub ratio: Option<Estimate>,
    pub verdict: Option<Verdict>,
    /// On a simulated machine with the limit among the schedulers: which part of
    /// the way from the baseline to the limit this scheduler goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Estimate>,
}

impl Record {
    pub fn new(plan: &Plan, machine: Machine, results: Results) -> Self {
        let Results {
            runs, interrupted, ..
        } = results;
        let schedulers: Vec<_> = plan
            .schedulers
            .iter()
            .map(|other| other.label.clone())
            .collect();
        let baseline = schedulers[plan.baseline].clone();
        let summary = plan
            .workloads
            .iter()
            .flat_map(|workload| summary(&workload.name, &schedulers, &baseline, &runs))
            .collect();
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION"),
            machine,
            schedulers,
            baseline,
            parameters: plan
                .workloads
                .iter()
                .filter(|workload| !workload.parameters.is_empty())
                .map(|workload| (workload.name.clone(), workload.parameters.clone()))
                .collect(),
            rounds: plan.runs,
            warmup_rounds: plan.warmup,
            interrupted,
            summary,
            runs,
            control: None,
        }
    }

    /// Did any run give no figures? Those of the warm-up count too.
    pub fn failed(&self) -> bool {
        self.failures().next().is_some()
            || self
                .control
                .as_ref()
                .is_some_and(|control| control.failed())
    }

    pub fn was_interrupted(&self) -> bool {
        self.interrupted || self.control.as_ref().is_some_and(|other| other.interrupted)
    }

    /// How a row's scheduler does on the control.
    pub fn ratio_on_control(&self, row: &Row) -> Option<Estimate> {
        let rows = &self.control.as_ref()?.summary;
        let same = |other: &&Row| {
            (&other.workload, &other.metric, &other.scheduler)
                == (&row.workload, &row.metric, &row.scheduler)
        };
        rows.iter().find(same)?.ratio
    }

    /// Rounds that count and were at least begun.
    pub fn rounds_made(&self) -> u32 {
        let last = self.runs.last().map_or(0, |run| run.round + 1);
        last.saturating_sub(self.warmup_rounds)
    }

    pub fn failures(&self) -> impl Iterator<Item = (&Run, &str)> {
        self.runs.iter().filter_map(|run| match &run.outcome {
            Outcome::Failed(reason) => Some((run, reason.as_str())),
            Outcome::Metrics(_) => None,
        })
    }
}

/// Which part of the way from a baseline to a limit some values go, by rounds
/// that have all three. Where the limit is no better there is no way to go.
fn of_the_way(
    values: &[(u32, f64)],
    baseline: &[(u32, f64)],
    limits: &[(u32, f64)],
) -> Option<Estimate> {
    let in_round = |all: &[(u32, f64)], round| {
        let (_, value) = *all.iter().find(|(other, _)| *other == round)?;
        Some(value)
    };
    let shares: Vec<f64> = values
        .iter()
        .filter_map(|(round, value)| {
            let base = in_round(baseline, *round)?;
            let way = base - in_round(limits, *round)?;
            (way.abs() > base * LEAST_WAY).then(|| (base - value) / way)
        })
        .collect();
    estimate(&shares)
}

/// Rows by metric in the order of the workload, then by scheduler.
fn summary(workload: &str, schedulers: &[String], baseline: &str, runs: &[Run]) -> Vec<Row> {
    let counted: Vec<&Run> = runs
        .iter()
        .filter(|run| run.workload == workload && !run.warmup)
        .collect();
    let mut metrics: Vec<&Metric> = Vec::new();
    for run in &counted {
        if let Outcome::Metrics(of_run) = &run.outcome {
            for metric in of_run {
                if !metrics.iter().any(|other| other.name == metric.name) {
                    metrics.push(metric);
                }
            }
        }
    }
    let of = |scheduler: &str, round: Option<u32>, metric: &str| -> Vec<(u32, f64)> {
        counted
            .iter()
            .filter(|run| {
                run.scheduler == scheduler && round.is_none_or(|round| run.round == round)
            })
            .filter_map(|run| Some((run.round, run.metric(metric)?.value)))
            .collect()
    };
    let mut rows = Vec::new();
    for metric in metrics {
        let limits = of(LIMIT, None, &metric.name);
        for scheduler in schedulers {
            let values = of(scheduler, None, &metric.name);
            let plain: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
            let Some(value) = estimate(&plain) else {
                continue;
            };
            // What happens on the machine in one round, happens to both.
            let ratios: Vec<f64> = values
                .iter()
                .filter_map(|(round, value)| {
                    let (_, base) = *of(baseline, Some(*round), &metric.name).first()?;
                    (base > 0.0).then(|| value / base)
                })
                .collect();
            let ratio = estimate(&ratios).filter(|_| scheduler != baseline);
            let share = of_the_way(&values, &of(baseline, None, &metric.name), &limits)
                .filter(|_| scheduler != baseline && scheduler != LIMIT);
            let verdict = ratio.map(|ratio| Verdict::of(&ratio, metric.better == Better::Lower));
            rows.push(Row {
                workload: workload.into(),
                metric: metric.name.clone(),
                unit: metric.unit.clone(),
                better: metric.better,
                scheduler: scheduler.clone(),
                value,
                ratio,
                verdict,
                share,
            });
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::tests::run;
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        // The machine gets slower each round, and auto takes 90% of eevdf always.
        let mut runs = Vec::new();
        for round in 1..=6 {
            let base = 100.0 * f64::from(round);
            runs.push(run("w", "eevdf", round, Some(base)));
            runs.push(run("w", "auto", round, Some(base * 0.9)));
        }
        let rows = summary("w", &names(&["eevdf", "auto"]), "eevdf", &runs);
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (rows[0].value.median, rows[0].ratio, rows[0].verdict),
            (350.0, None, None)
        );
        let ratio = rows[1].ratio.unwrap();
        assert!((ratio.median - 0.9).abs() < 1e-9);
        assert_eq!(rows[1].verdict, Some(Verdict::Win));
    }

    #[test]
    fn warm_up_and_failed_runs_are_no_measurements() {
        let mut warmup = run("w", "eevdf", 0, Some(1.0));
        warmup.warmup = true;
        let runs = [
            warmup,
            run("w", "eevdf", 1, Some(10.0)),
            run("w", "auto", 1, None),
            run("w", "eevdf", 2, None),
            run("w", "auto", 2, Some(30.0)),
            run("w", "eevdf", 3, Some(20.0)),
            run("w", "auto", 3, Some(40.0)),
            run("other", "auto", 3, Some(7.0)),
        ];
        let rows = summary("w", &names(&["eevdf", "auto", "off"]), "eevdf", &runs);
        assert_eq!(rows.len(), 2, "none for a scheduler without figures");
        assert_eq!((rows[0].value.runs, rows[0].value.median), (2, 15.0));
        assert_eq!((rows[1].value.runs, rows[1].value.median), (2, 35.0));
        // Only round 3 has both.
        let ratio = rows[1].ratio.unwrap();
        assert_eq!((ratio.runs, ratio.median), (1, 2.0));
        assert_eq!(rows[1].verdict, Some(Verdict::Unknown));
    }

    #[test]
    fn the_way_to_the_limit_is_measured_in_each_round() {
        let mut runs = Vec::new();
        for round in 1..=6 {
            let base = 100.0 * f64::from(round);
            runs.push(run("w", "eevdf", round, Some(base)));
            runs.push(run("w", "auto", round, Some(base * 0.8)));
            runs.push(run("w", "off", round, Some(base * 1.1)));
            runs.push(run("w", LIMIT, round, Some(base * 0.6)));
        }
        let rows = summary(
            "w",
            &names(&["eevdf", "auto", "off", LIMIT]),
            "eevdf",
            &runs,
        );
        let share = |row: usize| rows[row].share.map(|share| share.median);
        assert_eq!((share(0), share(3)), (None, None));
        assert!((share(1).unwrap() - 0.5).abs() < 1e-9);
        assert!((share(2).unwrap() + 0.25).abs() < 1e-9);
        // A fixed machine leaves nothing to gain.
        let level = [(1, 100.0)];
        assert_eq!(of_the_way(&level, &level, &[(1, 99.8)]), None);
        assert_eq!(of_the_way(&level, &[(2, 100.0)], &[(1, 50.0)]), None);
    }

    #[test]
    fn without_a_baseline_there_is_no_ratio() {
        let runs = [
            run("w", "eevdf", 1, Some(0.0)),
            run("w", "auto", 1, Some(5.0)),
        ];
        let rows = summary("w", &names(&["eevdf", "auto"]), "eevdf", &runs);
        assert_eq!((rows[1].ratio, rows[1].verdict), (None, None));
    }
}
