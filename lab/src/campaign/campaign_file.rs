// SPDX-License-Identifier: GPL-2.0-only
//! The file of a campaign: which workloads are run where, under what, and how often.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use freqlock::lab_args::Arch;
use serde::Deserialize;

use crate::schedulers::KERNEL;
use crate::sim::description::with_line;

/// The machine that this runs on, as campaigns call it.
pub const HOST: &str = "host";

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot take the campaign {}: {reason}", path.display())]
pub struct Wrong {
    path: PathBuf,
    reason: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Campaign {
    /// As `compare --schedulers` names them.
    pub schedulers: Vec<String>,
    #[serde(default = "kernels_own")]
    pub baseline: String,
    /// Rounds, each of which has a seed of its own where machines are simulated.
    pub seeds: u32,
    #[serde(rename = "machine")]
    pub machines: Vec<Machine>,
    #[serde(rename = "workload")]
    pub workloads: Vec<Workload>,
    /// Losses that are understood.
    #[serde(rename = "why", default)]
    pub reasons: Vec<Why>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Machine {
    /// A simulated one, or `host`.
    pub name: String,
    /// What results and reports call it; its name if there is none.
    pub label: Option<String>,
    /// Only so many of its CPUs.
    pub cpus: Option<u32>,
    #[serde(default)]
    pub migration_cost: bool,
    /// Of its guests; without it that of `compare --arch`.
    pub arch: Option<Arch>,
    /// The kernel that it boots, as `scripts/machine prepare --also` was told.
    pub kernel: Option<String>,
    /// What scripts/machine has prepared, if it is not what is used without this.
    pub kit: Option<PathBuf>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Workload {
    /// A folder of bench/.
    pub name: String,
    /// What results and reports call it; its name if there is none.
    pub label: Option<String>,
    /// `NAME=VALUE`, as bench/README.md has them.
    #[serde(default)]
    pub parameters: Vec<String>,
    /// Those that are compared; all that it prints if there is none.
    #[serde(default)]
    pub metrics: Vec<String>,
    /// Labels of the machines that it runs on; all if there is none.
    #[serde(default)]
    pub machines: Vec<String>,
}

/// Why a scheduler loses: of all rows that fit.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Why {
    pub workload: String,
    pub machine: Option<String>,
    pub metric: Option<String>,
    pub scheduler: Option<String>,
    pub reason: String,
}

fn kernels_own() -> String {
    KERNEL.into()
}

impl Machine {
    pub fn label(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.name)
    }
}

impl Workload {
    pub fn label(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.name)
    }

    pub fn runs_on(&self, machine: &Machine) -> bool {
        self.machines.is_empty() || self.machines.iter().any(|label| label == machine.label())
    }
}

impl Why {
    pub fn fits(&self, machine: &str, workload: &str, metric: &str, scheduler: &str) -> bool {
        let fits = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|w| w == is);
        self.workload == workload
            && fits(&self.machine, machine)
            && fits(&self.metric, metric)
            && fits(&self.scheduler, scheduler)
    }
}

impl Campaign {
    pub fn load(path: &Path) -> Result<Self, Wrong> {
        let wrong = |reason: String| Wrong {
            path: path.into(),
            reason,
        };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        Self::parse(&text).map_err(wrong)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let campaign: Self = toml::from_str(text).map_err(|error| with_line(&error, text))?;
        campaign.check()?;
        Ok(campaign)
    }

    fn check(&self) -> Result<(), String> {
        if !(1..=10_000).contains(&self.seeds) {
            return Err(format!("seeds = {} is not in 1..10000", self.seeds));
        }
        for (what, none) in [
            ("schedulers", self.schedulers.is_empty()),
            ("machines", self.machines.is_empty()),
            ("workloads", self.workloads.is_empty()),
        ] {
            if none {
                return Err(format!("it names no {what}"));
            }
        }
        let machines = unique("machine", self.machines.iter().map(Machine::label))?;
        unique("workload", self.workloads.iter().map(Workload::label))?;
        for workload in &self.workloads {
            let label = workload.label();
            let prefix = workload.name.to_uppercase() + "_";
            for parameter in &workload.parameters {
                if !parameter.starts_with(&prefix) || !parameter.contains('=') {
                    return Err(format!(
                        "{label} cannot have the parameter {parameter}: it takes {prefix}NAME=VALUE"
                    ));
                }
            }
            if let Some(unknown) = workload
                .machines
                .iter()
                .find(|m| !machines.contains(m.as_str()))
            {
                let known: Vec<_> = machines.iter().copied().collect();
                return Err(format!(
                    "{label} is to run on {unknown}, and there are {}",
                    known.join(", ")
                ));
            }
        }
        for machine in &self.machines {
            if !self
                .workloads
                .iter()
                .any(|workload| workload.runs_on(machine))
            {
                return Err(format!("no workload runs on {}", machine.label()));
            }
        }
        for machine in self.machines.iter().filter(|machine| machine.name == HOST) {
            if machine.cpus.is_some()
                || machine.migration_cost
                || machine.arch.is_some()
                || machine.kernel.is_some()
                || machine.kit.is_some()
            {
                return Err(format!(
                    "{} is this machine: only simulated ones have cpus, migration-cost, arch, kernel and kit",
                    machine.label()
                ));
            }
        }
        for machine in &self.machines {
            let label = machine.label();
            match &machine.kernel {
                Some(_) if machine.kit.is_some() => {
                    return Err(format!("{label} has a kernel and a kit, which names one"))
                }
                Some(kernel) if !is_name(kernel) => {
                    return Err(format!(
                    "{label} cannot boot the kernel {kernel:?}: it is newest, oldest or a version"
                ))
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Can that be the name of a folder or a file?
fn is_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && !name.starts_with('.') && name.chars().all(good)
}

/// All of them, each of which can be a folder's name that no other one has.
fn unique<'a>(
    what: &str,
    labels: impl Iterator<Item = &'a str>,
) -> Result<BTreeSet<&'a str>, String> {
    let mut all = BTreeSet::new();
    for label in labels {
        if !is_name(label) {
            return Err(format!(
                "a {what} cannot be called {label:?}: give it a label of letters, digits, - and _"
            ));
        }
        if !all.insert(label) {
            return Err(format!("two {what}s are called {label}: give one a label"));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
schedulers = ["eevdf", "auto"]
seeds = 10
[[machine]]
name = "turbo-laptop-8"
[[machine]]
name = "turbo-laptop-8"
label = "two"
cpus = 2
[[workload]]
name = "schbench"
label = "half"
parameters = ["SCHBENCH_WORKERS=4"]
machines = ["two"]
[[workload]]
name = "schbench"
[[why]]
workload = "half"
metric = "p99"
reason = "because"
"#;

    #[test]
    fn a_campaign_is_what_its_file_says() {
        let campaign = Campaign::parse(GOOD).unwrap();
        assert_eq!(campaign.baseline, "eevdf");
        let (machines, half) = (&campaign.machines, &campaign.workloads[0]);
        assert_eq!(machines[1].label(), "two");
        assert!(half.runs_on(&machines[1]) && !half.runs_on(&machines[0]));
        assert!(campaign.workloads[1].runs_on(&machines[0]));
        let why = &campaign.reasons[0];
        assert!(why.fits("two", "half", "p99", "auto"));
        assert!(!why.fits("two", "half", "p50", "auto") && !why.fits("two", "x", "p99", "auto"));
    }

    #[test]
    fn what_is_wrong_is_said_in_a_line() {
        for (from, to, says) in [
            ("seeds = 10", "seeds = 0", "seeds = 0 is not in 1..10000"),
            ("seeds = 10", "seed = 10", "line 3: unknown field `seed`"),
            (
                "label = \"two\"\n",
                "",
                "two machines are called turbo-laptop-8",
            ),
            (
                "label = \"half\"",
                "label = \"../x\"",
                "a workload cannot be called \"../x\"",
            ),
            (
                "label = \"half\"\n",
                "",
                "two workloads are called schbench",
            ),
            (
                "[\"two\"]",
                "[\"one\"]",
                "half is to run on one, and there are turbo-laptop-8, two",
            ),
            (
                "SCHBENCH_WORKERS=4",
                "PATH=/tmp",
                "cannot have the parameter PATH=/tmp",
            ),
            ("[\"eevdf\", \"auto\"]", "[]", "it names no schedulers"),
            (
                "name = \"turbo-laptop-8\"\nlabel",
                "name = \"host\"\nlabel",
                "two is this machine",
            ),
            (
                "cpus = 2",
                "kernel = \"newest\"\nkit = \"k.toml\"",
                "two has a kernel and a kit",
            ),
            ("cpus = 2", "arch = \"sparc\"", "unknown variant `sparc`"),
            (
                "name = \"turbo-laptop-8\"\nlabel",
                "name = \"host\"\narch = \"arm64\"\nlabel",
                "two is this machine",
            ),
            (
                "cpus = 2",
                "kernel = \"../x\"",
                "two cannot boot the kernel \"../x\"",
            ),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let error = Campaign::parse(&GOOD.replace(from, to)).unwrap_err();
            assert!(error.starts_with(says) || error.contains(says), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
        let missing = Campaign::load(Path::new("/none.toml"))
            .unwrap_err()
            .to_string();
        assert!(
            missing.starts_with("cannot take the campaign /none.toml: "),
            "{missing}"
        );
    }
}
