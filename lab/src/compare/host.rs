// SPDX-License-Identifier: GPL-2.0-only
//! Runs a plan: for every run a scheduler that was just started, the workload
//! under it, and the proof that it was still the same scheduler at the end.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::plan::{order, Plan, Workload};
use super::runs::{Error, Outcome, Results, Run, Watch};
use crate::figures::{parse_metrics, Better, Metric};
use crate::process::{Ended, Event, Process};
use crate::schedulers::{Loader, Scheduler};

/// How long each step may take before it has failed.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub workload: Duration,
    /// From a scheduler's start until it is enabled. Large schedulers take half
    /// a minute on emulated machines, where the verifier is slow.
    pub enable: Duration,
    /// From asking a process to end until it is killed, and from the end of a
    /// scheduler's program until the kernel's own has taken over.
    pub end: Duration,
}

/// How often sysfs is read while a scheduler comes or goes. These files cannot
/// be waited for: sched_ext never notifies their readers (sysfs_notify).
const POLL: Duration = Duration::from_millis(20);

/// What /sys/kernel/sched_ext says. Its counter of schedulers enabled since
/// boot shows one that has been away in between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Loaded {
    state: String,
    ops: Option<String>,
    enable_seq: String,
}

impl Loaded {
    fn is_none(&self) -> bool {
        // Empty: a kernel without sched_ext.
        self.state.is_empty() || self.state == "disabled"
    }

    fn is(&self, loader: &Loader) -> bool {
        self.state == "enabled"
            && self
                .ops
                .as_ref()
                .is_some_and(|ops| ops.starts_with(&loader.ops))
    }

    fn describe(&self) -> String {
        match &self.ops {
            Some(ops) => format!("{ops} is {}", self.state),
            None => format!("sched_ext is {}", self.state),
        }
    }
}

pub struct Engine {
    sched_ext: PathBuf,
    limits: Limits,
    sender: Sender<Event>,
    events: Receiver<Event>,
    exited: HashSet<Pid>,
    interrupted: bool,
    /// Unit and direction of every metric so far, by workload and name.
    units: HashMap<(String, String), (String, Better)>,
}

impl Engine {
    /// `sched_ext` is the folder of sched_ext in sysfs; `sender` belongs to the
    /// same channel as `events`.
    pub fn new(
        sched_ext: impl Into<PathBuf>,
        timeout: Duration,
        sender: Sender<Event>,
        events: Receiver<Event>,
    ) -> Self {
        Self {
            sched_ext: sched_ext.into(),
            limits: Limits {
                workload: timeout,
                enable: Duration::from_secs(90),
                end: Duration::from_secs(30),
            },
            sender,
            events,
            exited: HashSet::new(),
            interrupted: false,
            units: HashMap::new(),
        }
    }

    #[cfg(test)]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Runs all of it, or as much as there is time for until Ctrl-C. Rounds are
    /// the outermost loop, so that whatever is there is there for all.
    pub fn run(&mut self, plan: &Plan, watch: &mut dyn Watch) -> Results {
        let mut runs = Vec::new();
        let begin = Instant::now();
        for round in 0..plan.rounds() {
            if out_of_time(plan, round, begin.elapsed()) {
                break;
            }
            for (nr, workload) in plan.workloads.iter().enumerate() {
                for scheduler in order(plan.schedulers.len(), round) {
                    if plan.made.contains(&(round, nr, scheduler)) {
                        continue;
                    }
                    let scheduler = &plan.schedulers[scheduler];
                    watch.begin(round, plan.rounds(), &workload.name, &scheduler.label);
                    let start_s = begin.elapsed().as_secs_f64();
                    let (measured, gone) = self.under(scheduler, workload);
                    if !self.interrupted {
                        let run = Run {
                            workload: workload.name.clone(),
                            scheduler: scheduler.label.clone(),
                            round,
                            warmup: round < plan.warmup,
                            ops: measured.ops,
                            start_s,
                            took_s: measured.took.as_secs_f64(),
                            outcome: match measured.metrics {
                                Ok(metrics) => Outcome::Metrics(metrics),
                                Err(reason) => Outcome::Failed(reason),
                            },
                        };
                        watch.end(&run);
                        runs.push(run);
                    }
                    if self.interrupted || gone.is_err() {
                        return Results {
                            runs,
                            interrupted: self.interrupted,
                            broken: gone.err(),
                        };
                    }
                }
            }
        }
        Results {
            runs,
            interrupted: false,
            broken: None,
        }
    }

    /// One run; the second value says whether the scheduler is gone again.
    fn under(
        &mut self,
        scheduler: &Scheduler,
        workload: &Workload,
    ) -> (Measured, Result<(), Error>) {
        let before = self.loaded();
        if !before.is_none() {
            let reason = format!("another scheduler is loaded: {}", before.describe());
            return (Measured::failed(reason), Ok(()));
        }
        let Some(loader) = &scheduler.loader else {
            return (self.measure(workload, None), Ok(()));
        };
        let mut command = Command::new(&loader.program);
        command.args(&loader.arguments);
        let process = match Process::start(&mut command, &self.sender) {
            Ok(process) => process,
            Err(error) => {
                let reason = format!("cannot start {}: {error}", loader.program.display());
                return (Measured::failed(reason), Ok(()));
            }
        };
        let mut measured = match self.enable(loader, &process, &before) {
            Ok(()) => self.measure(workload, Some((loader, process.pid()))),
            Err(reason) => Measured::failed(reason),
        };
        let fell_out = self.exited.contains(&process.pid());
        match self.end(process) {
            // Its last words say why.
            Ok(ended) if fell_out => {
                let reason = format!("the scheduler ended by itself ({})", ended.reason());
                measured.metrics = Err(reason);
            }
            Ok(_) => {}
            Err(error) => measured.metrics = Err(format!("cannot end the scheduler: {error}")),
        }
        (measured, self.wait_until_gone())
    }

    fn enable(
        &mut self,
        loader: &Loader,
        process: &Process,
        before: &Loaded,
    ) -> Result<(), String> {
        let deadline = Instant::now() + self.limits.enable;
        loop {
            if self.exited.contains(&process.pid()) || self.interrupted {
                return Err("the scheduler did not start".into());
            }
            let now = self.loaded();
            // The kernel counts only after it has said that it is enabled.
            let counted = before.enable_seq.is_empty() || now.enable_seq != before.enable_seq;
            if now.is(loader) && counted {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(format!(
                    "the scheduler was not enabled within {} s: {}",
                    self.limits.enable.as_secs(),
                    now.describe()
                ));
            }
            self.pump(POLL);
        }
    }

    /// Runs the workload, under a scheduler that is enabled.
    fn measure(&mut self, workload: &Workload, under: Option<(&Loader, Pid)>) -> Measured {
        let before = self.loaded();
        let begin = Instant::now();
        let mut measured = Measured {
            ops: before.ops.clone(),
            took: Duration::ZERO,
            metrics: Err("interrupted".into()),
        };
        let mut command = Command::new(&workload.run);
        // Most are in the environment already.
        let parameters = workload.parameters.iter();
        command.envs(parameters.filter_map(|parameter| parameter.split_once('=')));
        let process = match Process::start(&mut command, &self.sender) {
            Ok(process) => process,
            Err(error) => {
                measured.metrics = Err(format!("cannot start {}: {error}", workload.run.display()));
                return measured;
            }
        };
        let pid = process.pid();
        let deadline = begin + self.limits.workload;
        let stop = |engine: &Self| {
            engine.interrupted
                || engine.exited.contains(&pid)
                || under.is_some_and(|(_, scheduler)| engine.exited.contains(&scheduler))
        };
        while !stop(self) && Instant::now() < deadline {
            self.pump(deadline.saturating_duration_since(Instant::now()));
        }
        measured.took = begin.elapsed();
        let after = self.loaded();
        let ended_itself = self.exited.contains(&pid);
        let ended = self.end(process);
        if self.interrupted {
            return measured;
        }
        measured.metrics = if before != after || under.is_some_and(|(loader, _)| !after.is(loader))
        {
            Err(format!("the scheduler did not stay: {}", after.describe()))
        } else if !ended_itself {
            Err(format!(
                "took longer than {} s",
                self.limits.workload.as_secs_f64()
            ))
        } else {
            match ended {
                Err(error) => Err(error.to_string()),
                Ok(ended) if !ended.status.success() => Err(ended.reason()),
                Ok(ended) => parse_metrics(&ended.stdout)
                    .and_then(|metrics| self.check_units(&workload.name, metrics)),
            }
        };
        measured
    }

    /// The same metric must mean the same in every run.
    fn check_units(&mut self, workload: &str, metrics: Vec<Metric>) -> Result<Vec<Metric>, String> {
        for metric in &metrics {
            let now = (metric.unit.clone(), metric.better);
            let first = self
                .units
                .entry((workload.into(), metric.name.clone()))
                .or_insert_with(|| now.clone());
            if *first != now {
                return Err(format!("the metric {} has changed its unit", metric.name));
            }
        }
        Ok(metrics)
    }

    /// Ends a process, by force if it must be.
    fn end(&mut self, process: Process) -> std::io::Result<Ended> {
        let pid = process.pid();
        let deadline = Instant::now() + self.limits.end;
        if !self.exited.contains(&pid) {
            process.terminate();
        }
        while !self.exited.contains(&pid) && Instant::now() < deadline {
            self.pump(deadline.saturating_duration_since(Instant::now()));
        }
        let ended = process.finish();
        // The number may be given to another process from now on; if it had to
        // be killed its event is still to come.
        while !self.exited.remove(&pid) {
            self.pump(self.limits.end);
        }
        ended
    }

    fn wait_until_gone(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + self.limits.end;
        loop {
            let now = self.loaded();
            if now.is_none() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(Error::StillLoaded {
                    ops: now.ops.unwrap_or(now.state),
                    after: self.limits.end,
                });
            }
            self.pump(POLL);
        }
    }

    fn loaded(&self) -> Loaded {
        let read = |name: &str| std::fs::read_to_string(self.sched_ext.join(name));
        let trimmed = |name: &str| read(name).unwrap_or_default().trim().to_string();
        Loaded {
            state: trimmed("state"),
            // It is there only while a scheduler is.
            ops: read("root/ops").ok().map(|ops| ops.trim().to_string()),
            enable_seq: trimmed("enable_seq"),
        }
    }

    /// Waits for one event, at most for this time.
    fn pump(&mut self, patience: Duration) {
        // The queue cannot break off: we hold one of its senders ourselves.
        match self.events.recv_timeout(patience) {
            Ok(Event::Exited(pid)) => {
                self.exited.insert(pid);
            }
            Ok(Event::Interrupted) => self.interrupted = true,
            Err(_) => {}
        }
    }
}

/// Would another round like those before end too late? One that counts is
/// always made.
fn out_of_time(plan: &Plan, done: u32, elapsed: Duration) -> bool {
    plan.budget
        .is_some_and(|budget| done > plan.warmup && elapsed + elapsed / done > budget)
}

struct Measured {
    ops: Option<String>,
    took: Duration,
    metrics: Result<Vec<Metric>, String>,
}

impl Measured {
    fn failed(reason: String) -> Self {
        Self {
            ops: None,
            took: Duration::ZERO,
            metrics: Err(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_begun_only_if_it_will_end_in_time() {
        let plan = |budget| Plan {
            workloads: Vec::new(),
            schedulers: Vec::new(),
            pinned: Vec::new(),
            baseline: 0,
            warmup: 1,
            runs: 10,
            budget,
            made: Default::default(),
        };
        let limited = plan(Some(Duration::from_secs(60)));
        let seconds = Duration::from_secs;
        assert!(!out_of_time(&limited, 0, seconds(0)));
        assert!(
            !out_of_time(&limited, 1, seconds(100)),
            "one round has to count"
        );
        assert!(!out_of_time(&limited, 2, seconds(40)));
        assert!(out_of_time(&limited, 2, seconds(41)));
        assert!(!out_of_time(&limited, 5, seconds(50)));
        assert!(!out_of_time(&plan(None), 5, seconds(5000)));
    }
}
