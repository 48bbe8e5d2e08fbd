// SPDX-License-Identifier: MIT
//! Counts the CPUs that a program and all that it starts can count on.
//!
//! Of the CPUs of its affinity, at most what the page's figure of its cgroup allows, neighbours
//! in the same cgroup (without the page: on the machine) take their parts, and of each quota those who have a part
//! in it; the least counts. That is the agent's rule, too (src/cpus/count.rs): weighted max-min
//! among the branches of the tree of processes that leave the way from the first process to the
//! program. So a build counts as one, however many processes it has, be it started by another
//! terminal, by a service, or by the script that started the program too. What a branch wants
//! is by the page what its processes ran and waited for CPUs and quotas, by /proc what they ran. Each weighs as the
//! kernel has it by nice values, against the program's own.

use crate::allowed::{affinity, Limits};
use crate::max_min::{count, Demand};
use crate::page_reader::{Page, PageError, Row};
use crate::processes::Processes;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// How much of each new reading counts, of those by /proc: its clock has 10 ms.
const FADE: f64 = 0.25;
/// What a step of a nice value is worth.
const NICE_STEP: f64 = 1.25;

/// An answer.
#[derive(Debug)]
pub struct Counted {
    /// CPUs; above 0, and at most the affinity.
    pub cpus: f64,
    /// Why the page was not asked; none if it was.
    pub without_page: Option<PageError>,
}

/// Processes of a branch with one nice value, and with a part in so many of the program's quotas.
type Group = (u32, i32, usize);

/// Counts when it is asked; without the page, by what happened since it was asked before.
#[derive(Debug)]
pub struct Counter {
    path: PathBuf,
    page: Option<Page>,
    limits: Limits,
    looked: Option<(Instant, HashMap<Group, u64>)>,
    wanted: HashMap<Group, f64>,
}

impl Counter {
    /// For the calling process, with the page at `path`, usually [`crate::DEFAULT_PAGE`].
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.into(),
            page: None,
            limits: Limits::find(),
            looked: None,
            wanted: HashMap::new(),
        }
    }

    /// What can be counted on now. It walks through /proc: some 20 us a process. `processes`
    /// is such a walk of a moment ago.
    pub fn count(&mut self, processes: &Processes) -> Counted {
        let me = std::process::id();
        let way: HashSet<u32> = processes.ancestors(me).collect();
        let limits = self.limits.clone();
        let quotas = limits.quotas();
        let group = |pid: u32| {
            let branch = processes.branch(pid, me, &way)?;
            let nice = processes.0.get(&pid)?.nice;
            Some((branch, nice, limits.parts_of(pid, &quotas)))
        };
        let mut cpus = affinity() as f64;
        let id = limits.cgroup();
        let without_page = match self.read(id) {
            Ok((rows, figures)) => {
                if let Some(figures) = figures {
                    cpus = cpus.min(f64::from(figures.cpus) / 1000.0);
                }
                self.wanted.clear();
                self.looked = None;
                // Those of other cgroups are in the cgroup's figure.
                let is_beside = |row: &&Row| figures.is_none() || Some(row.cgroup) == id;
                for row in rows.iter().filter(is_beside) {
                    if let Some(group) = group(row.pid) {
                        let figures = row.figures;
                        let busy = [figures.ran, figures.waited, figures.throttled].map(f64::from);
                        *self.wanted.entry(group).or_default() += busy.iter().sum::<f64>() / 1000.0;
                    }
                }
                None
            }
            Err(why) => {
                self.look(processes, group);
                Some(why)
            }
        };
        let quotas: Vec<f64> = quotas.iter().map(|(_, cpus)| *cpus).collect();
        Counted {
            cpus: count(cpus, &quotas, &self.neighbours(processes)),
            without_page,
        }
    }

    /// What each neighbour wants, as of the last count, which was of `processes`.
    pub(crate) fn neighbours(&self, processes: &Processes) -> Vec<Demand> {
        let me = processes.0.get(&std::process::id());
        let my_nice = me.map_or(0, |process| process.nice);
        let demand = |(&(_, nice, quotas), &cpus): (&Group, &f64)| Demand {
            cpus,
            weight: NICE_STEP.powi(my_nice - nice),
            quotas,
        };
        self.wanted.iter().map(demand).collect()
    }

    fn read(
        &mut self,
        cgroup: Option<u64>,
    ) -> Result<(Vec<Row>, Option<crate::Figures>), PageError> {
        // A scheduler that starts anew makes a new page.
        let page = match self.page.take() {
            Some(page) => page,
            None => Page::open(&self.path)?,
        };
        let found = page.read(cgroup)?;
        self.page = Some(page);
        Ok(found)
    }

    /// What each group ran since the last look. A process that ends leaves its time to the one
    /// that waits for it, so a group's sum grows by what ran.
    fn look(&mut self, processes: &Processes, group: impl Fn(u32) -> Option<Group>) {
        let now = Instant::now();
        let mut sums: HashMap<Group, u64> = HashMap::new();
        for (&pid, process) in &processes.0 {
            if let Some(group) = group(pid) {
                *sums.entry(group).or_default() += process.ticks;
            }
        }
        if let Some((then, before)) = self.looked.take() {
            let ticks = (now - then).as_secs_f64() * ticks_per_second();
            for (group, &sum) in &sums {
                let ran = before
                    .get(group)
                    .map_or(0.0, |&before| sum.saturating_sub(before) as f64);
                let now = ran / ticks.max(1.0);
                self.wanted
                    .entry(*group)
                    .and_modify(|wants| *wants += (now - *wants) * FADE)
                    .or_insert(now);
            }
        }
        self.wanted.retain(|group, _| sums.contains_key(group));
        self.looked = Some((now, sums));
    }
}

fn ticks_per_second() -> f64 {
    // SAFETY: no memory is involved.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) as f64 }
}
