// SPDX-License-Identifier: GPL-2.0-only
//! One machine of a campaign: what is to run there, what is there already, and how it is run.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{mpsc, Arc};
use std::time::{Duration, Instant};

use super::archive::{self, Archived};
use super::campaign_error::Error;
use super::campaign_file::{self, Campaign, HOST};
use super::store::{self, Bed, Folder, Kept, Store};

use crate::compare::host::Engine;
use crate::compare::plan::{Place, Places, Plan, Workload};
use crate::compare::progress::Progress;
use crate::compare::runs::{Results, Run, Watch};
use crate::compare::simulated::{folder_name, Simulation};
use crate::compare::testbed::Machine;
use crate::recorded::Inputs;
use crate::schedulers::OURS;
use crate::sim;
use crate::sim::batch::Interrupt;
use crate::sim::folders::{machines_dir, prepared_kit};
use crate::sim::image::digest;
use crate::sim::job::Base;
use freqlock::lab_args::CompareArgs;
use freqlock::preflight;

/// Images that several machines have in common, by their kits.
pub type Bases = HashMap<PathBuf, Arc<Base>>;

enum Kind {
    Simulated(Box<Simulation>),
    Host,
}

pub struct Site {
    pub label: String,
    machine: Machine,
    plan: Plan,
    /// A line for each scheduler that is not there.
    pub left_out: Vec<String>,
    inputs: Inputs,
    kind: Kind,
    timeout: Duration,
    kept: BTreeMap<Place, Kept>,
}

impl Site {
    pub fn new(
        campaign: &Campaign,
        machine: &campaign_file::Machine,
        args: &CompareArgs,
        bases: &mut Bases,
    ) -> Result<Self, Error> {
        let here = || campaign.workloads.iter().filter(|w| w.runs_on(machine));
        let names: Vec<_> = here().map(|workload| workload.name.clone()).collect();
        let args = CompareArgs {
            workloads: names,
            schedulers: campaign.schedulers.clone(),
            baseline: Some(campaign.baseline.clone()),
            runs: campaign.seeds,
            warmup: 0,
            minutes: None,
            cpus: machine.cpus,
            migration_cost: machine.migration_cost,
            arch: machine.arch.unwrap_or(args.arch),
            ..args.clone()
        };
        let places = Places::of_this_process();
        let (kind, resolved, shown) = if machine.name == HOST {
            let resolved = Plan::resolve(&args, &places)?;
            (Kind::Host, resolved, Machine::look(Path::new("/")))
        } else {
            let base = || base(machine, &args, bases);
            let simulation = Simulation::with_base(&machine.name, &args, base)?;
            let resolved = simulation.plan(&args, &places.bench)?;
            let shown = simulation.machine();
            (Kind::Simulated(Box::new(simulation)), resolved, shown)
        };
        let mut plan = resolved.plan;
        plan.workloads = here()
            .map(|workload| set_up(workload, &plan.workloads))
            .collect::<Result<_, _>>()?;
        let folders: HashSet<_> = plan
            .to_run()
            .iter()
            .map(|s| folder_name(&s.label))
            .collect();
        if folders.len() < plan.to_run().len() {
            return Err(Error::Alike(campaign.schedulers.join(", ")));
        }
        let inputs = match &kind {
            Kind::Simulated(simulation) => simulation.inputs()?,
            Kind::Host => of_host(&shown, &places)?,
        };
        Ok(Self {
            label: machine.label().into(),
            machine: shown,
            plan,
            left_out: resolved.left_out,
            inputs,
            kind,
            timeout: args.timeout(),
            kept: BTreeMap::new(),
        })
    }

    fn bed(&self) -> Bed<'_> {
        Bed {
            label: &self.label,
            inputs: &self.inputs,
            plan: &self.plan,
        }
    }

    /// Does the same run give the same figures?
    fn is_exact(&self) -> bool {
        matches!(self.kind, Kind::Simulated(_))
    }

    /// All results of the folder; those of `merged` folders are put there first. Gives how many
    /// these were.
    pub fn load(&mut self, store: &Store, merged: &[PathBuf]) -> Result<usize, store::Error> {
        let mut taken = 0;
        for from in merged {
            taken += store.take(&self.bed(), &Folder(from.clone()), self.is_exact())?;
        }
        let mut kept = BTreeMap::new();
        for place in self.bed().places() {
            if let Some(result) = store.folder.result(&self.bed(), place)? {
                kept.insert(place, result);
            }
        }
        self.kept = kept;
        Ok(taken)
    }

    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    pub fn wanted(&self) -> usize {
        self.bed().places().count()
    }

    /// What is left of a round, as far as it is this host's part. All schedulers of a seed run
    /// a workload on one host, for their figures are compared with each other.
    pub fn missing(&self, round: u32, part: Option<(u32, u32)>) -> Vec<Place> {
        let (k, n) = part.unwrap_or((1, 1));
        let mine = |(round, workload, _): &Place| {
            (u64::from(*round) + *workload as u64) % u64::from(n) == u64::from(k - 1)
        };
        (self.bed().places())
            .filter(|place| place.0 == round && mine(place) && !self.kept.contains_key(place))
            .collect()
    }

    /// How many run at a time.
    fn jobs(&self, wanted: Option<usize>) -> usize {
        match &self.kind {
            Kind::Simulated(simulation) => simulation.jobs(wanted),
            Kind::Host => 1,
        }
    }

    /// How long some runs take, by those of the same workloads that were made; none where none
    /// was.
    pub fn expected(&self, places: &[Place], jobs: Option<usize>) -> Option<Duration> {
        let mean = |all: &mut dyn Iterator<Item = &Kept>| {
            let (count, sum) = all.fold((0_u32, 0.0), |(n, sum), kept| (n + 1, sum + kept.host_s));
            (count > 0).then(|| sum / f64::from(count))
        };
        let any = mean(&mut self.kept.values())?;
        let of = |(_, workload, _): &Place| {
            let name = &self.plan.workloads[*workload].name;
            let mut same = self.kept.values().filter(|kept| kept.run.workload == *name);
            mean(&mut same).unwrap_or(any)
        };
        let all: f64 = places.iter().map(of).sum();
        Some(Duration::from_secs_f64(all / self.jobs(jobs) as f64))
    }

    /// Makes these runs, and keeps each as it ends.
    pub fn run(
        &mut self,
        places: &[Place],
        jobs: Option<usize>,
        store: &Store,
        interrupt: &Interrupt,
        progress: &mut Progress,
    ) -> Result<(), Error> {
        let mut plan = self.plan.clone();
        let wanted: HashSet<_> = places.iter().copied().collect();
        plan.made = self
            .bed()
            .places()
            .filter(|p| !wanted.contains(p))
            .collect();
        let mut keeping = Keeping {
            store,
            bed: self.bed(),
            interrupt,
            progress,
            begun: HashMap::new(),
            kept: Vec::new(),
            failed: None,
        };
        let results = match &self.kind {
            Kind::Simulated(simulation) => {
                simulation.run(&plan, simulation.jobs(jobs), interrupt, &mut keeping)
            }
            Kind::Host => on_host(&plan, self.timeout, interrupt, &mut keeping)?,
        };
        let (kept, failed) = (keeping.kept, keeping.failed);
        self.kept.extend(kept);
        if let Some(error) = failed {
            return Err(error.into());
        }
        results.broken.map_or(Ok(()), |error| Err(error.into()))
    }

    /// All its results.
    pub fn archived(&self) -> Archived {
        let ours = self.plan.schedulers.iter().filter(|scheduler| {
            let loader = scheduler.loader.as_ref();
            loader.is_some_and(|loader| loader.ops == OURS)
        });
        Archived {
            label: self.label.clone(),
            machine: self.machine.clone(),
            inputs: self.inputs.clone(),
            left_out: self.left_out.clone(),
            ours: ours.map(|scheduler| scheduler.label.clone()).collect(),
            schedulers: self.plan.schedulers.iter().map(Into::into).collect(),
            pinned: self.plan.pinned.iter().map(Into::into).collect(),
            runs: self.kept.values().map(|kept| kept.run.clone()).collect(),
            parameters: archive::parameters(&self.plan.workloads),
        }
    }
}

fn base(
    machine: &campaign_file::Machine,
    args: &CompareArgs,
    bases: &mut Bases,
) -> Result<Arc<Base>, sim::error::Error> {
    let kit = match &machine.kit {
        Some(kit) => kit.clone(),
        None => prepared_kit(&machines_dir(None)?, args.arch, machine.kernel.as_deref()),
    };
    if let Some(base) = bases.get(&kit) {
        return Ok(Arc::clone(base));
    }
    let base = Arc::new(Base::load(&kit, args.arch)?);
    bases.insert(kit, Arc::clone(&base));
    Ok(base)
}

/// The workload as the campaign has it, of those that there are.
fn set_up(workload: &campaign_file::Workload, found: &[Workload]) -> Result<Workload, Error> {
    // The plan was made with these names.
    let Some(there) = found.iter().find(|there| there.name == workload.name) else {
        return Err(Error::Gone(workload.name.clone()));
    };
    if let Some(parameter) = there.parameters.first() {
        return Err(Error::Environment(parameter.clone()));
    }
    Ok(Workload {
        name: workload.label().into(),
        run: there.run.clone(),
        parameters: workload.parameters.clone(),
    })
}

/// All that can be known here of what figures depend on.
fn of_host(machine: &Machine, places: &Places) -> Result<Inputs, Error> {
    let program = std::fs::read(&places.ours).map_or_else(|_| "none".into(), |p| digest(&p));
    Ok([
        ("cpus", machine.cpus.to_string()),
        ("kernel", machine.kernel.clone()),
        ("model", machine.model.clone()),
        ("scheduler", program),
    ]
    .map(|(name, value)| (name.to_string(), value))
    .into())
}

fn on_host(
    plan: &Plan,
    timeout: Duration,
    interrupt: &Interrupt,
    watch: &mut dyn Watch,
) -> Result<Results, Error> {
    if plan.loads_schedulers() {
        preflight::run()?;
    }
    let (sender, events) = mpsc::channel();
    interrupt.notify(sender.clone());
    Ok(Engine::new("/sys/kernel/sched_ext", timeout, sender, events).run(plan, watch))
}

/// Keeps each run as it ends.
struct Keeping<'a> {
    store: &'a Store,
    bed: Bed<'a>,
    interrupt: &'a Interrupt,
    progress: &'a mut Progress,
    /// By the clock that never jumps.
    begun: HashMap<(u32, String, String), Instant>,
    kept: Vec<(Place, Kept)>,
    failed: Option<store::Error>,
}

impl Watch for Keeping<'_> {
    fn begin(&mut self, round: u32, rounds: u32, workload: &str, scheduler: &str) {
        let name = (round, workload.into(), scheduler.into());
        self.begun.insert(name, Instant::now());
        self.progress.begin(round, rounds, workload, scheduler);
    }

    fn end(&mut self, run: &Run) {
        let name = (run.round, run.workload.clone(), run.scheduler.clone());
        let begun = self.begun.remove(&name);
        let host_s = begun.map_or(0.0, |begun| begun.elapsed().as_secs_f64());
        if self.failed.is_some() {
            return;
        }
        let kept = self.bed.keep(run, host_s);
        if let Err(error) = self.store.keep(&self.bed, &kept) {
            self.failed = Some(error);
            self.interrupt.interrupt();
            return;
        }
        self.kept
            .extend(self.bed.place(run).map(|place| (place, kept)));
        self.progress.end(run);
    }

    fn finish(&mut self) {}
}
