// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock machine check`: the machine's times of a fixed set of runs,
//! and metrics that their workloads print, held against those recorded in
//! tests/times/SET.toml, to the nanosecond. So a change that makes a scheduler
//! slower is seen at once, and one that is meant to change times has to record
//! them anew.
//!
//! Times depend on more than the scheduler: any other kernel, QEMU, package of
//! the guest, compiler or change of the agent makes another image or machine,
//! and moves single times by some per cent. Where only such things are others
//! than recorded, it says so, and holds what can be held: a run twice gives the
//! same, and each scheduler is about as fast, beside the kernel's own, as it was.

pub mod gate;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use crate::figures::Metric;
use crate::recorded::{differences, Case, Inputs, Recorded, Setup, Wrong, PROJECT};
use crate::sim;
use crate::sim::batch::{jobs, side_by_side, Interrupt};
use crate::sim::description::Description;
use crate::sim::flat::Variant;
use crate::sim::folders::machines_dir;
use crate::sim::job::{self, simulate, write, Base, Job};
use crate::sim::run::to_stdout;
use crate::sim::workload::{measured, one_line, shift_us, LIMIT_S};
use crate::sim::{guest, image};
use freqlock::lab_args::{Arch, CheckArgs};
use freqlock::output;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Sim(#[from] sim::error::Error),
    #[error(transparent)]
    Wrong(#[from] Wrong),
    #[error("cannot catch Ctrl-C")]
    Signal(#[from] ctrlc::Error),
    #[error("not every run of {0} gave its figures (see above): nothing can be compared")]
    NoFigures(String),
}

impl Error {
    /// The exit status: what the simulation says, else that the machine failed.
    pub fn status(&self) -> u8 {
        match self {
            Self::Sim(error) => error.status(),
            Self::Wrong(_) | Self::Signal(_) | Self::NoFigures(_) => 125,
        }
    }
}

/// One run that is to be made, and its result. It may serve several cases.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    setup: &'a Setup,
    seed: u32,
}

struct Ran<'a> {
    wanted: Wanted<'a>,
    result: Result<Outcome, String>,
}

#[derive(Debug, PartialEq)]
struct Outcome {
    ns: u64,
    metrics: Vec<Metric>,
}

impl Outcome {
    /// What a case records of the run.
    fn figure(&self, case: &Case) -> Result<f64, String> {
        let Some(name) = &case.metric else {
            return Ok(self.ns as f64);
        };
        let found = self.metrics.iter().find(|metric| metric.name == *name);
        found.map(|metric| metric.value).ok_or_else(|| {
            let all: Vec<_> = self.metrics.iter().map(|m| m.name.as_str()).collect();
            format!("printed no metric {name}, but {}", all.join(", "))
        })
    }

    /// That it has all that the cases want, in words.
    fn text(&self, cases: &[&Case]) -> Result<String, String> {
        let mut parts = Vec::new();
        for case in cases {
            parts.push(match &case.metric {
                Some(name) => format!("{name} {}", self.figure(case)?),
                None => verdict::ms(self.figure(case)?),
            });
        }
        Ok(parts.join(", "))
    }
}

/// The runs of the cases, each once.
fn runs(cases: &[Case]) -> Vec<Wanted<'_>> {
    let mut all: Vec<Wanted> = Vec::new();
    for case in cases {
        for (seed, _) in (1..).zip(&case.values) {
            let setup = &case.setup;
            if !all.iter().any(|of| of.seed == seed && of.setup == setup) {
                all.push(Wanted { setup, seed });
            }
        }
    }
    all
}

/// The cases with the figures of now; none if any run has failed or is missing.
fn cases_now(recorded: &[Case], ran: &[Ran]) -> Option<Vec<Case>> {
    let mut cases = recorded.to_vec();
    for case in &mut cases {
        for (seed, value) in (1..).zip(0..case.values.len()) {
            let run = ran
                .iter()
                .find(|run| run.wanted.seed == seed && *run.wanted.setup == case.setup)?;
            case.values[value] = run.result.as_ref().ok()?.figure(case).ok()?;
        }
    }
    Some(cases)
}

/// What the times depend on.
fn inputs(base: &Base, machines: &Path, cases: &[Case]) -> Result<Inputs, sim::error::Error> {
    let mut project = image::Tree::default();
    let root = machines.with_file_name("");
    for path in [
        "bpf",
        "bench/common.h",
        "bench/cpus.h",
        "bench/histogram.h",
        "bench/lib.sh",
        "bench/threads.h",
        "machine/plugin",
        "machine/guest",
    ] {
        project.add(&root.join(path), path)?;
    }
    for case in cases {
        let machine = format!("machine/{}.toml", case.setup.machine);
        let workload = format!("bench/{}", case.setup.workload);
        for path in [machine, workload] {
            project.add(&root.join(&path), &path)?;
        }
    }
    let project = project
        .archive()
        .map_err(|source| sim::error::Error::Write { path: root, source })?;
    Ok([
        ("image", base.digest.clone()),
        ("kernel", base.kit.kernel_version.clone()),
        (PROJECT, image::digest(&project)),
        ("qemu", base.kit.qemu_version.clone()),
    ]
    .map(|(name, value)| (name.to_string(), value))
    .into())
}

/// A set of runs that can be made.
struct Check {
    /// Machines that run at a time, if that is wanted.
    jobs: Option<usize>,
    timeout: Duration,
    base: Base,
    machines: BTreeMap<String, Description>,
    times: PathBuf,
    recorded: Recorded,
    /// What the figures depend on, as it is.
    here: Inputs,
    interrupt: Interrupt,
}

pub fn run(args: &CheckArgs) -> Result<ExitCode, Error> {
    let root = machines_dir(None)?.with_file_name("");
    let check = Check::load(
        &root,
        &args.set,
        &args.kit,
        args.jobs,
        args.timeout_s,
        Interrupt::on_signal()?,
    )?;
    if args.record {
        check.record()
    } else {
        check.compare()
    }
}

/// The machines of the cases, by name.
fn machines(
    cases: &[Case],
    dir: &Path,
) -> Result<BTreeMap<String, Description>, sim::error::Error> {
    let names: BTreeSet<&String> = cases.iter().map(|case| &case.setup.machine).collect();
    names
        .into_iter()
        .map(|name| Ok((name.clone(), Description::load(name, dir)?)))
        .collect()
}

impl Check {
    /// The set of this name of the project in `root`, on what is prepared in `kit`.
    fn load(
        root: &Path,
        set: &str,
        kit: &Path,
        jobs: Option<usize>,
        timeout_s: u64,
        interrupt: Interrupt,
    ) -> Result<Self, Error> {
        let dir = root.join("machine");
        let times = root.join("tests/times").join(format!("{set}.toml"));
        let recorded = Recorded::load(&times)?;
        let machines = machines(&recorded.cases, &dir)?;
        let base = Base::load(kit, Arch::X86_64)?;
        Ok(Self {
            here: inputs(&base, &dir, &recorded.cases)?,
            jobs,
            timeout: Duration::from_secs(timeout_s),
            base,
            machines,
            times,
            recorded,
            interrupt,
        })
    }

    /// The cases that a run serves.
    fn served(&self, wanted: &Wanted) -> Vec<&Case> {
        let seeds = wanted.seed as usize;
        let cases = self.recorded.cases.iter();
        cases
            .filter(|case| case.setup == *wanted.setup && case.values.len() >= seeds)
            .collect()
    }

    fn run<'b>(&self, wanted: &[Wanted<'b>]) -> Vec<Ran<'b>> {
        let memory = self.machines.values().map(|machine| machine.memory_mb);
        let total = wanted.len();
        let mut done = 0;
        side_by_side(
            wanted,
            jobs(self.jobs, memory.max().unwrap_or(0)),
            &self.interrupt,
            |wanted| Ran {
                wanted: *wanted,
                result: self.outcome(*wanted),
            },
            |wanted, ran| {
                let Some(ran) = ran else { return };
                done += 1;
                let name = wanted.setup.name(wanted.seed);
                let text = match &ran.result {
                    Ok(outcome) => outcome.text(&self.served(wanted)),
                    Err(reason) => Err(reason.clone()),
                };
                let text = text.unwrap_or_else(|reason| format!("failed: {reason}"));
                output::say(format_args!("[{done}/{total}] {name}: {text}"));
            },
        )
        .into_iter()
        .flatten()
        .collect()
    }

    fn outcome(&self, wanted: Wanted) -> Result<Outcome, String> {
        let outcome = self.simulate(wanted, Vec::new())?;
        Ok(Outcome {
            ns: outcome.record.command_ns(),
            metrics: measured(&outcome.report)?,
        })
    }

    /// A run as `command`, which gets the workload's own command line as its last words.
    fn simulate(&self, wanted: Wanted, mut command: Vec<String>) -> Result<job::Outcome, String> {
        let setup = wanted.setup;
        let machine = &self.machines[&setup.machine];
        command.push("env".into());
        command.extend_from_slice(&setup.parameters);
        command.push(format!("{}/bench/{}/run", guest::FOLDER, setup.workload));
        let (sender, events) = mpsc::channel();
        self.interrupt.notify(sender.clone());
        self.base
            .scheduler(&setup.scheduler)
            .and_then(|scheduler| {
                let job = Job {
                    machine: machine.clone(),
                    variant: Variant::default(),
                    kernel_args: String::new(),
                    seed: wanted.seed,
                    shift_us: shift_us(wanted.seed - 1),
                    limit_s: LIMIT_S,
                    memory_mb: machine.memory_mb.into(),
                    timeout: self.timeout,
                    scheduler,
                    command,
                };
                simulate(&self.base, &job, &sender, &events)
            })
            .map_err(|error| one_line(&error))
    }

    fn record(self) -> Result<ExitCode, Error> {
        let ran = self.run(&runs(&self.recorded.cases));
        let Some(cases) = cases_now(&self.recorded.cases, &ran) else {
            to_stdout("Not every run gave its figures: nothing is recorded.\n")?;
            return Ok(ExitCode::FAILURE);
        };
        to_stdout(verdict::changes(&self.recorded.cases, &cases))?;
        let recorded = Recorded {
            inputs: self.here,
            cases,
        };
        write(&self.times, recorded.text().as_bytes())?;
        to_stdout(format!("Recorded in {}.\n", self.times.display()))?;
        Ok(ExitCode::SUCCESS)
    }

    fn compare(&self) -> Result<ExitCode, Error> {
        let others = differences(&self.recorded.inputs, &self.here);
        let changed = self.recorded.inputs.get(PROJECT) != self.here.get(PROJECT);
        let mut wanted = runs(&self.recorded.cases);
        if !others.is_empty() {
            // Once more, as the last one.
            wanted.extend(wanted.first().copied());
        }
        let mut ran = self.run(&wanted);
        let again = if others.is_empty() { None } else { ran.pop() };
        let Some(cases) = cases_now(&self.recorded.cases, &ran) else {
            to_stdout("FAILED: not every run gave its figures.\n")?;
            return Ok(ExitCode::FAILURE);
        };
        let verdict = verdict::of(&self.recorded.cases, &cases, changed, &others);
        to_stdout(&verdict.text)?;
        let same =
            again.is_none_or(|again| ran.first().is_some_and(|it| it.result == again.result));
        if !same {
            to_stdout("FAILED: the same run twice gave two results.\n")?;
        }
        Ok(if verdict.good && same {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(scheduler: &str, metric: Option<&str>, values: &[f64]) -> Case {
        Case::sample(&[], scheduler, metric, values)
    }

    fn cases() -> Vec<Case> {
        vec![
            case("eevdf", Some("p99"), &[0.0]),
            case("auto", Some("p99"), &[0.0, 0.0]),
            case("eevdf", None, &[0.0, 0.0]),
            case("eevdf", Some("requests"), &[0.0]),
        ]
    }

    fn outcome(ns: u64, p99: f64) -> Outcome {
        let text = format!("p99 {p99} us lower\nrequests 7 1/s higher\n");
        Outcome {
            ns,
            metrics: crate::figures::parse_metrics(&text).unwrap(),
        }
    }

    #[test]
    fn a_run_serves_all_cases_of_its_setup() {
        let cases = cases();
        let all = runs(&cases);
        let text: Vec<_> = all.iter().map(|run| run.setup.name(run.seed)).collect();
        assert_eq!(
            text,
            [
                "m, w, eevdf, seed 1",
                "m, w, auto, seed 1",
                "m, w, auto, seed 2",
                "m, w, eevdf, seed 2",
            ]
        );
        let ran = |count: usize| -> Vec<Ran> {
            let all = (1..).zip(&all[..count]);
            all.map(|(nr, wanted)| Ran {
                wanted: *wanted,
                result: Ok(outcome(nr, nr as f64 / 2.0)),
            })
            .collect()
        };
        let now = cases_now(&cases, &ran(4)).unwrap();
        let values: Vec<_> = now.iter().map(|case| case.values.clone()).collect();
        assert_eq!(
            values,
            [vec![0.5], vec![1.0, 1.5], vec![1.0, 4.0], vec![7.0]]
        );
        assert_eq!(cases_now(&cases, &ran(3)), None, "one is missing");
        let mut failed = ran(4);
        failed[3].result = Err("exit status 1".into());
        assert_eq!(cases_now(&cases, &failed), None);
    }

    #[test]
    fn a_metric_that_is_not_printed_is_named() {
        let (p99, time) = (case("off", Some("p99"), &[0.0]), case("off", None, &[0.0]));
        let text = outcome(1_500_000, 2.5).text(&[&p99, &time]);
        assert_eq!(text.unwrap(), "p99 2.5, 1.500000 ms");
        let absent = case("off", Some("p50"), &[0.0]);
        assert_eq!(
            outcome(1, 2.5).text(&[&p99, &absent]).unwrap_err(),
            "printed no metric p50, but p99, requests"
        );
        let ran = Ran {
            wanted: Wanted {
                setup: &absent.setup,
                seed: 1,
            },
            result: Ok(outcome(1, 2.5)),
        };
        assert_eq!(cases_now(std::slice::from_ref(&absent), &[ran]), None);
    }
}
