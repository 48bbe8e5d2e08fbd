// SPDX-License-Identifier: GPL-2.0-only
//! All runs of a campaign in one file, which a repository keeps: the report can be written
//! from it again, and by that be held true, where nothing is prepared to run anything.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::campaign_file::Campaign;
use super::rows::{Place, Table};
use crate::compare::plan::{Plan, Workload};
use crate::compare::results::Record;
use crate::compare::runs::{Results, Run};
use crate::compare::testbed::Machine;
use crate::recorded::Inputs;
use crate::schedulers::{Bound, Scheduler};

/// Changes when a reader would have to change.
const FORMAT: u32 = 1;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is no archive of this campaign: {reason}", path.display())]
    Wrong { path: PathBuf, reason: String },
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    format: u32,
    /// Of the program that made the runs.
    version: String,
    machines: Vec<Archived>,
}

/// One machine's.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Archived {
    pub label: String,
    pub machine: Machine,
    /// What its figures depend on.
    pub inputs: Inputs,
    pub left_out: Vec<String>,
    pub ours: Vec<String>,
    /// Those that are compared, and those that are run for the best of pinned ones.
    pub schedulers: Vec<Named>,
    pub pinned: Vec<Named>,
    pub runs: Vec<Run>,
    /// By workload, of those that have any.
    pub parameters: BTreeMap<String, Vec<String>>,
}

#[derive(Clone, Deserialize, Serialize)]
pub struct Named {
    label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bound: Option<Bound>,
}

impl From<&Scheduler> for Named {
    fn from(of: &Scheduler) -> Self {
        Self {
            label: of.label.clone(),
            bound: of.bound,
        }
    }
}

impl From<&Named> for Scheduler {
    fn from(of: &Named) -> Self {
        Self {
            label: of.label.clone(),
            loader: None,
            bound: of.bound,
        }
    }
}

impl Archive {
    pub fn new(machines: Vec<Archived>) -> Self {
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            machines,
        }
    }

    pub fn load(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
            path: path.into(),
            source,
        })?;
        let archive: Self = serde_json::from_str(&text).map_err(|error| Error::Wrong {
            path: path.into(),
            reason: error.to_string(),
        })?;
        match archive.format {
            FORMAT => Ok(archive),
            other => Err(Error::Wrong {
                path: path.into(),
                reason: format!("format {other}, here {FORMAT}"),
            }),
        }
    }

    /// A line for each run.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        let text = serde_json::to_string(self)?;
        Ok(text.replace("{\"workload\":", "\n{\"workload\":") + "\n")
    }

    /// What the runs say; the reason is why they are not of this campaign.
    pub fn table(&self, campaign: &Campaign) -> Result<Table, String> {
        let places: Result<Vec<Place>, String> = (self.machines.iter())
            .map(|machine| machine.place(campaign))
            .collect();
        let mut table = Table::new(campaign, places?);
        table.version.clone_from(&self.version);
        Ok(table)
    }
}

impl Archived {
    pub fn place(&self, campaign: &Campaign) -> Result<Place, String> {
        let machine = campaign.machines.iter().find(|m| m.label() == self.label);
        let machine = machine.ok_or_else(|| format!("it has no machine {}", self.label))?;
        let workloads: Vec<Workload> = (campaign.workloads.iter())
            .filter(|workload| workload.runs_on(machine))
            .map(|workload| Workload {
                name: workload.label().into(),
                run: PathBuf::new(),
                parameters: workload.parameters.clone(),
            })
            .collect();
        if parameters(&workloads) != self.parameters {
            return Err(format!(
                "its workloads have other parameters on {}",
                self.label
            ));
        }
        if let Some(run) =
            (self.runs.iter()).find(|r| !workloads.iter().any(|w| w.name == r.workload))
        {
            return Err(format!("it has no workload {}", run.workload));
        }
        let schedulers: Vec<Scheduler> = self.schedulers.iter().map(Into::into).collect();
        let baseline = schedulers.iter().position(|s| s.label == campaign.baseline);
        let plan = Plan {
            workloads,
            baseline: baseline
                .ok_or_else(|| format!("no {} on {}", campaign.baseline, self.label))?,
            schedulers,
            pinned: self.pinned.iter().map(Into::into).collect(),
            warmup: 0,
            runs: campaign.seeds,
            budget: None,
            made: Default::default(),
        };
        let results = Results {
            runs: self.runs.clone(),
            interrupted: false,
            broken: None,
        };
        Ok(Place {
            label: self.label.clone(),
            left_out: self.left_out.clone(),
            ours: self.ours.clone(),
            record: Record::new(&plan, self.machine.clone(), results),
        })
    }
}

/// Of those that have any.
pub fn parameters(workloads: &[Workload]) -> BTreeMap<String, Vec<String>> {
    (workloads.iter())
        .filter(|workload| !workload.parameters.is_empty())
        .map(|workload| (workload.name.clone(), workload.parameters.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::publish;
    use super::*;

    /// docs/BENCHMARKS.md is what the runs beside it say, to the last digit: a number that is
    /// changed by hand fails here.
    #[test]
    fn the_benchmarks_in_docs_are_what_their_runs_say() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let campaign = Campaign::load(&root.join("bench/campaign-short.toml")).unwrap();
        let archive = root.join("docs/benchmarks/campaign-short.json");
        let table = Archive::load(&archive).unwrap().table(&campaign).unwrap();
        let written = std::fs::read_to_string(root.join("docs/BENCHMARKS.md")).unwrap();
        let printed = publish::page(&table, "campaign-short");
        for (nr, (is, says)) in written.lines().zip(printed.lines()).enumerate() {
            assert_eq!(is, says, "docs/BENCHMARKS.md:{}", nr + 1);
        }
        assert_eq!(written.lines().count(), printed.lines().count());
    }
}
