// SPDX-License-Identifier: GPL-2.0-only
//! The runs of `scx_freqlock compare --machine`: each is a machine of its own
//! that boots, so several go on side by side on the host's cores. A round is a
//! seed; it also starts the workload at a time of its own, because the start
//! alone moves figures.

use std::path::{Path, PathBuf};
use std::sync::{mpsc, Arc};
use std::time::{Duration, Instant};

use super::plan::{self, order, Plan, Resolved};
use super::runs::{self, Outcome, Results, Run, Watch};
use super::testbed::{Kind, Machine, CONTROL};
use super::traced;
use crate::recorded::Inputs;
use crate::schedulers::{Bound, Programs, Scheduler};
use crate::sim::batch::{jobs, side_by_side, Interrupt};
use crate::sim::description::Description;
use crate::sim::error::Error;
use crate::sim::flat::{fastest_first, flat, Variant};
use crate::sim::folders::{default_kit, machines_dir};
use crate::sim::guest;
use crate::sim::image::digest;
use crate::sim::job::{self, in_guest, make_folder, simulate, Base, Job, AGENT};
use crate::sim::workload::{measured, one_line, shift_us, LIMIT_S};
use freqlock::lab_args::CompareArgs;

/// What is compared on: one machine with one image.
pub struct Simulation {
    base: Arc<Base>,
    machine: Description,
    migration_cost: bool,
    timeout: Duration,
    /// Where the records of the runs are kept.
    record: Option<PathBuf>,
    /// Of so many seeds a trace is kept as well.
    traced: u32,
}

/// A run that is to be made.
struct Wanted {
    round: u32,
    workload: usize,
    /// Of those that the plan runs.
    scheduler: usize,
}

impl Simulation {
    pub fn new(name: &str, args: &CompareArgs) -> Result<Self, Error> {
        Self::with_base(name, args, || {
            let kit = default_kit(&machines_dir(None)?, args.arch);
            Ok(Arc::new(Base::load(&kit, args.arch)?))
        })
    }

    /// The same with what is booted: several machines may have it in common.
    pub fn with_base(
        name: &str,
        args: &CompareArgs,
        base: impl FnOnce() -> Result<Arc<Base>, Error>,
    ) -> Result<Self, Error> {
        let dir = machines_dir(None)?;
        let mut machine = Description::load(name, &dir)?;
        if let Some(cpus) = args.cpus {
            machine = machine.cut(cpus).map_err(Error::Usage)?;
        }
        if let Some(to) = &args.record {
            make_folder(to)?;
        }
        Ok(Self {
            base: base()?,
            machine,
            migration_cost: args.migration_cost,
            timeout: args.timeout(),
            record: args.record.clone(),
            traced: args.trace,
        })
    }

    /// The plan, with the schedulers that are in the image.
    pub fn plan(&self, args: &CompareArgs, bench: &[PathBuf]) -> Result<Resolved, plan::Error> {
        let find = |name: &str| self.base.has(name).then(|| PathBuf::from(name));
        let programs = Programs {
            ours: Path::new(AGENT),
            find: &find,
            simulated: Some(self.machine.cpus()),
        };
        Plan::resolve_with(args, bench, &programs)
    }

    /// The same on the control: what of the plan has a meaning there. None if
    /// this is the control, or nothing is left to be compared.
    pub fn control(&self, plan: &Plan) -> Result<Option<(Self, Plan)>, Error> {
        let Some(plan) = on_control(plan).filter(|_| self.machine.name != CONTROL) else {
            return Ok(None);
        };
        let machine = Description::load(CONTROL, &machines_dir(None)?)?;
        let cpus = machine.cpus().min(self.machine.cpus());
        Ok(Some((
            Self {
                base: Arc::clone(&self.base),
                machine: machine.cut(cpus).map_err(Error::Usage)?,
                migration_cost: self.migration_cost,
                timeout: self.timeout,
                record: None,
                traced: 0,
            },
            plan,
        )))
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

    /// All that a run's figures depend on beside the run itself.
    pub fn inputs(&self) -> Result<Inputs, Error> {
        let plugin = std::fs::read(&self.base.kit.plugin).map_err(|source| Error::Read {
            path: self.base.kit.plugin.clone(),
            source,
        })?;
        let variant = Variant {
            always_top: false,
            migration_cost: self.migration_cost,
        };
        let machine = flat(&self.machine, variant, None).into_bytes();
        Ok([
            ("image", self.base.digest.clone()),
            ("kernel", self.base.kit.kernel_version.clone()),
            ("machine", digest(&[machine, plugin].concat())),
            ("qemu", self.base.kit.qemu_version.clone()),
        ]
        .map(|(name, value)| (name.to_string(), value))
        .into())
    }

    /// How many of these machines this host can run at a time.
    pub fn jobs(&self, wanted: Option<usize>) -> usize {
        jobs(wanted, self.machine.memory_mb)
    }

    fn job(&self, plan: &Plan, wanted: &Wanted) -> Job {
        let scheduler = plan.to_run()[wanted.scheduler];
        let workload = &plan.workloads[wanted.workload];
        let mut command = vec!["env".to_string()];
        command.extend_from_slice(&workload.parameters);
        if let Some(Bound::Pinned(cpus)) = scheduler.bound {
            command.extend(["taskset".to_string(), mask(&self.machine, cpus)]);
        }
        command.push(format!("{}/bench/{}/run", guest::FOLDER, workload.folder()));
        Job {
            machine: self.machine.clone(),
            variant: Variant {
                always_top: scheduler.bound == Some(Bound::Limit),
                migration_cost: self.migration_cost,
            },
            kernel_args: String::new(),
            seed: wanted.round + 1,
            shift_us: shift_us(wanted.round),
            limit_s: LIMIT_S,
            memory_mb: self.machine.memory_mb.into(),
            timeout: self.timeout,
            scheduler: in_guest(scheduler),
            command,
        }
    }

    /// A run, or why this host cannot make it.
    fn run_one(
        &self,
        plan: &Plan,
        wanted: &Wanted,
        start: Instant,
        interrupt: &Interrupt,
    ) -> Result<Run, String> {
        let (sender, events) = mpsc::channel();
        interrupt.notify(sender.clone());
        let begin = Instant::now();
        let job = self.job(plan, wanted);
        let result = simulate(&self.base, &job, &sender, &events).and_then(|outcome| {
            if let Some(to) = self.folder(plan, wanted, &job)? {
                job::keep(&to, &self.base, &job, &outcome)?;
                if wanted.round < self.traced {
                    let command = traced::command(job.command.clone());
                    let traced = Job { command, ..job };
                    let outcome = simulate(&self.base, &traced, &sender, &events)?;
                    job::write(&to.join("trace"), &traced::trace(&self.machine, outcome)?)?;
                }
            }
            Ok((outcome.record.command_ns(), outcome.report))
        });
        let (took_s, ops, outcome) = match result {
            Ok((ns, report)) => (ns as f64 / 1e9, ops(&report.loaded), measured(&report)),
            Err(error) if error.is_hosts() => return Err(with_cause(&error)),
            Err(error) => (begin.elapsed().as_secs_f64(), None, Err(one_line(&error))),
        };
        Ok(Run {
            workload: plan.workloads[wanted.workload].name.clone(),
            scheduler: plan.to_run()[wanted.scheduler].label.clone(),
            round: wanted.round,
            warmup: false,
            ops,
            start_s: (begin - start).as_secs_f64(),
            took_s,
            outcome: match outcome {
                Ok(metrics) => Outcome::Metrics(metrics),
                Err(reason) => Outcome::Failed(reason),
            },
        })
    }

    /// Where a run is kept, if it is.
    fn folder(&self, plan: &Plan, wanted: &Wanted, job: &Job) -> Result<Option<PathBuf>, Error> {
        let Some(to) = &self.record else {
            return Ok(None);
        };
        let to = to
            .join(&plan.workloads[wanted.workload].name)
            .join(folder_name(&plan.to_run()[wanted.scheduler].label))
            .join(job.seed.to_string());
        make_folder(&to)?;
        Ok(Some(to))
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
        let start = Instant::now();
        let (ended, reasons) = mpsc::channel();
        let runs = side_by_side(
            &all,
            jobs,
            interrupt,
            |wanted| {
                self.run_one(plan, wanted, start, interrupt)
                    .inspect_err(|reason| {
                        // The others would fail as well, and none of them says anything.
                        ended.send(reason.clone()).ok();
                        interrupt.interrupt();
                    })
            },
            |wanted, run| match run {
                None => watch.begin(
                    wanted.round,
                    plan.rounds(),
                    &plan.workloads[wanted.workload].name,
                    &plan.to_run()[wanted.scheduler].label,
                ),
                Some(Ok(run)) => watch.end(run),
                Some(Err(_)) => {}
            },
        );
        let broken = reasons.try_iter().next().map(runs::Error::Host);
        Results {
            runs: runs.into_iter().flatten().flatten().collect(),
            interrupted: interrupt.happened(),
            broken,
        }
    }
}

fn with_cause(error: &Error) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    one_line(error) + &cause.unwrap_or_default()
}

/// The first CPUs, as taskset has them.
fn mask(machine: &Description, cpus: u32) -> String {
    let first = fastest_first(machine).into_iter().take(cpus as usize);
    format!("{:x}", first.fold(0_u128, |mask, cpu| mask | 1 << cpu))
}

fn in_order(plan: &Plan) -> Vec<Wanted> {
    let mut all = Vec::new();
    for round in 0..plan.rounds() {
        for workload in 0..plan.workloads.len() {
            all.extend(
                order(plan.to_run().len(), round)
                    .into_iter()
                    .filter(|scheduler| !plan.made.contains(&(round, workload, *scheduler)))
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

/// Without the bounds: where every CPU is always at its highest speed, the limit is no
/// other than the kernel's own scheduler, and no few CPUs are faster than all.
fn on_control(plan: &Plan) -> Option<Plan> {
    let baseline = plan.schedulers[plan.baseline].label.clone();
    let mut plan = plan.clone();
    plan.schedulers
        .retain(|scheduler| scheduler.bound.is_none());
    plan.pinned.clear();
    let found = |scheduler: &Scheduler| scheduler.label == baseline;
    plan.baseline = plan.schedulers.iter().position(found)?;
    (plan.schedulers.len() > 1).then_some(plan)
}

/// Labels have arguments in them, of any kind.
pub fn folder_name(label: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_.#=".contains(c);
    label
        .chars()
        .map(|c| if safe(c) { c } else { '_' })
        .collect()
}

/// The name in what the guest says is loaded.
fn ops(loaded: &str) -> Option<String> {
    let name = loaded.split(' ').nth(1)?;
    (name != "-").then(|| name.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::plan::Workload;
    use crate::schedulers::pinned_to_few_and_many;

    fn plan(schedulers: usize, rounds: u32) -> Plan {
        Plan {
            workloads: ["a", "b"]
                .map(|name| Workload {
                    name: name.into(),
                    run: name.into(),
                    parameters: Vec::new(),
                })
                .into(),
            schedulers: (0..schedulers)
                .map(|i| Scheduler {
                    label: i.to_string(),
                    ..Scheduler::default()
                })
                .collect(),
            pinned: Vec::new(),
            baseline: 0,
            warmup: 0,
            runs: rounds,
            budget: None,
            made: Default::default(),
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
    fn the_control_leaves_the_limits_out() {
        let mut all = plan(4, 3);
        all.schedulers[0].bound = Some(Bound::Limit);
        all.schedulers[2].bound = Some(Bound::BestOfPinned);
        all.pinned = pinned_to_few_and_many(2);
        assert_eq!(all.to_run().len(), 5);
        all.baseline = 3;
        let control = on_control(&all).unwrap();
        let labels: Vec<_> = control
            .schedulers
            .iter()
            .map(|s| s.label.as_str())
            .collect();
        assert_eq!((labels, control.baseline), (vec!["1", "3"], 1));
        assert_eq!(control.to_run().len(), 2);
        all.schedulers.remove(1);
        all.baseline = 2;
        assert_eq!(on_control(&all), None, "nothing to compare");
        all.baseline = 0;
        assert_eq!(on_control(&all), None, "a limit to compare with");
    }

    #[test]
    fn first_cpus_are_the_fastest_and_share_a_cache() {
        let machine = |name: &str| Description::load(name, &machines_dir(None).unwrap()).unwrap();
        assert_eq!(mask(&machine("e7-8870v4"), 1), "1");
        assert_eq!(mask(&machine("desktop-2x6"), 7), "7f");
        let mut hybrid = machine("hybrid-4p4e");
        assert_eq!(mask(&hybrid, 3), "7");
        hybrid.clusters.reverse();
        assert_eq!(mask(&hybrid, 3), "70");
        assert_eq!(mask(&hybrid, 6), "f3");
    }

    #[test]
    fn a_label_makes_one_folder() {
        assert_eq!(folder_name("scx_bpfland#2"), "scx_bpfland#2");
        assert_eq!(
            folder_name("off:--slice-us=2 --cpus=../a"),
            "off_--slice-us=2_--cpus=.._a"
        );
    }

    #[test]
    fn what_is_loaded_has_a_name() {
        assert_eq!(ops("disabled - 0"), None);
        assert_eq!(
            ops("enabled bpfland_1.1.4 1").as_deref(),
            Some("bpfland_1.1.4")
        );
    }
}
