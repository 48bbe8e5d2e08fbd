// SPDX-License-Identifier: GPL-2.0-only
//! The runs of a comparison: what each one gave, and who watches them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::figures::Metric;

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Metrics(Vec<Metric>),
    Failed(String),
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Run {
    pub workload: String,
    pub scheduler: String,
    /// From 0; those of the warm-up come first.
    pub round: u32,
    pub warmup: bool,
    /// What /sys/kernel/sched_ext/root/ops said, which has the version in it.
    pub ops: Option<String>,
    /// Seconds since the first run began.
    pub start_s: f64,
    /// Seconds that the workload took by the machine's clock, without its scheduler's start.
    pub took_s: f64,
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Run {
    /// The metric of this name, if it has one.
    pub fn metric(&self, name: &str) -> Option<&Metric> {
        match &self.outcome {
            Outcome::Metrics(metrics) => metrics.iter().find(|metric| metric.name == name),
            Outcome::Failed(_) => None,
        }
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the scheduler {ops} is still loaded {} s after its program was ended: nothing can be measured any more", .after.as_secs())]
    StillLoaded { ops: String, after: Duration },
    #[error("this host can make no runs: {0}")]
    Host(String),
}

/// What watches the engine at work.
pub trait Watch {
    fn begin(&mut self, round: u32, rounds: u32, workload: &str, scheduler: &str);
    fn end(&mut self, run: &Run);
    /// After the last run.
    fn finish(&mut self);
}

#[derive(Debug)]
pub struct Results {
    pub runs: Vec<Run>,
    pub interrupted: bool,
    /// Why the rest of the plan could not be run.
    pub broken: Option<Error>,
}
