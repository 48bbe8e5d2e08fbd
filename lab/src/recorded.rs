// SPDX-License-Identifier: GPL-2.0-only
//! Recorded times and metrics of simulated machines, tests/times/SET.toml.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    #[error("cannot read the recorded times {}: {reason}", path.display())]
    Times { path: PathBuf, reason: String },
    #[error("{}: {what} {reason}", path.display())]
    Case {
        path: PathBuf,
        what: String,
        reason: &'static str,
    },
}

/// What is recorded: what figures depend on beside the project, and the figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    pub inputs: Inputs,
    pub cases: Vec<Case>,
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    inputs: Inputs,
    #[serde(rename = "case")]
    cases: Vec<WrittenCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCase {
    machine: String,
    workload: String,
    #[serde(default)]
    parameters: Vec<String>,
    scheduler: String,
    metric: Option<String>,
    within: Option<f64>,
    ns: Option<Vec<u64>>,
    values: Option<Vec<f64>>,
}

/// What is run; several cases may be figures of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    pub machine: String,
    pub workload: String,
    pub parameters: Vec<String>,
    pub scheduler: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    pub setup: Setup,
    /// One that the workload prints; the time of the run if there is none.
    pub metric: Option<String>,
    /// The share by which it may move beside the kernel's own scheduler, where
    /// figures cannot be compared exactly; none: as all others.
    pub within: Option<f64>,
    /// By seed, from 1 on. Times are ns, which are exact up to 104 days.
    pub values: Vec<f64>,
}

impl Setup {
    pub fn what(&self) -> String {
        let mut what = format!("{}, {}", self.machine, self.workload);
        for parameter in &self.parameters {
            what.push(' ');
            what.push_str(parameter);
        }
        what
    }

    pub fn name(&self, seed: u32) -> String {
        format!("{}, {}, seed {seed}", self.what(), self.scheduler)
    }
}

impl Case {
    /// One of machine m and workload w, for tests.
    #[cfg(test)]
    pub fn sample(
        parameters: &[&str],
        scheduler: &str,
        metric: Option<&str>,
        values: &[f64],
    ) -> Self {
        Self {
            setup: Setup {
                machine: "m".into(),
                workload: "w".into(),
                parameters: parameters.iter().map(|&text| text.into()).collect(),
                scheduler: scheduler.into(),
            },
            metric: metric.map(Into::into),
            within: None,
            values: values.into(),
        }
    }

    /// The figure, without the scheduler.
    pub fn what(&self) -> String {
        match &self.metric {
            Some(metric) => format!("{}, {metric}", self.setup.what()),
            None => self.setup.what(),
        }
    }

    pub fn name(&self) -> String {
        format!("{}, {}", self.what(), self.setup.scheduler)
    }
}

impl WrittenCase {
    /// The case, or what is wrong with it.
    fn case(self) -> Result<Case, (String, &'static str)> {
        let mut case = Case {
            setup: Setup {
                machine: self.machine,
                workload: self.workload,
                parameters: self.parameters,
                scheduler: self.scheduler,
            },
            metric: self.metric,
            within: self.within,
            values: Vec::new(),
        };
        if case
            .within
            .is_some_and(|within| within.is_nan() || within <= 0.0)
        {
            return Err((case.name(), "has a within that is no share above 0"));
        }
        let values = match (&case.metric, self.ns, self.values) {
            (_, Some(_), Some(_)) => Err("has both ns and values, and is one figure"),
            (_, None, None) => {
                Err("has neither ns nor, with a metric, values: write ns = [0, 0] for two seeds")
            }
            (Some(_), Some(_), None) => Err("has ns, which a metric has not: write values"),
            (None, None, Some(_)) => Err("has values of no metric: name it, or write ns"),
            (None, Some(ns), None) if ns.is_empty() => {
                Err("has no seeds: write ns = [0, 0] for two")
            }
            (Some(_), None, Some(values)) if values.is_empty() => {
                Err("has no seeds: write values = [0, 0] for two")
            }
            // Nothing is equal to NaN, nor away from it by too much.
            (Some(_), None, Some(values)) if !values.iter().all(|v| v.is_finite() && *v >= 0.0) => {
                Err("has a value that no workload may print")
            }
            (None, Some(ns), None) => Ok(ns.into_iter().map(|ns| ns as f64).collect()),
            (Some(_), None, Some(values)) => Ok(values),
        };
        match values {
            Ok(values) => {
                case.values = values;
                Ok(case)
            }
            Err(reason) => Err((case.name(), reason)),
        }
    }
}

impl Recorded {
    pub fn load(path: &Path) -> Result<Self, Wrong> {
        let unusable = |reason: String| Wrong::Times {
            path: path.into(),
            reason,
        };
        let text = std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
        let written: Written =
            toml::from_str(&text).map_err(|error| unusable(error.message().into()))?;
        let cases = written.cases.into_iter().map(|written| {
            written.case().map_err(|(what, reason)| Wrong::Case {
                path: path.into(),
                what,
                reason,
            })
        });
        Ok(Self {
            inputs: written.inputs,
            cases: cases.collect::<Result<_, _>>()?,
        })
    }

    pub fn text(&self) -> String {
        let quoted = |text: &str| toml::Value::String(text.into()).to_string();
        let list = |all: Vec<String>| format!("[{}]", all.join(", "));
        let mut out = String::from(HEADER);
        // Writing to a string cannot fail.
        for (name, value) in &self.inputs {
            writeln!(out, "{name} = {}", quoted(value)).ok();
        }
        for Case {
            setup,
            metric,
            within,
            values,
        } in &self.cases
        {
            writeln!(out, "\n[[case]]\nmachine = {}", quoted(&setup.machine)).ok();
            writeln!(out, "workload = {}", quoted(&setup.workload)).ok();
            if !setup.parameters.is_empty() {
                let all = list(setup.parameters.iter().map(|p| quoted(p)).collect());
                writeln!(out, "parameters = {all}").ok();
            }
            writeln!(out, "scheduler = {}", quoted(&setup.scheduler)).ok();
            if let Some(within) = within {
                writeln!(out, "within = {within:?}").ok();
            }
            if let Some(metric) = metric {
                let all = list(values.iter().map(|value| format!("{value:?}")).collect());
                writeln!(out, "metric = {}\nvalues = {all}", quoted(metric)).ok();
            } else {
                let all = list(values.iter().map(|ns| format!("{ns:.0}")).collect());
                writeln!(out, "ns = {all}").ok();
            }
        }
        out
    }
}

const HEADER: &str = "\
# SPDX-License-Identifier: GPL-2.0-only
# Times of simulated machines, in nanoseconds, and metrics that workloads print,
# by seed: scripts/machine check compares with them. Written by scripts/machine
# check --record, after a change that is meant to change them. A new case is
# written by hand, with ns = [0, 0] for two seeds, or with metric = \"NAME\" and
# values = [0, 0], and then recorded; within = 0.5 lets it move by half beside
# EEVDF where figures cannot be compared exactly, rather than by 8%.

# What they depend on; project: what of it is bpf/, machine/ and bench/.
[inputs]
";

/// The input that is changed on purpose only.
pub const PROJECT: &str = "project";

pub type Inputs = BTreeMap<String, String>;

/// A line for each that is another.
pub fn differences(recorded: &Inputs, here: &Inputs) -> Vec<String> {
    let mut names: Vec<_> = recorded.keys().chain(here.keys()).collect();
    names.sort();
    names.dedup();
    names
        .into_iter()
        .filter(|name| *name != PROJECT && recorded.get(*name) != here.get(*name))
        .map(|name| {
            let value = |all: &Inputs| all.get(name).map_or("none", String::as_str).to_string();
            format!("{name} {}, recorded with {}", value(here), value(recorded))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(scheduler: &str, metric: Option<&str>, values: &[f64]) -> Case {
        Case {
            within: metric.map(|_| 0.25),
            ..Case::sample(&["W_JOBS=\"4\""], scheduler, metric, values)
        }
    }

    fn loaded(text: &str) -> Result<Recorded, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("times.toml");
        std::fs::write(&path, text).unwrap();
        Recorded::load(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_written_is_read() {
        let recorded = Recorded {
            inputs: [("qemu".to_string(), "QEMU \"10\"".to_string())].into(),
            cases: vec![
                case("auto", None, &[321_826_061.0, 2f64.powi(53)]),
                case("auto", Some("p99"), &[0.1 + 0.2, 0.0, 1e-7, 3e20, 12.0]),
            ],
        };
        let text = recorded.text();
        assert!(
            text.contains("ns = [321826061, 9007199254740992]\n"),
            "{text}"
        );
        assert_eq!(loaded(&text).unwrap(), recorded);
        assert!(loaded("[inputs]\nx = 1\n").is_err());
        assert!(loaded(&text.replace("metric", "metrics")).is_err());
    }

    #[test]
    fn a_case_is_a_time_or_a_metric() {
        let with = |figures: &str| {
            let case = "machine = \"m\"\nworkload = \"w\"\nscheduler = \"off\"\n";
            loaded(&format!("[inputs]\n[[case]]\n{case}{figures}\n"))
        };
        assert_eq!(with("ns = [0, 1]").unwrap().cases[0].values, [0.0, 1.0]);
        let metric = with("metric = \"p99\"\nvalues = [0, 1.5]").unwrap();
        assert_eq!(metric.cases[0].values, [0.0, 1.5]);
        assert_eq!(metric.cases[0].metric.as_deref(), Some("p99"));
        for (figures, error) in [
            ("ns = []", "m, w, off has no seeds: write ns"),
            (
                "metric = \"p99\"\nvalues = []",
                "m, w, p99, off has no seeds: write values",
            ),
            ("ns = [1]\nvalues = [1]", "m, w, off has both ns and values"),
            (
                "metric = \"p99\"\nns = [1]\nvalues = [1]",
                "m, w, p99, off has both ns and values",
            ),
            ("", "m, w, off has neither ns nor"),
            ("metric = \"p99\"", "m, w, p99, off has neither ns nor"),
            (
                "metric = \"p99\"\nns = [1]",
                "m, w, p99, off has ns, which a metric has not",
            ),
            ("values = [1]", "m, w, off has values of no metric"),
            (
                "metric = \"p99\"\nvalues = [1, nan]",
                "m, w, p99, off has a value that no workload may print",
            ),
            (
                "within = 0.0\nns = [1]",
                "m, w, off has a within that is no share above 0",
            ),
            (
                "metric = \"p99\"\nvalues = [-1]",
                "m, w, p99, off has a value that no workload may print",
            ),
        ] {
            let message = with(figures).unwrap_err();
            assert!(message.contains("times.toml: "), "{message}");
            assert!(message.contains(error), "{figures:?}: {message}");
        }
    }

    #[test]
    fn what_is_another_is_named_with_both_values() {
        let inputs = |kernel: &str, project: &str| -> Inputs {
            [("kernel", kernel), (PROJECT, project)]
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .into()
        };
        assert!(differences(&inputs("1", "a"), &inputs("1", "b")).is_empty());
        assert_eq!(
            differences(&inputs("1", "a"), &inputs("2", "a")),
            ["kernel 2, recorded with 1"]
        );
        assert_eq!(
            differences(&Inputs::new(), &inputs("2", "a")),
            ["kernel 2, recorded with none"]
        );
    }
}
