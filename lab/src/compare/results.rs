// SPDX-License-Identifier: GPL-2.0-only
//! What came out of a comparison, raw and summed up: the JSON of `--json`, and
//! all that the tables are made of.

use std::collections::BTreeMap;

use serde::Serialize;

use super::plan::Plan;
use super::runs::{Outcome, Results, Run};
use super::testbed::Machine;
use crate::figures::{Better, Metric};
use crate::schedulers::{Bound, Scheduler};
use freqlock::estimate::{estimate, sign_test, Estimate, Verdict};

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
    /// Those of the schedulers that show what is to be gained; of pinned ones the best.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<String>,
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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub workload: String,
    pub metric: String,
    pub unit: String,
    pub better: Better,
    pub scheduler: String,
    /// On so many CPUs the workload was best, if that is what the row is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned_to: Option<u32>,
    pub value: Estimate,
    /// Value by the baseline's of the same round; none for the baseline itself.
    pub ratio: Option<Estimate>,
    pub verdict: Option<Verdict>,
    /// How probable such ratios are at least, if neither is better (sign test).
    pub p: Option<f64>,
    /// On a simulated machine with bounds among the schedulers: which part of the way
    /// from the baseline to the better one this scheduler goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Estimate>,
    /// Which bound that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<String>,
}

impl Row {
    /// The scheduler, for people.
    pub fn name(&self) -> String {
        match self.pinned_to {
            None => self.scheduler.clone(),
            Some(cpus) => on_cpus(&self.scheduler, cpus),
        }
    }
}

fn on_cpus(scheduler: &str, cpus: u32) -> String {
    let many = if cpus == 1 { "" } else { "s" };
    format!("{scheduler} ({cpus} CPU{many})")
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
            .flat_map(|workload| summary(&workload.name, plan, &runs))
            .collect();
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION"),
            machine,
            schedulers,
            baseline,
            bounds: plan.bounds().map(|bound| bound.label.clone()).collect(),
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

    /// A row's figures by those of another scheduler in the same rounds.
    pub fn ratio(&self, row: &Row, other: &Row) -> Option<Estimate> {
        let figures = |scheduler: &str| -> Figures {
            let runs = self.runs.iter().filter(|run| {
                !run.warmup && run.workload == row.workload && run.scheduler == scheduler
            });
            runs.filter_map(|run| Some((run.round, run.metric(&row.metric)?.value)))
                .collect()
        };
        estimate(&ratios(
            &figures(&row.scheduler),
            &figures(&other.scheduler),
        ))
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

/// Figures of one metric by their rounds.
type Figures = Vec<(u32, f64)>;

fn in_round(figures: &Figures, round: u32) -> Option<f64> {
    let (_, value) = *figures.iter().find(|(other, _)| *other == round)?;
    Some(value)
}

/// What happens on the machine in one round, happens to both.
fn ratios(values: &Figures, base: &Figures) -> Vec<f64> {
    (values.iter())
        .filter_map(|(round, value)| {
            let base = in_round(base, *round)?;
            (base > 0.0).then(|| value / base)
        })
        .collect()
}

fn estimate_of(figures: &Figures) -> Option<Estimate> {
    let values: Vec<f64> = figures.iter().map(|(_, value)| *value).collect();
    estimate(&values)
}

/// Which part of the way from a baseline to a bound some values go, by rounds
/// that have all three. Where the bound is no better there is no way to go.
fn of_the_way(
    values: &Figures,
    baseline: &Figures,
    bound: &Figures,
    better: Better,
) -> Option<Estimate> {
    let shares: Vec<f64> = values
        .iter()
        .filter_map(|(round, value)| {
            let base = in_round(baseline, *round)?;
            let way = base - in_round(bound, *round)?;
            let gain = if better == Better::Lower { way } else { -way };
            (gain > base * LEAST_WAY).then(|| (base - value) / way)
        })
        .collect();
    estimate(&shares)
}

/// Whose median is best, of those that have figures.
fn best<T>(all: impl Iterator<Item = (T, Figures)>, better: Better) -> Option<(T, Figures)> {
    let with_median =
        all.filter_map(|(of, figures)| Some((estimate_of(&figures)?.median, of, figures)));
    let (_, of, figures) = with_median.min_by(|(a, ..), (b, ..)| match better {
        Better::Lower => a.total_cmp(b),
        Better::Higher => b.total_cmp(a),
    })?;
    Some((of, figures))
}

/// Rows by metric in the order of the workload, then by scheduler.
fn summary(workload: &str, plan: &Plan, runs: &[Run]) -> Vec<Row> {
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
    metrics
        .iter()
        .flat_map(|metric| rows(workload, metric, plan, &counted))
        .collect()
}

/// Those of one metric.
fn rows(workload: &str, metric: &Metric, plan: &Plan, runs: &[&Run]) -> Vec<Row> {
    let better = metric.better;
    let of_label = |label: &str| -> Figures {
        runs.iter()
            .filter(|run| run.scheduler == label)
            .filter_map(|run| Some((run.round, run.metric(&metric.name)?.value)))
            .collect()
    };
    let pinned = plan.to_run().into_iter().filter_map(|scheduler| {
        let Some(Bound::Pinned(cpus)) = scheduler.bound else {
            return None;
        };
        Some((cpus, of_label(&scheduler.label)))
    });
    let best_pinned = best(pinned, better);
    // On how many CPUs, if that was chosen, and the figures.
    let of = |scheduler: &Scheduler| match scheduler.bound {
        Some(Bound::BestOfPinned) => match &best_pinned {
            Some((cpus, figures)) => (Some(*cpus), figures.clone()),
            None => (None, Vec::new()),
        },
        _ => (None, of_label(&scheduler.label)),
    };
    let bound = best(plan.bounds().map(|bound| (bound, of(bound).1)), better);
    let baseline = &plan.schedulers[plan.baseline];
    let base = of(baseline).1;
    let mut rows = Vec::new();
    for scheduler in &plan.schedulers {
        let (pinned_to, values) = of(scheduler);
        let Some(value) = estimate_of(&values) else {
            continue;
        };
        let ratios = ratios(&values, &base);
        let ratio = estimate(&ratios).filter(|_| scheduler != baseline);
        let (of_bound, share) = bound
            .as_ref()
            .filter(|(bound, _)| {
                ![baseline, *bound].contains(&scheduler) && scheduler.bound != Some(Bound::Limit)
            })
            .and_then(|(bound, figures)| {
                let share = of_the_way(&values, &base, figures, better)?;
                let name = match of(bound).0 {
                    Some(cpus) => on_cpus(&bound.label, cpus),
                    None => bound.label.clone(),
                };
                Some((name, share))
            })
            .unzip();
        rows.push(Row {
            workload: workload.into(),
            metric: metric.name.clone(),
            unit: metric.unit.clone(),
            better,
            scheduler: scheduler.label.clone(),
            pinned_to,
            value,
            ratio,
            verdict: ratio.map(|ratio| Verdict::of(&ratio, better == Better::Lower)),
            p: ratio.map(|_| sign_test(&ratios, 1.0)),
            share,
            bound: of_bound,
        });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::tests::{plan, run};
    use super::*;

    #[test]
    fn ratios_are_taken_within_rounds() {
        // The machine gets slower each round, and auto takes 90% of eevdf always.
        let mut runs = Vec::new();
        for round in 1..=6 {
            let base = 100.0 * f64::from(round);
            runs.push(run("w", "eevdf", round, Some(base)));
            runs.push(run("w", "auto", round, Some(base * 0.9)));
        }
        let rows = summary("w", &plan(&["eevdf", "auto"]), &runs);
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
        let rows = summary("w", &plan(&["eevdf", "auto", "off"]), &runs);
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
            runs.push(run("w", "limit", round, Some(base * 0.6)));
        }
        let rows = summary("w", &plan(&["eevdf", "auto", "off", "limit"]), &runs);
        let share = |row: usize| rows[row].share.map(|share| share.median);
        assert_eq!((share(0), share(3)), (None, None));
        assert!((share(1).unwrap() - 0.5).abs() < 1e-9);
        assert!((share(2).unwrap() + 0.25).abs() < 1e-9);
        // A fixed machine leaves nothing to gain, and what is worse than the baseline is no
        // bound.
        let at = |value: f64| vec![(1, value)];
        let way = |values: &Figures, base: &Figures, bound, better| {
            of_the_way(values, base, &at(bound), better).map(|share| share.median)
        };
        let level = at(100.0);
        assert_eq!(way(&level, &level, 99.8, Better::Lower), None);
        assert_eq!(way(&level, &level, 150.0, Better::Lower), None);
        assert_eq!(way(&at(80.0), &level, 60.0, Better::Lower), Some(0.5));
        assert_eq!(way(&at(120.0), &level, 140.0, Better::Higher), Some(0.5));
        assert_eq!(way(&level, &vec![(2, 100.0)], 50.0, Better::Lower), None);
    }

    /// Values of two rounds, under each.
    fn two_rounds(of: &[(&str, [f64; 2])]) -> Vec<Run> {
        let rounds = |(name, values): &(&str, [f64; 2])| {
            [(1, values[0]), (2, values[1])]
                .map(|(round, value)| run("w", name, round, Some(value)))
        };
        of.iter().flat_map(rounds).collect()
    }

    #[test]
    fn the_best_number_of_cpus_is_that_with_the_best_median() {
        let plan = plan(&["eevdf", "auto", "limit", "best-of-pinned"]);
        let labels: Vec<_> = plan.to_run().iter().map(|s| s.label.clone()).collect();
        assert_eq!(
            labels.join(" "),
            "eevdf auto limit pinned:1 pinned:2 pinned:3 pinned:4 pinned:6 pinned:8 pinned:12"
        );
        let mut runs = two_rounds(&[
            ("eevdf", [100.0, 100.0]),
            ("auto", [90.0, 90.0]),
            ("limit", [60.0, 60.0]),
            // Once the fastest of all, and yet not the best.
            ("pinned:1", [50.0, 120.0]),
            ("pinned:2", [80.0, 70.0]),
            ("pinned:3", [90.0, 90.0]),
        ]);
        let rows = summary("w", &plan, &runs);
        let best = &rows[3];
        assert_eq!(
            (best.name().as_str(), best.value.median),
            ("best-of-pinned (2 CPUs)", 75.0)
        );
        assert_eq!(rows.len(), 4, "those that are run for it have no rows");
        // The limit is better still.
        let shares = |rows: &[Row]| -> Vec<Option<(String, f64)>> {
            let of = |row: &Row| Some((row.bound.clone()?, row.share?.median));
            rows.iter().map(of).collect()
        };
        let to = |bound: &str, share| Some((bound.to_string(), share));
        assert_eq!(
            shares(&rows),
            [None, to("limit", 0.25), None, to("limit", 0.625)]
        );
        for run in runs.iter_mut().filter(|run| run.scheduler == "limit") {
            *run = super::super::tests::run("w", "limit", run.round, Some(95.0));
        }
        let rows = summary("w", &plan, &runs);
        let share = (0.5 + 1.0 / 3.0) / 2.0;
        assert_eq!(
            shares(&rows),
            [None, to("best-of-pinned (2 CPUs)", share), None, None]
        );
    }

    #[test]
    fn pinned_ones_that_are_named_count_and_have_rows() {
        let plan = plan(&["best-of-pinned", "pinned:5", "pinned"]);
        assert_eq!(
            plan.pinned.len(),
            6,
            "1 is there already: {:?}",
            plan.pinned
        );
        let runs = two_rounds(&[
            ("pinned:5", [70.0, 70.0]),
            ("pinned", [80.0, 80.0]),
            ("pinned:6", [90.0, 90.0]),
        ]);
        let rows = summary("w", &plan, &runs);
        let names: Vec<_> = rows.iter().map(Row::name).collect();
        assert_eq!(names, ["best-of-pinned (5 CPUs)", "pinned:5", "pinned"]);
    }

    #[test]
    fn without_a_baseline_there_is_no_ratio() {
        let runs = [
            run("w", "eevdf", 1, Some(0.0)),
            run("w", "auto", 1, Some(5.0)),
        ];
        let rows = summary("w", &plan(&["eevdf", "auto"]), &runs);
        assert_eq!((rows[1].ratio, rows[1].verdict), (None, None));
    }
}
