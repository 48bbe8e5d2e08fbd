// SPDX-License-Identifier: GPL-2.0-only
//! How many CPUs ran a task at a time, and how fast those were: a phase is sequential while
//! one CPU runs a task and parallel while more do (Gouicem et al., USENIX ATC 2020,
//! section 2, see in the former what is lost to slow CPUs).
//!
//! Kept as counts of CPUs by what they do, so that an event costs the same on any number
//! of CPUs.

/// Full speed.
pub const FULL: u64 = 1024;
/// Bands of speed: eighths of full speed.
pub const BANDS: usize = 8;
/// Of those that run a task at a speed that nothing tells.
pub const UNTOLD: usize = BANDS;

/// The eighth of full speed, from 0, that a speed of 0..=1024 is in.
pub fn band(speed: u64) -> usize {
    (speed.saturating_sub(1) * BANDS as u64 / FULL).min(BANDS as u64 - 1) as usize
}

/// What a CPU does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doing {
    /// That is not in the trace.
    #[default]
    Unknown,
    /// No task runs.
    Idle,
    /// One does, in this band of speed or [`UNTOLD`].
    Busy(usize),
}

/// A kind of phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// One CPU ran a task.
    Sequential,
    /// More did.
    Parallel,
}

/// How long phases of each kind took, ns.
#[derive(Clone, Debug, Default)]
pub struct Phases {
    /// No CPU ran a task.
    pub idle: u64,
    /// What one CPU at least did is not in the trace.
    pub unknown: u64,
    /// By [`Phase`].
    pub time: [u64; 2],
    /// Time of CPUs that ran a task, ns, by [`Phase`] and band of speed.
    pub by_speed: [[u64; BANDS + 1]; 2],
    busy: [u32; BANDS + 1],
    nr_unknown: u32,
    since: u64,
}

impl Phases {
    /// From `begin_ns` on, with CPUs that do this.
    pub fn new(begin_ns: u64, cpus: impl Iterator<Item = Doing>) -> Self {
        let mut this = Self {
            since: begin_ns,
            ..Self::default()
        };
        for doing in cpus {
            if let Some(count) = this.count(doing) {
                *count += 1;
            }
        }
        this
    }

    /// A CPU did `before` up to `now`, and does `after` from then on.
    pub fn change(&mut self, now: u64, before: Doing, after: Doing) {
        if before == after {
            return;
        }
        self.advance(now);
        if let Some(count) = self.count(before) {
            *count -= 1;
        }
        if let Some(count) = self.count(after) {
            *count += 1;
        }
    }

    /// Counts what there was up to `now`.
    pub fn advance(&mut self, now: u64) {
        let ns = now.saturating_sub(self.since);
        self.since = self.since.max(now);
        let phase = match (self.nr_unknown, self.busy.iter().sum::<u32>()) {
            (0, 0) => {
                self.idle += ns;
                return;
            }
            (0, 1) => Phase::Sequential,
            (0, _) => Phase::Parallel,
            _ => {
                self.unknown += ns;
                return;
            }
        } as usize;
        self.time[phase] += ns;
        for (sum, cpus) in self.by_speed[phase].iter_mut().zip(self.busy) {
            *sum = sum.saturating_add(ns.saturating_mul(u64::from(cpus)));
        }
    }

    /// How many CPUs do this; of those that are idle nobody asks.
    fn count(&mut self, doing: Doing) -> Option<&mut u32> {
        match doing {
            Doing::Unknown => Some(&mut self.nr_unknown),
            Doing::Idle => None,
            Doing::Busy(band) => Some(&mut self.busy[band.min(UNTOLD)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_that_runs_is_sequential_and_two_are_parallel() {
        let mut phases = Phases::new(100, [Doing::Idle, Doing::Idle].into_iter());
        phases.change(110, Doing::Idle, Doing::Busy(7));
        phases.change(130, Doing::Idle, Doing::Busy(1));
        phases.change(170, Doing::Busy(1), Doing::Busy(2));
        phases.change(250, Doing::Busy(7), Doing::Idle);
        phases.advance(410);
        assert_eq!((phases.idle, phases.unknown), (10, 0));
        assert_eq!(phases.time, [20 + 160, 40 + 80]);
        let [sequential, parallel] = phases.by_speed;
        assert_eq!((sequential[7], sequential[2]), (20, 160));
        assert_eq!((parallel[7], parallel[1], parallel[2]), (120, 40, 80));
    }

    #[test]
    fn where_one_is_unknown_the_phase_is() {
        let cpus = [Doing::Unknown, Doing::Busy(UNTOLD)];
        let mut phases = Phases::new(0, cpus.into_iter());
        phases.change(5, Doing::Unknown, Doing::Idle);
        phases.advance(9);
        assert_eq!((phases.unknown, phases.time), (5, [4, 0]));
        assert_eq!(phases.by_speed[0][UNTOLD], 4);
    }

    #[test]
    fn bands_are_eighths() {
        let bands = [0, 1, 128, 129, 896, 897, 1024, u64::MAX / 8].map(band);
        assert_eq!(bands, [0, 0, 0, 1, 6, 7, 7, 7]);
    }

    fn doing() -> impl Strategy<Value = Doing> {
        prop_oneof![
            Just(Doing::Unknown),
            Just(Doing::Idle),
            (0..=UNTOLD).prop_map(Doing::Busy)
        ]
    }

    proptest! {
        /// Phases take all of the time, and CPUs are busy in them for as long as each was.
        #[test]
        fn time_adds_up(
            first in proptest::collection::vec(doing(), 1..6),
            changes in proptest::collection::vec((0_u64..50, 0_usize..6, doing()), 0..60),
        ) {
            let mut cpus = first.clone();
            let mut phases = Phases::new(7, first.into_iter());
            let (mut now, mut known, mut busy) = (7, 0, 0);
            for (ns, at, next) in changes {
                if !cpus.contains(&Doing::Unknown) {
                    let running = cpus.iter().filter(|cpu| matches!(cpu, Doing::Busy(_)));
                    busy += ns * running.count() as u64;
                    known += ns;
                }
                now += ns;
                let at = at % cpus.len();
                // As events come: many change nothing.
                phases.advance(now);
                phases.change(now, cpus[at], next);
                cpus[at] = next;
            }
            phases.advance(now);
            let sum: u64 = phases.time.iter().sum();
            prop_assert_eq!(phases.idle + sum, known);
            prop_assert_eq!(phases.idle + sum + phases.unknown, now - 7);
            prop_assert_eq!(phases.by_speed.iter().flatten().sum::<u64>(), busy);
        }
    }
}
