// SPDX-License-Identifier: GPL-2.0-only
//! What a campaign's results say: each row of each machine, with verdicts that hold for all of
//! them together, and how each scheduler of ours stands to the best.

use serde::Serialize;

use super::campaign_file::{Campaign, Why};
use crate::compare::results::{Record, Row};
use crate::figures::Better;
use freqlock::estimate::{benjamini_hochberg, Estimate, Verdict, MIN_RUNS};

/// Adjusted probabilities up to this are a difference.
const RATE: f64 = 0.05;

/// A row of ours that is worse than the baseline by more than this is counted.
pub const FAR: f64 = 0.05;

/// What there is of one machine.
#[derive(Debug, Serialize)]
pub struct Place {
    pub label: String,
    /// A line for each scheduler that is not there.
    pub left_out: Vec<String>,
    /// Labels of our own schedulers.
    pub ours: Vec<String>,
    pub record: Record,
}

/// One metric of one workload on one machine under one scheduler.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    pub machine: String,
    #[serde(flatten)]
    pub row: Row,
    /// Is it a scheduler of ours?
    pub ours: bool,
    /// The sign test's probability, adjusted for all lines of the campaign.
    pub q: Option<f64>,
    /// By that; none for the baseline.
    pub corrected: Option<Verdict>,
    /// The best scheduler of the row by the median, bounds apart, and the ratio to it; none if
    /// that is this one.
    pub best: Option<(String, Estimate)>,
    /// Why it loses, as the campaign's file says.
    pub why: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct Table {
    /// Of the program that made the runs.
    pub version: String,
    pub baseline: String,
    pub seeds: u32,
    pub lines: Vec<Line>,
    pub machines: Vec<Place>,
}

/// How one of our schedulers stands, by rows.
#[derive(Debug, Default, PartialEq)]
pub struct Standing {
    pub rows: usize,
    /// No other scheduler is shown to be better.
    pub level: usize,
    pub far: usize,
    /// Rows with too few seeds to say.
    pub unknown: usize,
}

impl Table {
    pub fn new(campaign: &Campaign, machines: Vec<Place>) -> Self {
        let mut lines: Vec<Line> = machines
            .iter()
            .flat_map(|place| lines_of(campaign, place))
            .collect();
        correct(&mut lines);
        for line in &mut lines {
            line.why = why(&campaign.reasons, line).map(|why| why.reason.clone());
        }
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            baseline: campaign.baseline.clone(),
            seeds: campaign.seeds,
            lines,
            machines,
        }
    }

    pub fn failed(&self) -> bool {
        self.machines.iter().any(|place| place.record.failed())
    }

    pub fn with(&self, verdict: Verdict) -> Vec<&Line> {
        let ours = self.lines.iter().filter(|line| line.ours);
        ours.filter(|line| line.corrected == Some(verdict))
            .collect()
    }

    /// Rows of ours on which another scheduler is better, those by most first.
    pub fn behind(&self) -> Vec<&Line> {
        let ours = self.lines.iter().filter(|line| line.ours);
        let mut behind: Vec<_> = ours
            .filter(|line| line.to_best() == Some(Verdict::Loss))
            .collect();
        behind.sort_by(|a, b| b.behind_by().total_cmp(&a.behind_by()));
        behind
    }

    /// Our schedulers, in the order of the campaign.
    pub fn standings(&self) -> Vec<(String, Standing)> {
        let mut all: Vec<(String, Standing)> = Vec::new();
        for line in self.lines.iter().filter(|line| line.ours) {
            let name = &line.row.scheduler;
            let at = all
                .iter()
                .position(|(other, _)| other == name)
                .unwrap_or_else(|| {
                    all.push((name.clone(), Standing::default()));
                    all.len() - 1
                });
            let standing = &mut all[at].1;
            standing.rows += 1;
            match line.to_best() {
                _ if line.row.value.runs < MIN_RUNS => standing.unknown += 1,
                Some(Verdict::Unknown) => standing.unknown += 1,
                Some(Verdict::Loss) => {}
                _ => standing.level += 1,
            }
            standing.far += usize::from(line.is_far());
        }
        all
    }
}

impl Line {
    /// What the ratio to the best says, by its own interval; none if this is the best.
    fn to_best(&self) -> Option<Verdict> {
        let (_, ratio) = self.best.as_ref()?;
        Some(Verdict::of(ratio, self.row.better == Better::Lower))
    }

    /// A figure that is worse has a value above 1, whichever way is better.
    fn worse(&self, ratio: f64) -> f64 {
        match self.row.better {
            Better::Lower => ratio,
            Better::Higher => 1.0 / ratio.max(f64::MIN_POSITIVE),
        }
    }

    fn behind_by(&self) -> f64 {
        self.best
            .as_ref()
            .map_or(1.0, |(_, ratio)| self.worse(ratio.median))
    }

    /// Is it worse than the baseline by more than [`FAR`], by the median?
    pub fn is_far(&self) -> bool {
        self.row
            .ratio
            .is_some_and(|ratio| self.worse(ratio.median) > 1.0 + FAR)
    }
}

fn lines_of(campaign: &Campaign, place: &Place) -> Vec<Line> {
    let record = &place.record;
    let wanted = |row: &&Row| {
        let workload = campaign
            .workloads
            .iter()
            .find(|w| w.label() == row.workload);
        workload.is_none_or(|w| w.metrics.is_empty() || w.metrics.contains(&row.metric))
    };
    let rows: Vec<&Row> = record.summary.iter().filter(wanted).collect();
    let same = |a: &&Row, b: &&Row| (&a.workload, &a.metric) == (&b.workload, &b.metric);
    (rows.chunk_by(same))
        .flat_map(|rows| {
            let rivals = rows
                .iter()
                .filter(|row| !record.bounds.contains(&row.scheduler));
            let best = rivals.min_by(|a, b| match a.better {
                Better::Lower => a.value.median.total_cmp(&b.value.median),
                Better::Higher => b.value.median.total_cmp(&a.value.median),
            });
            rows.iter().map(move |row| Line {
                machine: place.label.clone(),
                ours: place.ours.contains(&row.scheduler),
                q: None,
                corrected: None,
                best: best
                    .filter(|best| best.scheduler != row.scheduler)
                    .and_then(|best| Some((best.name(), record.ratio(row, best)?))),
                why: None,
                row: (*row).clone(),
            })
        })
        .collect()
}

/// Adjusts all verdicts for how many there are; those of too few seeds are none.
fn correct(lines: &mut [Line]) {
    let enough = |line: &Line| line.row.ratio.is_some_and(|ratio| ratio.runs >= MIN_RUNS);
    let tests: Vec<f64> = (lines.iter())
        .filter(|line| enough(line))
        .filter_map(|line| line.row.p)
        .collect();
    let mut adjusted = benjamini_hochberg(&tests).into_iter();
    for line in lines {
        let Some(ratio) = line.row.ratio else {
            continue;
        };
        if !enough(line) {
            line.corrected = Some(Verdict::Unknown);
            continue;
        }
        line.q = adjusted.next();
        let differs = line.q.is_some_and(|q| q <= RATE);
        line.corrected = Some(match line.worse(ratio.median).partial_cmp(&1.0) {
            Some(std::cmp::Ordering::Greater) if differs => Verdict::Loss,
            Some(std::cmp::Ordering::Less) if differs => Verdict::Win,
            _ => Verdict::Level,
        });
    }
}

fn why<'a>(reasons: &'a [Why], line: &Line) -> Option<&'a Why> {
    let (row, machine) = (&line.row, &line.machine);
    let fits = |why: &&Why| why.fits(machine, &row.workload, &row.metric, &row.scheduler);
    reasons.iter().find(fits)
}
