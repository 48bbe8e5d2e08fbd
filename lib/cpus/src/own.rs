// SPDX-License-Identifier: MIT
//! Counts the CPUs that the calling process can count on, as often as each millisecond.
//!
//! By the page it is a row of one process, or of its cgroup. Without the page, what the neighbours
//! ran is the time that its CPUs were busy less its own, by /proc/stat, so the answer is CPUs less
//! that: where all are busy, own CPU time / all CPU time x CPUs (Jeffery, Jensen and Mortier,
//! "Reducing Tail Latencies Through Environment- and Neighbour-aware Thread Management"). That
//! alone would leave a process that ran little with little for ever, beside greedy neighbours. So
//! [`Counter`] walks through /proc now and then and says who they are, and what each has to leave.

use crate::allowed::{affine_cpus, Limits};
use crate::counter::Counter;
use crate::max_min::{count, Demand};
use crate::page_reader::{Figures, Page, PageError, Row};
use crate::processes::{Process, Processes};
use crate::stat::{own_time, Stat};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// By the page there is nothing new sooner than this.
const LEAST_PERIOD: Duration = Duration::from_millis(1);
/// /proc's clock has no more.
const PROC_PERIOD: Duration = Duration::from_millis(10);
/// Over how long what neighbours ran is averaged: some ticks of that clock.
const AVERAGE: Duration = Duration::from_millis(60);
/// How often affinity and quota are looked at.
const LIMITS_PERIOD: Duration = Duration::from_millis(100);
/// Walks through /proc take this part of a CPU at most.
const WALKS: u32 = 100;

/// An answer.
#[derive(Debug)]
pub struct OwnCounted {
    /// CPUs; 0 or more, at most the affinity and the quota.
    pub cpus: f64,
    /// When there is something new to count.
    pub again_in: Duration,
    /// Why the page was not asked; none if it was.
    pub without_page: Option<PageError>,
}

/// Counts when it is asked, by what happened since it was asked before.
#[derive(Debug)]
pub struct OwnCounter {
    path: PathBuf,
    page: Option<Page>,
    /// When it was not there.
    missed: Option<Instant>,
    /// Tells the process from others that had its number.
    born: Option<u64>,
    allowed: Allowed,
    neighbours: Neighbours,
}

impl OwnCounter {
    /// For the calling process, with the page at `path`, usually [`crate::DEFAULT_PAGE`].
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.into(),
            page: None,
            missed: None,
            born: Process::own().map(|own| own.start),
            allowed: Allowed::look(),
            neighbours: Neighbours::new(path),
        }
    }

    /// What can be counted on now. The first answer without the page knows of no neighbours.
    pub fn count(&mut self) -> OwnCounted {
        if self.allowed.at.elapsed() >= LIMITS_PERIOD {
            self.allowed = Allowed::look();
        }
        let affinity = self.allowed.cpus.len().max(1) as f64;
        let quotas = self.allowed.quotas.iter().copied();
        let most = quotas.fold(affinity, f64::min);
        match self.ask_page() {
            Ok((figures, period)) => OwnCounted {
                cpus: figures.map_or(most, |found| most.min(f64::from(found.cpus) / 1000.0)),
                again_in: period.max(LEAST_PERIOD),
                without_page: None,
            },
            Err(why) => {
                let neighbours = self.neighbours.look_at(&self.allowed.cpus);
                OwnCounted {
                    cpus: count(affinity, &self.allowed.quotas, &neighbours),
                    again_in: PROC_PERIOD,
                    without_page: Some(why),
                }
            }
        }
    }

    /// The figures of this process, or those of its cgroup if it did not run of late.
    fn ask_page(&mut self) -> Result<(Option<Figures>, Duration), PageError> {
        // A scheduler that starts anew makes a new page.
        let page = match self.page.take() {
            Some(page) => page,
            None if self.missed.is_some_and(|at| at.elapsed() < LIMITS_PERIOD) => {
                return Err(PageError::Missing);
            }
            None => Page::open(&self.path).inspect_err(|_| self.missed = Some(Instant::now()))?,
        };
        let found = page.read(self.allowed.cgroup);
        let (rows, of_cgroup) = found.inspect_err(|_| self.missed = Some(Instant::now()))?;
        let is_own = |row: &&Row| row.pid == std::process::id() && Some(row.start) == self.born;
        let own = rows.iter().find(is_own).map(|row| row.figures);
        let period = page.period()?;
        self.page = Some(page);
        Ok((own.or(of_cgroup), period))
    }
}

/// What the process may use whatever its neighbours do.
#[derive(Debug)]
struct Allowed {
    at: Instant,
    cpus: Vec<usize>,
    quotas: Vec<f64>,
    cgroup: Option<u64>,
}

impl Allowed {
    fn look() -> Self {
        let limits = Limits::find();
        Self {
            at: Instant::now(),
            cpus: affine_cpus(),
            quotas: limits.quotas().into_iter().map(|(_, cpus)| cpus).collect(),
            cgroup: limits.cgroup(),
        }
    }
}

/// The neighbours by /proc.
#[derive(Debug)]
struct Neighbours {
    stat: Option<Stat>,
    looked: Option<Look>,
    /// CPUs that they had of late.
    ran: Option<f64>,
    counter: Counter,
    /// Who they are.
    known: Vec<Demand>,
    walk_at: Instant,
}

#[derive(Debug)]
struct Look {
    at: Instant,
    busy: Duration,
    own: Duration,
}

impl Neighbours {
    fn new(path: &Path) -> Self {
        Self {
            stat: Stat::open(),
            looked: None,
            ran: None,
            counter: Counter::new(path),
            known: Vec::new(),
            walk_at: Instant::now(),
        }
    }

    /// What they want now, of these CPUs.
    fn look_at(&mut self, cpus: &[usize]) -> Vec<Demand> {
        self.look(cpus);
        if Instant::now() >= self.walk_at {
            self.walk();
        }
        scaled(&self.known, self.ran.unwrap_or(0.0))
    }

    fn look(&mut self, cpus: &[usize]) {
        let Some(busy) = self.stat.as_mut().and_then(|stat| stat.busy(cpus)) else {
            return;
        };
        let now = Look {
            at: Instant::now(),
            busy,
            own: own_time(),
        };
        let Some(then) = &self.looked else {
            self.looked = Some(now);
            return;
        };
        let took = (now.at - then.at).as_secs_f64();
        if took < PROC_PERIOD.as_secs_f64() / 2.0 {
            return;
        }
        let busy = now.busy.saturating_sub(then.busy);
        let own = now.own.saturating_sub(then.own);
        // Below 0 for one look: the tick that counts what a process ran comes later. It evens out.
        let ran = (busy.as_secs_f64() - own.as_secs_f64()) / took;
        let fade = 1.0 - (-took / AVERAGE.as_secs_f64()).exp();
        self.ran = Some(
            self.ran
                .map_or(ran, |before| before + (ran - before) * fade),
        );
        self.looked = Some(now);
    }

    fn walk(&mut self) {
        let begin = Instant::now();
        let processes = Processes::look();
        self.counter.count(&processes);
        self.known = self.counter.neighbours(&processes);
        let took = begin.elapsed();
        self.walk_at = Instant::now() + (took * WALKS).max(LIMITS_PERIOD);
    }
}

/// The same neighbours, all together wanting what they ran of late. What is beyond those that
/// are known is one that came since, which has no part in a quota as far as is known.
fn scaled(known: &[Demand], ran: f64) -> Vec<Demand> {
    let (sum, ran): (f64, f64) = (known.iter().map(|one| one.cpus).sum(), ran.max(0.0));
    let by = if sum > ran { ran / sum } else { 1.0 };
    let new = Demand {
        cpus: (ran - sum).max(0.0),
        weight: 1.0,
        quotas: 0,
    };
    let known = known.iter().map(|one| Demand {
        cpus: one.cpus * by,
        ..*one
    });
    known.chain([new]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn demands(wants: &[f64]) -> Vec<Demand> {
        let demand = |&cpus| Demand {
            cpus,
            weight: 1.0,
            quotas: 0,
        };
        wants.iter().map(demand).collect()
    }

    fn of(cpus: f64, known: &[f64], ran: f64) -> f64 {
        count(cpus, &[], &scaled(&demands(known), ran))
    }

    #[test]
    fn who_came_since_the_walk_counts_as_one() {
        assert_eq!(of(4.0, &[], 1.0), 3.0);
        assert_eq!(of(4.0, &[], 4.0), 2.0);
        assert_eq!(of(6.0, &[5.0], 10.0), 2.0);
    }

    #[test]
    fn who_went_leaves_all() {
        assert_eq!(of(4.0, &[3.0, 3.0], 0.0), 4.0);
        assert_eq!(of(4.0, &[3.0, 3.0], -0.3), 4.0);
        assert_eq!(of(4.0, &[3.0, 3.0], 1.0), 3.0);
    }

    #[test]
    fn without_a_page_there_is_a_count_and_it_is_bounded() {
        let mut counter = OwnCounter::new(Path::new("/nonexistent"));
        for _ in 0..3 {
            let counted = counter.count();
            assert!(counted.without_page.is_some());
            assert_eq!(counted.again_in, PROC_PERIOD);
            assert!(counted.cpus >= 0.0 && counted.cpus <= crate::affinity() as f64);
        }
    }

    proptest! {
        #[test]
        fn never_less_than_the_part_among_all_nor_than_what_is_idle(
            cpus in 1.0f64..64.0,
            known in prop::collection::vec(0.0f64..64.0, 0..10),
            ran in -1.0f64..64.0,
        ) {
            let found = of(cpus, &known, ran);
            prop_assert!(found <= cpus + 1e-9);
            prop_assert!(found >= cpus / (2 + known.len()) as f64 - 1e-9);
            prop_assert!(found >= cpus - ran.max(0.0) - 1e-9);
        }
    }
}
