// SPDX-License-Identifier: GPL-2.0-only
//! What the tasks of a context did, and how well that went.
//!
//! The **score** of a slot is the time that it took to get a unit of work done:
//! (time on a CPU + time waiting for one + time asleep in priority inversions) / work,
//! where work is time on a CPU as if at full speed, without known spinning. A slow CPU,
//! a late wake-up, a queue and an inversion all make it larger; less is better, and 1 is
//! the least. By Little's law it is the mean number of tasks that want a CPU, divided by
//! the work done in a second. So for a fixed number of tasks that always want to go on
//! less of it is more throughput, for requests that come at a rate of their own it is
//! less latency, and for a chain of processes less time from end to end; and how long a
//! slot was, and how much there was to do in it, cancels out.
//!
//! What it does not see: caches, since work is time times frequency and not
//! instructions; what a task waits for asleep but for inversions, as a disk or another
//! task; spinning that is not found; and power. Where no source shows how fast CPUs
//! are, speeds are those of a model, and where that says that they never change, only
//! waiting counts. Tasks of other contexts are in it as far as they are waited for: a
//! mode that is good for one context at another's cost is good by this score.

use crate::intf;
use crate::raw::read;
use std::time::Duration;

/// Work of less than this many CPUs at full speed is too little to be judged by.
pub const LEAST_LOAD: f64 = 0.05;

/// Sums since the scheduler was loaded, or what came between two looks at them; ns.
/// bpf/account.bpf.c adds them up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Time on a CPU.
    pub run: u64,
    /// Time runnable and not on a CPU.
    pub wait: u64,
    /// Time asleep in priority inversions.
    pub inversion: u64,
    /// Time on a CPU as if at full speed, without known spinning.
    pub work: u64,
}

impl Done {
    /// Of all CPUs: one `struct fl_done` each; those of another size are left out.
    pub fn of_cpus(cpus: &[Vec<u8>]) -> Self {
        let mut sum = Self::default();
        for cpu in cpus.iter().filter_map(|bytes| read::<intf::fl_done>(bytes)) {
            sum.add(&Self {
                run: cpu.run,
                wait: cpu.wait,
                inversion: cpu.inversion,
                work: cpu.work,
            });
        }
        sum
    }

    /// Adds what another policy, CPU or slot has.
    pub fn add(&mut self, other: &Self) {
        self.run += other.run;
        self.wait += other.wait;
        self.inversion += other.inversion;
        self.work += other.work;
    }

    /// What came since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            run: self.run.saturating_sub(earlier.run),
            wait: self.wait.saturating_sub(earlier.wait),
            inversion: self.inversion.saturating_sub(earlier.inversion),
            work: self.work.saturating_sub(earlier.work),
        }
    }

    /// How many CPUs at full speed would have done that in so long.
    pub fn load(&self, length: Duration) -> f64 {
        self.work as f64 / (length.as_nanos() as f64).max(1.0)
    }

    /// Time for a unit of work; none where there was too little to judge by.
    pub fn score(&self, length: Duration) -> Option<f64> {
        let time = self.run + self.wait + self.inversion;
        (self.load(length) >= LEAST_LOAD).then(|| time as f64 / self.work as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn slow_cpus_waits_and_inversions_cost_alike() {
        let plain = Done {
            run: 800_000_000,
            work: 800_000_000,
            ..Done::default()
        };
        assert_eq!(plain.score(SECOND), Some(1.0));
        for worse in [
            Done {
                work: 400_000_000,
                ..plain
            },
            Done {
                wait: 800_000_000,
                ..plain
            },
            Done {
                inversion: 800_000_000,
                ..plain
            },
        ] {
            assert_eq!(worse.score(SECOND), Some(2.0), "{worse:?}");
        }
    }

    #[test]
    fn how_long_it_was_and_how_much_there_was_to_do_cancel_out() {
        let little = Done {
            run: 100_000_000,
            wait: 50_000_000,
            work: 80_000_000,
            inversion: 0,
        };
        let mut much = little;
        for _ in 1..10 {
            much.add(&little);
        }
        assert_eq!(much.score(10 * SECOND), little.score(SECOND));
        assert_eq!(much.score(SECOND), little.score(SECOND));
        assert_eq!(much.since(&little).since(&much), Done::default());
    }

    #[test]
    fn too_little_work_is_no_score() {
        let done = Done {
            run: 50_000_000,
            work: 49_999_999,
            wait: 1,
            inversion: 0,
        };
        assert_eq!(done.score(SECOND), None);
        assert_eq!(Done::default().score(Duration::ZERO), None);
    }

    #[test]
    fn figures_of_cpus_are_added_up() {
        let cpu = |first: u64| (first..first + 4).flat_map(u64::to_ne_bytes).collect();
        let sum = Done::of_cpus(&[cpu(1), cpu(10), vec![0; 3]]);
        let want = Done {
            run: 11,
            wait: 13,
            inversion: 15,
            work: 17,
        };
        assert_eq!(sum, want);
    }
}
