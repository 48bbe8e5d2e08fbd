// SPDX-License-Identifier: GPL-2.0-only
//! The CPUs that a process can count on, from what all of them did in one period.
//!
//! Jeffery et al. (section 5.2) take the part that a process had of all CPU time that was
//! used, times the CPUs: what it has beside its neighbours. That says nothing to a process
//! that was idle, and little to one that wanted less than its part. Here it is what the
//! process would have had if it had wanted all that it could get:
//!
//! - Each neighbour wanted what its threads ran and waited on the CPUs that the process may
//!   use, though no more than there are of these for it. What could as well have gone to
//!   CPUs outside which were idle does not count. Nor does what a quota kept from running,
//!   but among those who share that quota.
//! - Threads share CPUs, each by its weight, regardless of process: that is how the scheduler
//!   has it (weighted max-min, [`super::share`]). So the number of threads counts. Taken
//!   for the process are those which it had running and waiting, or as many as CPUs would
//!   be its if processes shared them, each by its threads' mean weight, whichever are more.
//! - Of a quota, of its cgroup or one above, the processes in there have shares likewise.
//!
//! Two processes with a thread for each of 4 CPUs get 2 each, and still do with two
//! threads each; alone each gets 4. Beside 12 threads of another, 4 get 1. Where
//! all wanted more than there is, it is what Jeffery et al. would say.
//!
//! A cgroup counts as a process of which the threads are those of all that is in it.

use super::mask::Mask;
use super::share::{Neighbour, Pool};
use std::collections::HashMap;

/// What a process did on one CPU, in parts of the period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Doing {
    pub cpu: usize,
    pub ran: f64,
    /// A part for each of its threads that waited for a CPU.
    pub waited: f64,
    /// A part for each that waited for a quota.
    pub throttled: f64,
    /// All three, times the weight of each thread; 1 is that of nice 0.
    pub claim: f64,
}

/// A process that ran or wanted to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Doer {
    pub doings: Vec<Doing>,
    /// Where it may run; none if that is not known: then it stays where it was.
    pub mask: Option<Mask>,
    /// The cgroups with a quota that it is in.
    pub limits: Vec<u64>,
}

/// What is asked about: a process or a cgroup.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subject {
    pub mask: Mask,
    /// Weight of a thread, where it had none that ran or wanted to; 1 is that of nice 0.
    pub weight: f64,
    /// What it did: places among the doers.
    pub doers: Vec<usize>,
    /// The cgroups with a quota that it is in, itself among them.
    pub limits: Vec<u64>,
}

/// CPUs, all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    pub affinity: f64,
    pub quota: Option<f64>,
    pub neighbours: f64,
    /// The least of these.
    pub cpus: f64,
    pub ran: f64,
    pub waited: f64,
    pub throttled: f64,
}

/// What happened in a period. Whatever is found out for one subject is kept for the next.
pub struct Period {
    doers: Vec<Doer>,
    /// CPUs that there are.
    present: Mask,
    /// What ran and waited on each CPU, by its number.
    load: Vec<f64>,
    /// CPUs that each cgroup with a quota may use.
    quotas: HashMap<u64, f64>,
    masks: HashMap<Mask, Pools>,
    limits: HashMap<u64, Pools>,
}

/// Those who share something: all their threads, and the same as processes.
struct Pools {
    view: View,
    threads: Pool,
    processes: Pool,
}

/// Which part of a doer counts.
#[derive(Clone, Copy, Debug, PartialEq)]
struct View {
    mask: Mask,
    /// Of what those did who may run elsewhere as well.
    staying: f64,
    /// 1 among those who share a quota: there what waited for it counts; else 0.
    throttled: f64,
}

impl View {
    /// What was wanted on one CPU, as far as it counts here.
    fn wanted(&self, doing: &Doing) -> f64 {
        doing.ran + doing.waited + doing.throttled * self.throttled
    }

    /// A doer as its threads, and as one process.
    fn of(&self, doer: &Doer) -> (Neighbour, Neighbour) {
        let inside = doer.doings.iter().filter(|d| self.mask.has(d.cpu));
        let (mut wanted, all, claim) = inside.fold((0.0, 0.0, 0.0), |(wanted, all, claim), d| {
            (wanted + self.wanted(d), all + d.wanted(), claim + d.claim)
        });
        let weight = if all > 0.0 { claim / all } else { 0.0 };
        if doer.may_leave(&self.mask) {
            wanted *= self.staying;
        }
        let claim = wanted * weight;
        let cpus = (doer.mask).map_or(self.mask.len(), |mask| mask.and(&self.mask).len());
        // It may have been sent elsewhere meanwhile, and still have run here.
        let wanted = wanted.min(cpus.max(1) as f64);
        let as_one = Neighbour {
            wanted,
            claim: weight,
        };
        (Neighbour { wanted, claim }, as_one)
    }
}

impl Doing {
    /// With what a quota kept from running.
    fn wanted(&self) -> f64 {
        self.ran + self.waited + self.throttled
    }
}

impl Doer {
    fn may_leave(&self, mask: &Mask) -> bool {
        self.mask.is_some_and(|mine| !mine.is_within(mask))
    }

    fn sum(&self, what: impl Fn(&Doing) -> f64) -> f64 {
        self.doings.iter().map(what).sum()
    }
}

impl Pools {
    fn new<'a>(capacity: f64, view: View, doers: impl Iterator<Item = &'a Doer>) -> Self {
        let (threads, processes): (Vec<_>, Vec<_>) = doers.map(|doer| view.of(doer)).unzip();
        Self {
            view,
            threads: Pool::new(capacity, threads),
            processes: Pool::new(capacity, processes),
        }
    }

    /// The share of the owner of these `doers` among all.
    fn share(&self, weight: f64, doers: &[&Doer]) -> f64 {
        let wanted = |doer: &&Doer| doer.sum(|d| self.view.wanted(d));
        let wanted: f64 = doers.iter().map(wanted).sum();
        let views = doers.iter().map(|doer| self.view.of(doer));
        let (threads, processes): (Vec<_>, Vec<_>) = views.unzip();
        let fair = self.processes.share(weight, &processes);
        self.threads.share(weight * fair.max(wanted), &threads)
    }
}

impl Period {
    pub fn new(doers: Vec<Doer>, present: Mask, quotas: HashMap<u64, f64>) -> Self {
        let mut load = Vec::new();
        for doing in doers.iter().flat_map(|doer| &doer.doings) {
            if load.len() <= doing.cpu {
                load.resize(doing.cpu + 1, 0.0);
            }
            load[doing.cpu] += doing.ran + doing.waited;
        }
        Self {
            doers,
            present,
            load,
            quotas,
            masks: HashMap::new(),
            limits: HashMap::new(),
        }
    }

    pub fn figures(&mut self, subject: &Subject) -> Figures {
        let limits = || {
            subject
                .limits
                .iter()
                .filter(|l| self.quotas.contains_key(l))
        };
        for limit in limits() {
            self.limits
                .entry(*limit)
                .or_insert_with(|| limited(&self.doers, self.present, *limit, self.quotas[limit]));
        }
        self.masks.entry(subject.mask).or_insert_with(|| {
            let view = View {
                mask: subject.mask,
                staying: staying(&self.doers, &self.load, &self.present, &subject.mask),
                throttled: 0.0,
            };
            Pools::new(subject.mask.len() as f64, view, self.doers.iter())
        });

        let doers = subject.doers.iter().filter_map(|i| self.doers.get(*i));
        let doers: Vec<&Doer> = doers.collect();
        let sum = |what: fn(&Doing) -> f64| doers.iter().map(|doer| doer.sum(what)).sum::<f64>();
        let weight = match sum(Doing::wanted) {
            wanted if wanted > 0.0 => sum(|d| d.claim) / wanted,
            _ => subject.weight,
        };
        let pools = limits().filter_map(|limit| self.limits.get(limit));
        let neighbours = (self.masks.get(&subject.mask).into_iter().chain(pools))
            .map(|pools| pools.share(weight, &doers))
            .fold(f64::INFINITY, f64::min);
        let affinity = subject.mask.len() as f64;
        let quota = limits().map(|limit| self.quotas[limit]);
        let quota = quota.min_by(f64::total_cmp);
        Figures {
            affinity,
            quota,
            neighbours,
            cpus: affinity.min(quota.unwrap_or(affinity)).min(neighbours),
            ran: sum(|d| d.ran),
            waited: sum(|d| d.waited),
            throttled: sum(|d| d.throttled),
        }
    }
}

/// Those who share the quota of a cgroup, wherever they run.
fn limited(doers: &[Doer], present: Mask, limit: u64, quota: f64) -> Pools {
    let view = View {
        mask: present,
        staying: 1.0,
        throttled: 1.0,
    };
    let inside = doers.iter().filter(|doer| doer.limits.contains(&limit));
    Pools::new(quota, view, inside)
}

/// The part of those who may leave these CPUs for which the others have no room.
fn staying(doers: &[Doer], load: &[f64], present: &Mask, mask: &Mask) -> f64 {
    let outside = (0..load.len()).filter(|cpu| present.has(*cpu) && !mask.has(*cpu));
    let used: f64 = outside.map(|cpu| load[cpu].min(1.0)).sum();
    let room = (present.len() - present.and(mask).len()) as f64 - used;
    let leaving = doers.iter().filter(|doer| doer.may_leave(mask));
    let leaving: f64 = (leaving.flat_map(|doer| &doer.doings))
        .filter(|doing| mask.has(doing.cpu))
        .map(|doing| doing.ran + doing.waited)
        .sum();
    match leaving {
        leaving if leaving > 0.0 => 1.0 - (room / leaving).clamp(0.0, 1.0),
        _ => 1.0,
    }
}

#[cfg(test)]
#[path = "count_tests.rs"]
mod tests;
