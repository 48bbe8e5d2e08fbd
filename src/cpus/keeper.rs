// SPDX-License-Identifier: GPL-2.0-only
//! What the agent keeps of processes and cgroups from period to period, and how it makes
//! a page of that. Affinities of processes that ran are looked up every period, quotas and
//! all else once a second.

use super::count::{Doer, Doing, Period, Subject};
use super::ledger::{Entered, Living, REST};
use super::mask::Mask;
use super::page::{CgroupEntry, Contents, ProcessEntry, MOST_CGROUPS, MOST_PROCESSES};
use super::quota::{above, Hierarchy, Version};
use crate::cgroups::Cgroups;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// A process that lives, or did a moment ago.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// ns since boot.
    start: u64,
    /// Its cgroup in the hierarchy with the cpu controller, 0 if that is not known.
    cgroup: u64,
    mask: Mask,
    /// 1 is that of nice 0.
    weight: f64,
}

/// A cgroup with something in it, or above one.
#[derive(Clone, Debug)]
struct Group {
    above: Option<u64>,
    quota: Option<f64>,
}

/// Where to find out what the kernel alone knows; the tests have another.
pub trait Kernel {
    /// Which of this many CPUs a process may run on; none if it is gone.
    fn mask(&mut self, pid: u32, cpus: usize) -> Option<Mask>;
    /// The cgroup, in the hierarchy with the cpu controller, of a process that has this one
    /// in version 2.
    fn cgroup(&mut self, pid: u32, unified: u64) -> Option<u64>;
    /// Its path.
    fn path(&mut self, cgroup: u64) -> Option<String>;
    fn id(&mut self, path: &str) -> Option<u64>;
    fn quota(&mut self, path: &str) -> Option<f64>;
    /// Cgroups of which nobody will ask for now.
    fn forget(&mut self, which: &dyn Fn(u64) -> bool);
}

/// The kernel that runs.
#[derive(Debug, Default)]
pub struct Running {
    /// None where no cgroups are mounted.
    hierarchy: Option<Hierarchy>,
    paths: Cgroups,
}

impl Running {
    /// Looks for cgroups until some are mounted.
    pub fn look(&mut self) {
        if self.hierarchy.is_none() {
            self.hierarchy = Hierarchy::find();
            if let Some(hierarchy) = &self.hierarchy {
                self.paths = Cgroups::at(hierarchy.root());
            }
        }
    }
}

impl Kernel for Running {
    fn mask(&mut self, pid: u32, cpus: usize) -> Option<Mask> {
        Mask::of_process(pid, cpus)
    }

    fn cgroup(&mut self, pid: u32, unified: u64) -> Option<u64> {
        let hierarchy = self.hierarchy.as_ref()?;
        match hierarchy.version {
            Version::V2 => Some(unified),
            Version::V1 => hierarchy.id(&hierarchy.cgroup_of(pid).ok()??),
        }
    }

    fn path(&mut self, cgroup: u64) -> Option<String> {
        // What is gone has its number for a name.
        let path = self.paths.path(cgroup);
        (path.raw().starts_with('/')).then(|| path.raw().into())
    }

    fn id(&mut self, path: &str) -> Option<u64> {
        self.hierarchy.as_ref()?.id(path)
    }

    fn quota(&mut self, path: &str) -> Option<f64> {
        self.hierarchy.as_ref()?.quota(path)
    }

    fn forget(&mut self, which: &dyn Fn(u64) -> bool) {
        self.paths.forget(which);
    }
}

/// The page, without its time and writer.
#[derive(Debug)]
pub struct Keeper<K> {
    pub kernel: K,
    /// CPUs that there are.
    present: Mask,
    ticks_per_second: u64,
    processes: BTreeMap<u32, Known>,
    groups: HashMap<u64, Group>,
}

impl<K: Kernel> Keeper<K> {
    pub fn new(kernel: K, present: Mask) -> Self {
        Self {
            kernel,
            present,
            ticks_per_second: procfs::ticks_per_second(),
            processes: BTreeMap::new(),
            groups: HashMap::new(),
        }
    }

    /// All living processes; and quotas are looked up again.
    pub fn take_in(&mut self, living: &[Living]) {
        self.processes.clear();
        for process in living {
            self.learn(process);
        }
        // Those that nobody is in any more go.
        let groups = std::mem::take(&mut self.groups);
        self.kernel.forget(&|cgroup| !groups.contains_key(&cgroup));
    }

    fn learn(&mut self, process: &Living) {
        let Some(mask) = self.kernel.mask(process.pid, self.present.end()) else {
            return;
        };
        let cgroup = self.kernel.cgroup(process.pid, process.cgroup);
        self.processes.insert(
            process.pid,
            Known {
                start: process.start,
                cgroup: cgroup.unwrap_or_default(),
                mask,
                weight: process.weight as f64 / NICE_0,
            },
        );
    }

    /// Makes a page of what was entered for a period of this many ns.
    pub fn page(&mut self, entered: &[Entered], length: u64) -> Contents {
        let (mut doers, places) = self.doers(entered, length);
        let groups: Vec<u64> = self.processes.values().map(|known| known.cgroup).collect();
        for group in groups {
            self.know_group(group);
        }
        let limits: HashMap<u64, Vec<u64>> = (self.groups.keys())
            .map(|id| (*id, self.limits(*id)))
            .collect();
        let quotas = self
            .groups
            .iter()
            .filter_map(|(id, g)| Some((*id, g.quota?)));
        for (pid, place) in &places {
            let group = self.processes.get(pid).map(|known| known.cgroup);
            doers[*place].limits = group
                .and_then(|g| limits.get(&g))
                .cloned()
                .unwrap_or_default();
        }
        let mut period = Period::new(doers, self.present, quotas.collect());

        let mut contents = Contents {
            length: Duration::from_nanos(length),
            ..Default::default()
        };
        let mut cgroups: BTreeMap<u64, Subject> = BTreeMap::new();
        // Those that ran come first if there is not room for all.
        let mut room_for_idle = MOST_PROCESSES.saturating_sub(places.len());
        for (pid, known) in &self.processes {
            let place = places.get(pid).copied();
            self.count_in(&mut cgroups, known, place, &limits);
            let has_room = match place {
                Some(_) => contents.processes.len() < MOST_PROCESSES,
                None => room_for_idle > 0,
            };
            if !has_room {
                contents.processes_left_out += 1;
                continue;
            }
            room_for_idle -= usize::from(place.is_none());
            let figures = period.figures(&Subject {
                mask: known.mask,
                weight: known.weight,
                doers: place.into_iter().collect(),
                limits: limits.get(&known.cgroup).cloned().unwrap_or_default(),
            });
            contents.processes.push(ProcessEntry {
                pid: *pid,
                start: known.start / (1_000_000_000 / self.ticks_per_second),
                cgroup: known.cgroup,
                figures,
            });
        }
        contents.cgroups_left_out = cgroups.len().saturating_sub(MOST_CGROUPS) as u32;
        contents.cgroups = (cgroups.into_iter().take(MOST_CGROUPS))
            .map(|(id, subject)| CgroupEntry {
                id,
                figures: period.figures(&subject),
            })
            .collect();
        contents
    }

    /// What each process did, and where among them each of those that are known stands.
    fn doers(&mut self, entered: &[Entered], length: u64) -> (Vec<Doer>, HashMap<u32, usize>) {
        let mut doers: Vec<Doer> = Vec::new();
        let mut all: HashMap<u32, usize> = HashMap::new();
        let part = |ns: u64| ns as f64 / length.max(1) as f64;
        for did in entered {
            let place = *all.entry(did.pid).or_insert(doers.len());
            if place == doers.len() {
                doers.push(Doer::default());
                if ![0, REST].contains(&did.pid) {
                    self.follow(did);
                }
            }
            let doing = Doing {
                cpu: did.cpu,
                ran: part(did.ran),
                waited: part(did.waited),
                throttled: part(did.throttled),
                claim: part(did.claim),
            };
            // The banks of a CPU may have one each.
            match (doers[place].doings.iter_mut()).find(|d| d.cpu == did.cpu) {
                Some(same) => {
                    same.ran += doing.ran;
                    same.waited += doing.waited;
                    same.throttled += doing.throttled;
                    same.claim += doing.claim;
                }
                None => doers[place].doings.push(doing),
            }
        }
        all.retain(|pid, place| match self.processes.get(pid) {
            Some(known) => {
                doers[*place].mask = Some(known.mask);
                true
            }
            None => false,
        });
        (doers, all)
    }

    /// A process ran: it may be new, or elsewhere than it was.
    fn follow(&mut self, did: &Entered) {
        let mean = did.claim as f64 / (did.ran + did.waited + did.throttled).max(1) as f64;
        let weight = (mean * NICE_0) as u64;
        match self.processes.get_mut(&did.pid) {
            Some(known) if known.start == did.start => {
                known.weight = mean;
                match self.kernel.mask(did.pid, self.present.end()) {
                    Some(mask) => known.mask = mask,
                    None => drop(self.processes.remove(&did.pid)),
                }
            }
            _ => self.learn(&Living {
                pid: did.pid,
                start: did.start,
                cgroup: did.cgroup,
                weight,
            }),
        }
    }

    /// Finds out what is to be known of a cgroup and those above it.
    fn know_group(&mut self, id: u64) {
        let mut next = Some(id).filter(|id| *id != 0);
        while let Some(id) = next.filter(|id| !self.groups.contains_key(id)) {
            let Some(path) = self.kernel.path(id) else {
                return;
            };
            next = above(&path).and_then(|path| self.kernel.id(path));
            let quota = self.kernel.quota(&path);
            self.groups.insert(id, Group { above: next, quota });
        }
    }

    /// A cgroup and those above it.
    fn way_up(&self, id: u64) -> impl Iterator<Item = (u64, &Group)> {
        let get = |id: u64| Some((id, self.groups.get(&id)?));
        std::iter::successors(get(id), move |(_, group)| get(group.above?))
    }

    /// Those with a quota.
    fn limits(&self, id: u64) -> Vec<u64> {
        let limited = self.way_up(id).filter(|(_, group)| group.quota.is_some());
        limited.map(|(id, _)| id).collect()
    }

    /// Adds a process to the cgroups that it is in.
    fn count_in(
        &self,
        cgroups: &mut BTreeMap<u64, Subject>,
        known: &Known,
        place: Option<usize>,
        limits: &HashMap<u64, Vec<u64>>,
    ) {
        for (id, _) in self.way_up(known.cgroup) {
            let subject = cgroups.entry(id).or_insert_with(|| Subject {
                weight: known.weight,
                limits: limits.get(&id).cloned().unwrap_or_default(),
                ..Default::default()
            });
            subject.mask = subject.mask.or(&known.mask);
            subject.doers.extend(place);
        }
    }
}

const NICE_0: f64 = 1024.0;

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
