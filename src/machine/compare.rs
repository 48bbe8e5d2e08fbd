// SPDX-License-Identifier: GPL-2.0-only
//! The runs of `scx_freqlock compare --machine`: each is a machine of its own
//! that boots, so several go on side by side on the host's cores. A round is a
//! seed; it also starts the workload at a time of its own, because the start
//! alone moves figures.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::args::{default_kit, machines_dir};
use super::description::Description;
use super::flat::Variant;
use super::kit::Kit;
use super::{guest, in_guest, qemu, simulate, Base, Error, Job, AGENT};
use crate::compare::engine::{Results, Watch};
use crate::compare::machine::{Kind, Machine};
use crate::compare::plan::{self, order, Plan, Programs, Resolved};
use crate::compare::process::Event;
use crate::compare::record::{parse_metrics, Metric, Outcome, Run};

/// The kernel's own scheduler with every CPU always at its highest speed: what
/// no scheduler can be much better than.
pub const LIMIT: &str = "limit";

/// The kernel's own scheduler with the workload on one CPU.
const PINNED: &str = "pinned";

/// Start times differ by less than this, which is a few ticks of the kernel and
/// half of the slowest machine's way to its highest frequency.
const SHIFT_US: u64 = 16_000;

/// No workload takes longer by the machine's own time.
const LIMIT_S: u64 = 3600;

/// What is compared on: one machine with one image.
pub struct Simulation {
    base: Base,
    machine: Description,
    migration_cost: bool,
    timeout: Duration,
}

/// Ends all machines that are running, and lets none start any more.
#[derive(Clone, Default)]
pub struct Interrupt {
    senders: Arc<Mutex<(bool, Vec<Sender<Event>>)>>,
}

impl Interrupt {
    pub fn interrupt(&self) {
        let mut inner = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        inner.0 = true;
        for sender in &inner.1 {
            // Its run may be over.
            sender.send(Event::Interrupted).ok();
        }
    }

    fn happened(&self) -> bool {
        let inner = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        inner.0
    }

    fn tell(&self, sender: Sender<Event>) {
        let mut inner = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        inner.1.push(sender);
    }
}

/// A run that is to be made.
struct Wanted {
    round: u32,
    workload: usize,
    scheduler: usize,
}

enum Step {
    Begin(usize),
    End(usize, Box<Run>),
}

impl Simulation {
    pub fn new(name: &str, args: &crate::compare::Args) -> Result<Self, Error> {
        let dir = machines_dir(None)?;
        let mut machine = Description::load(name, &dir)?;
        if let Some(cpus) = args.cpus {
            machine = machine.cut(cpus).map_err(Error::Usage)?;
        }
        let kit = Kit::load(&default_kit(&dir, args.arch), args.arch)?;
        Ok(Self {
            base: Base::new(kit)?,
            machine,
            migration_cost: args.migration_cost,
            timeout: args.timeout(),
        })
    }

    /// The plan, with the schedulers that are in the image.
    pub fn plan(
        &self,
        args: &crate::compare::Args,
        bench: &[PathBuf],
    ) -> Result<Resolved, plan::Error> {
        let find = |name: &str| self.base.has(name).then(|| PathBuf::from(name));
        let programs = Programs {
            ours: Path::new(AGENT),
            find: &find,
            others: &[LIMIT, PINNED],
        };
        Plan::resolve_with(args, bench, &programs)
    }

    pub fn machine(&self) -> Machine {
        Machine {
            kernel: self.base.kit.kernel_version.clone(),
            cpus: self.machine.cpus() as usize,
            model: format!("{}: {}", self.machine.name, self.machine.description),
            kind: Kind::Simulated {
                migration_cost: self.migration_cost,
            },
            cpufreq: false,
        }
    }

    /// How many machines this host can run at a time, by processors and memory.
    pub fn jobs(&self, wanted: Option<usize>) -> usize {
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let each = u64::from(self.machine.memory_mb) + qemu::OVERHEAD_MB;
        let room = usize::try_from(qemu::available_mb(&meminfo) / each).unwrap_or(usize::MAX);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        wanted.unwrap_or(cpus).min(room).max(1)
    }

    fn job(&self, plan: &Plan, wanted: &Wanted) -> Job {
        let scheduler = &plan.schedulers[wanted.scheduler];
        let name = &plan.workloads[wanted.workload].name;
        let mut command = vec!["env".to_string()];
        command.extend(parameters(name, std::env::vars()));
        if scheduler.label == PINNED {
            command.extend(["taskset", "1"].map(String::from));
        }
        command.push(format!("{}/bench/{name}/run", guest::FOLDER));
        Job {
            machine: self.machine.clone(),
            variant: Variant {
                always_top: scheduler.label == LIMIT,
                migration_cost: self.migration_cost,
            },
            seed: wanted.round + 1,
            shift_us: shift_us(wanted.round),
            limit_s: LIMIT_S,
            memory_mb: self.machine.memory_mb.into(),
            timeout: self.timeout,
            scheduler: in_guest(scheduler),
            command,
        }
    }

    fn run_one(&self, plan: &Plan, wanted: &Wanted, start: Instant, interrupt: &Interrupt) -> Run {
        let (sender, events) = mpsc::channel();
        interrupt.tell(sender.clone());
        let begin = Instant::now();
        let result = simulate(&self.base, &self.job(plan, wanted), &sender, &events);
        let (ops, outcome) = match result {
            Ok(outcome) => {
                let report = outcome.report;
                (ops(&report.loaded), measured(&report))
            }
            Err(error) => (None, Err(one_line(&error))),
        };
        Run {
            workload: plan.workloads[wanted.workload].name.clone(),
            scheduler: plan.schedulers[wanted.scheduler].label.clone(),
            round: wanted.round,
            warmup: false,
            ops,
            start_s: (begin - start).as_secs_f64(),
            took_s: begin.elapsed().as_secs_f64(),
            outcome: match outcome {
                Ok(metrics) => Outcome::Metrics(metrics),
                Err(reason) => Outcome::Failed(reason),
            },
        }
    }

    /// Makes all runs of a plan, `jobs` at a time.
    pub fn run(
        &self,
        plan: &Plan,
        jobs: usize,
        interrupt: &Interrupt,
        watch: &mut dyn Watch,
    ) -> Results {
        let all = in_order(plan);
        let next = AtomicUsize::new(0);
        let start = Instant::now();
        let mut done: Vec<Option<Run>> = all.iter().map(|_| None).collect();
        std::thread::scope(|scope| {
            let (steps, heard) = mpsc::channel();
            for _ in 0..jobs.min(all.len()) {
                let (steps, all, next) = (steps.clone(), &all, &next);
                scope.spawn(move || loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(wanted) = all.get(index).filter(|_| !interrupt.happened()) else {
                        return;
                    };
                    // Heard as long as there is anything to say.
                    steps.send(Step::Begin(index)).ok();
                    let run = self.run_one(plan, wanted, start, interrupt);
                    steps.send(Step::End(index, Box::new(run))).ok();
                });
            }
            drop(steps);
            for step in heard {
                match step {
                    Step::Begin(index) => {
                        let wanted = &all[index];
                        watch.begin(
                            wanted.round,
                            plan.rounds(),
                            &plan.workloads[wanted.workload].name,
                            &plan.schedulers[wanted.scheduler].label,
                        );
                    }
                    // A machine that Ctrl-C has ended says nothing about a scheduler.
                    Step::End(..) if interrupt.happened() => {}
                    Step::End(index, run) => {
                        watch.end(&run);
                        done[index] = Some(*run);
                    }
                }
            }
        });
        Results {
            // In the order of the plan, whichever was ready first.
            runs: done.into_iter().flatten().collect(),
            interrupted: interrupt.happened(),
            broken: None,
        }
    }
}

fn in_order(plan: &Plan) -> Vec<Wanted> {
    let mut all = Vec::new();
    for round in 0..plan.rounds() {
        for workload in 0..plan.workloads.len() {
            all.extend(
                order(plan.schedulers.len(), round)
                    .into_iter()
                    .map(|scheduler| Wanted {
                        round,
                        workload,
                        scheduler,
                    }),
            );
        }
    }
    all
}

/// When the workload of a round starts. The factor has no part in common with
/// the length, so that many rounds cover it evenly.
fn shift_us(round: u32) -> u64 {
    u64::from(round) * 6_337 % SHIFT_US
}

/// What sets a workload's parameters begins with its name, as FORKWAIT_SECONDS.
fn parameters(workload: &str, vars: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let prefix = workload.to_uppercase() + "_";
    let mut found: Vec<String> = vars
        .filter(|(name, _)| name.starts_with(&prefix))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    found.sort();
    found
}

/// The name in what the guest says is loaded.
fn ops(loaded: &str) -> Option<String> {
    let name = loaded.split(' ').nth(1)?;
    (name != "-").then(|| name.into())
}

fn measured(report: &guest::Report) -> Result<Vec<Metric>, String> {
    if report.status != 0 {
        let stderr = String::from_utf8_lossy(&report.stderr);
        let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
        return Err(match last {
            Some(line) => format!("exit status {}: {}", report.status, line.trim()),
            None => format!("exit status {}, without a word", report.status),
        });
    }
    parse_metrics(&String::from_utf8_lossy(&report.stdout))
}

/// A failure with the console's lines would not go into a table.
fn one_line(error: &Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::plan::{Scheduler, Workload};

    fn plan(schedulers: usize, rounds: u32) -> Plan {
        Plan {
            workloads: ["a", "b"]
                .map(|name| Workload {
                    name: name.into(),
                    run: name.into(),
                })
                .into(),
            schedulers: (0..schedulers)
                .map(|i| Scheduler {
                    label: i.to_string(),
                    loader: None,
                })
                .collect(),
            baseline: 0,
            warmup: 0,
            runs: rounds,
            budget: None,
        }
    }

    #[test]
    fn every_run_is_wanted_once() {
        let all = in_order(&plan(3, 4));
        let mut keys: Vec<_> = all
            .iter()
            .map(|wanted| (wanted.round, wanted.workload, wanted.scheduler))
            .collect();
        keys.sort();
        keys.dedup();
        assert_eq!((all.len(), keys.len()), (24, 24));
    }

    #[test]
    fn start_times_cover_their_range_evenly() {
        let mut shifts: Vec<u64> = (0..10).map(shift_us).collect();
        assert_eq!(shifts[0], 0, "the first is an ordinary run");
        shifts.sort();
        shifts.push(SHIFT_US);
        let widest = shifts.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert!(widest < Some(SHIFT_US / 4), "{shifts:?}");
    }

    #[test]
    fn parameters_of_the_workload_reach_the_guest() {
        let vars = [
            ("KBUILD_JOBS", "4"),
            ("HOME", "/x"),
            ("FORKWAIT_STEPS", "5"),
            ("FORKWAIT_CHAINS", "2"),
        ]
        .map(|(name, value)| (name.to_string(), value.to_string()));
        assert_eq!(
            parameters("forkwait", vars.into_iter()),
            ["FORKWAIT_CHAINS=2", "FORKWAIT_STEPS=5"]
        );
    }

    #[test]
    fn a_failed_workload_gives_its_last_words() {
        let report = |status, stdout: &str, stderr: &str| guest::Report {
            status,
            loaded: "disabled - 0".into(),
            stdout: stdout.into(),
            stderr: stderr.into(),
        };
        let metrics = measured(&report(0, "time 5 ms lower\n", "")).unwrap();
        assert_eq!((metrics[0].name.as_str(), metrics[0].value), ("time", 5.0));
        assert_eq!(
            measured(&report(1, "time 5 ms lower\n", "a\nb\n\n")).unwrap_err(),
            "exit status 1: b"
        );
        assert!(measured(&report(0, "", "")).is_err());
        assert_eq!(ops("disabled - 0"), None);
        assert_eq!(
            ops("enabled bpfland_1.1.4 1").as_deref(),
            Some("bpfland_1.1.4")
        );
    }
}
