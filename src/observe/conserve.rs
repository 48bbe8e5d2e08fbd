// SPDX-License-Identifier: GPL-2.0-only
//! Work conservation: for how long a CPU was idle although a task that may run
//! there had been waiting for longer than a grace time.
//!
//! For each CPU it is the length of (its idle time) ∩ (the union, over the
//! tasks allowed there, of the time that each had waited beyond the grace), and
//! the sum over the CPUs. So one waiting task makes every idle CPU that it may
//! use count, and ten waiting tasks count no more than one: it is CPU time
//! that work was there for.
//!
//! Time is cut into windows, each closed well after it has passed: memory is
//! what happens in two windows, however long the observation.

use super::event::Mask;

/// Half-open, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval {
    /// The first nanosecond.
    pub start: u64,
    /// The first one after it.
    pub end: u64,
}

impl Interval {
    fn clip(self, window: Interval) -> Option<Self> {
        let start = self.start.max(window.start);
        let end = self.end.min(window.end);
        (start < end).then_some(Self { start, end })
    }
}

/// One task's time beyond the grace, and where it might have run.
#[derive(Clone, Copy, Debug)]
pub struct LateWait {
    /// From the end of the grace to the end of the wait.
    pub time: Interval,
    /// The CPUs on which it might have run all the while.
    pub allowed: Mask,
    /// It was given an idle CPU at once, and waited for that to answer.
    pub placed: bool,
}

fn allows(mask: &Mask, cpu: usize) -> bool {
    mask.get(cpu / 64)
        .is_some_and(|word| word >> (cpu % 64) & 1 == 1)
}

/// Merges what overlaps or touches.
fn union(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.sort_unstable();
    let mut merged: Vec<Interval> = Vec::with_capacity(intervals.len());
    for next in intervals {
        match merged.last_mut() {
            Some(last) if next.start <= last.end => last.end = last.end.max(next.end),
            _ => merged.push(next),
        }
    }
    merged
}

/// Total length of the overlap of two lists, each sorted and without overlaps.
fn overlap(left: &[Interval], right: &[Interval]) -> u64 {
    let (mut total, mut i, mut j) = (0, 0, 0);
    while let (Some(l), Some(r)) = (left.get(i), right.get(j)) {
        if let Some(both) = l.clip(*r) {
            total += both.end - both.start;
        }
        if l.end < r.end {
            i += 1;
        } else {
            j += 1;
        }
    }
    total
}

/// Idle time of each CPU and late waits, until their window is closed.
#[derive(Debug)]
pub struct Conservation {
    idle: Vec<Vec<Interval>>,
    late: Vec<LateWait>,
    /// All before this is counted.
    closed: u64,
    wasted: u64,
    wasted_unplaced: u64,
}

impl Conservation {
    /// For CPU ids below `cpus`.
    pub fn new(cpus: usize) -> Self {
        Self {
            idle: vec![Vec::new(); cpus],
            late: Vec::new(),
            closed: 0,
            wasted: 0,
            wasted_unplaced: 0,
        }
    }

    /// A CPU was idle; for each CPU in order of time.
    pub fn add_idle(&mut self, cpu: usize, time: Interval) {
        if let Some(list) = self.idle.get_mut(cpu) {
            list.push(time);
        }
    }

    /// A wait beyond the grace has ended.
    pub fn add_late(&mut self, wait: LateWait) {
        self.late.push(wait);
    }

    /// All time before this, ns, is counted.
    pub fn closed(&self) -> u64 {
        self.closed
    }

    /// Counts all up to `end`. What has not ended yet is given as it stands:
    /// `open_idle` by CPU since when, `open_late` with any end.
    pub fn close(&mut self, end: u64, open_idle: &[(usize, u64)], open_late: &[LateWait]) {
        let window = Interval {
            start: self.closed,
            end,
        };
        for &(cpu, start) in open_idle {
            self.add_idle(
                cpu,
                Interval {
                    start,
                    end: u64::MAX,
                },
            );
        }
        let waits: Vec<LateWait> = self.late.iter().chain(open_late).copied().collect();
        self.wasted += self.wasted_by(&waits, window);
        let unplaced: Vec<LateWait> = waits.into_iter().filter(|w| !w.placed).collect();
        self.wasted_unplaced += self.wasted_by(&unplaced, window);
        for &(cpu, _) in open_idle {
            if let Some(list) = self.idle.get_mut(cpu) {
                list.pop();
            }
        }
        for list in &mut self.idle {
            list.retain(|i| i.end > end);
        }
        self.late.retain(|w| w.time.end > end);
        self.closed = end;
    }

    fn wasted_by(&self, waits: &[LateWait], window: Interval) -> u64 {
        if waits.is_empty() {
            return 0;
        }
        (0..self.idle.len())
            .map(|cpu| self.wasted_on(cpu, waits, window))
            .sum()
    }

    fn wasted_on(&self, cpu: usize, waits: &[LateWait], window: Interval) -> u64 {
        let late = waits
            .iter()
            .filter(|w| allows(&w.allowed, cpu))
            .filter_map(|w| w.time.clip(window))
            .collect();
        let idle: Vec<Interval> = self.idle[cpu]
            .iter()
            .filter_map(|i| i.clip(window))
            .collect();
        overlap(&idle, &union(late))
    }

    /// Nanoseconds of CPU time, of what has been closed.
    pub fn wasted(&self) -> u64 {
        self.wasted
    }

    /// The part of it for which the scheduler answers: a task that was given an
    /// idle CPU at once waits for the machine.
    pub fn wasted_unplaced(&self) -> u64 {
        self.wasted_unplaced
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::MASK_WORDS;
    use super::*;

    fn mask(cpus: &[usize]) -> Mask {
        let mut mask = [0; MASK_WORDS];
        for cpu in cpus {
            mask[cpu / 64] |= 1 << (cpu % 64);
        }
        mask
    }

    fn span(start: u64, end: u64) -> Interval {
        Interval { start, end }
    }

    fn late(start: u64, end: u64, cpus: &[usize]) -> LateWait {
        LateWait {
            time: span(start, end),
            allowed: mask(cpus),
            placed: false,
        }
    }

    #[test]
    fn only_idle_time_that_a_late_task_could_use_is_wasted() {
        let mut c = Conservation::new(2);
        c.add_idle(0, span(0, 100));
        c.add_idle(1, span(50, 80));
        c.add_late(late(70, 90, &[0, 1]));
        c.close(1000, &[], &[]);
        assert_eq!(c.wasted(), 20 + 10);
    }

    #[test]
    fn a_wait_for_the_idle_cpu_that_was_given_is_distinguished() {
        let mut c = Conservation::new(1);
        c.add_idle(0, span(0, 100));
        c.add_late(LateWait {
            placed: true,
            ..late(50, 90, &[0])
        });
        c.add_late(late(80, 95, &[0]));
        c.close(1000, &[], &[]);
        assert_eq!(c.wasted(), 45);
        assert_eq!(c.wasted_unplaced(), 15);
    }

    #[test]
    fn a_task_that_may_not_run_there_wastes_nothing() {
        let mut c = Conservation::new(2);
        c.add_idle(0, span(0, 100));
        c.add_late(late(0, 100, &[1]));
        c.close(1000, &[], &[]);
        assert_eq!(c.wasted(), 0);
    }

    #[test]
    fn tasks_that_wait_together_count_once() {
        let mut c = Conservation::new(1);
        c.add_idle(0, span(0, 100));
        for wait in [
            late(10, 30, &[0]),
            late(20, 40, &[0]),
            late(20, 25, &[0]),
            late(60, 70, &[0]),
        ] {
            c.add_late(wait);
        }
        c.close(1000, &[], &[]);
        assert_eq!(c.wasted(), 30 + 10);
    }

    #[test]
    fn windows_change_nothing() {
        let run = |cuts: &[u64]| {
            let mut c = Conservation::new(70);
            c.add_idle(65, span(5, 45));
            c.add_idle(65, span(50, 95));
            c.add_late(late(0, 20, &[65]));
            c.add_late(late(40, 60, &[65]));
            for &cut in cuts {
                c.close(cut, &[], &[]);
            }
            c.close(100, &[], &[]);
            c.wasted()
        };
        assert_eq!(run(&[]), 15 + 5 + 10);
        for cut in 1..100 {
            assert_eq!(run(&[cut, cut.max(60)]), 30, "cut at {cut}");
        }
    }

    #[test]
    fn what_is_still_open_counts_in_every_window_it_spans() {
        let mut c = Conservation::new(1);
        c.close(100, &[(0, 20)], &[late(60, u64::MAX, &[0])]);
        assert_eq!(c.wasted(), 40);
        c.close(200, &[(0, 20)], &[late(60, u64::MAX, &[0])]);
        assert_eq!(c.wasted(), 140);
        c.add_idle(0, span(20, 230));
        c.add_late(late(60, 220, &[0]));
        c.close(300, &[], &[]);
        assert_eq!(c.wasted(), 160);
    }

    #[test]
    fn what_was_open_ends_when_it_is_said_to() {
        let mut c = Conservation::new(1);
        c.close(100, &[(0, 20)], &[]);
        c.add_idle(0, span(20, 110));
        c.add_late(late(105, 200, &[0]));
        c.close(300, &[], &[]);
        assert_eq!(c.wasted(), 5);
    }

    #[test]
    fn closed_windows_keep_nothing() {
        let mut c = Conservation::new(1);
        for t in 0..1000 {
            c.add_idle(0, span(t * 10, t * 10 + 5));
            c.add_late(late(t * 10, t * 10 + 5, &[0]));
        }
        c.close(9_000, &[], &[]);
        assert_eq!(c.idle[0].len(), 100);
        assert_eq!(c.late.len(), 100);
        assert_eq!(c.wasted(), 900 * 5);
    }
}
