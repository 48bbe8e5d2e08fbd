// SPDX-License-Identifier: GPL-2.0-only
//! What active cores lose to each other: processors let one or two cores run
//! faster than all of them together. One core works and is timed while fewer and
//! fewer others work beside it. Whatever else runs makes chunks longer, never
//! shorter, so the rounds with the shortest count.

use super::chunks::{chunk, chunks, median, stay_on, FULL};
use crate::topology::Layout;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

/// The first core gets warm: 29 ms from the lowest to the highest speed
/// on the E7-8870 v4 (Gouicem et al., USENIX ATC 2020, section 2).
const WARM: Duration = Duration::from_millis(40);
/// How long each number of cores is timed, after as long for the change to take effect.
const STEP: Duration = Duration::from_millis(4);
/// Each from many cores to one: a core that others woke beside it slows down at once,
/// and takes a while to recover.
const ROUNDS: usize = 8;
/// Work of a chunk: some 1 ms at 3 GHz.
const STEPS: u32 = 524_288;
/// Differences below this share are noise.
const NOISE: f64 = 0.02;
/// From here up nothing is lost to other cores.
const STEADY: f64 = 0.95 * FULL as f64;
/// Numbers of active cores that are tried, as far as there are as many; what is
/// between two of them is on the line between, what is beyond as the last.
const COUNTS: [usize; 9] = [1, 2, 3, 4, 6, 8, 16, 32, 64];

/// How many cores shall work; usize::MAX: it is over.
struct Active<'a> {
    count: &'a AtomicUsize,
    beside: Vec<Thread>,
}

impl Active<'_> {
    fn set(&self, count: usize) {
        self.count.store(count, Ordering::Relaxed);
        self.beside.iter().for_each(Thread::unpark);
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.set(usize::MAX);
    }
}

/// Speed by the number of active cores less one, in 1..=1024; none if nothing
/// could be measured.
pub fn measure(layout: &Layout, may: impl Fn(usize) -> bool) -> Option<Vec<u32>> {
    let cores = pick(layout, may);
    let counts: Vec<usize> = COUNTS
        .into_iter()
        .filter(|&count| count <= cores.len())
        .collect();
    let most = *counts.last()?;
    let count = AtomicUsize::new(1);
    let times = thread::scope(|scope| {
        let spawn = |number: usize| {
            let (count, cpu) = (&count, cores[number]);
            scope
                .spawn(move || work_beside(cpu, number, count))
                .thread()
                .clone()
        };
        let active = Active {
            count: &count,
            beside: (1..most).map(spawn).collect(),
        };
        time_steps(cores[0], &counts, &active)
    })?;
    Some(table(&counts, &times))
}

/// One CPU of each core, those of the highest capacity first.
fn pick(layout: &Layout, may: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut picked: Vec<usize> = layout.shared().filter(|cpu| may(*cpu)).collect();
    picked.sort_by_key(|&cpu| {
        let topo = &layout.cpus[cpu];
        (std::cmp::Reverse(topo.capacity), topo.core, cpu)
    });
    picked.dedup_by_key(|cpu| layout.cpus[*cpu].core);
    picked
}

/// Works on `cpu` while more than `number` cores shall be active.
fn work_beside(cpu: usize, number: usize, count: &AtomicUsize) {
    let placed = stay_on(cpu).is_some();
    loop {
        match count.load(Ordering::Relaxed) {
            usize::MAX => return,
            wanted if placed && wanted > number => chunk(STEPS),
            _ => thread::park(),
        }
    }
}

/// The usual chunk on `cpu` for each number of active cores, in the least disturbed
/// round: the shortest one of all would be the one whose clock was read worst.
fn time_steps(cpu: usize, counts: &[usize], active: &Active) -> Option<Vec<Duration>> {
    stay_on(cpu)?;
    chunks(WARM, STEPS);
    let mut shortest = vec![Duration::MAX; counts.len()];
    for _ in 0..ROUNDS {
        for (count, shortest) in counts.iter().zip(&mut shortest).rev() {
            active.set(*count);
            chunks(STEP, STEPS);
            *shortest = median(&chunks(STEP, STEPS))?.min(*shortest);
        }
    }
    Some(shortest)
}

/// Speeds never rise with the number of cores; what looks so is noise.
fn table(counts: &[usize], times: &[Duration]) -> Vec<u32> {
    let mut table: Vec<u32> = Vec::new();
    let mut last = (1, FULL as f64);
    for (&count, time) in counts.iter().zip(times) {
        let speed = FULL as f64 * times[0].as_secs_f64() / time.as_secs_f64().max(1e-9);
        let speed = if speed < last.1 * (1.0 - NOISE) {
            speed.max(1.0)
        } else {
            last.1
        };
        for between in table.len() + 1..=count {
            let part = (between - last.0) as f64 / (count - last.0).max(1) as f64;
            table.push((last.1 + (speed - last.1) * part).round() as u32);
        }
        last = (count, speed);
    }
    if last.1 >= STEADY {
        table.fill(FULL as u32);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Cpu;

    fn us(values: &[u64]) -> Vec<Duration> {
        values.iter().map(|&v| Duration::from_micros(v)).collect()
    }

    #[test]
    fn lines_between_what_was_measured() {
        assert_eq!(
            table(&[1, 2, 4], &us(&[100, 100, 200])),
            [1024, 1024, 768, 512]
        );
        assert_eq!(table(&[1], &us(&[7])), [1024]);
        // Small steps add up.
        assert_eq!(
            table(&[1, 2, 3, 4], &us(&[100, 101, 103, 112])),
            [1024, 1024, 994, 914]
        );
        assert_eq!(table(&[1, 2], &us(&[100, 105])), [1024, 1024], "steady");
    }

    #[test]
    fn noise_is_not_a_difference() {
        assert_eq!(
            table(&[1, 2, 3, 4], &us(&[1000, 990, 1010, 1150])),
            [1024, 1024, 1024, 890]
        );
    }

    #[test]
    fn one_cpu_of_each_core_and_large_ones_first() {
        let online: Vec<Cpu> = (0..6)
            .map(|id| Cpu {
                id,
                core: id % 3,
                llc: 0,
                node: 0,
                capacity: if id % 3 == 0 { 500 } else { 1000 },
            })
            .collect();
        let layout = Layout::new(6, &online).unwrap();
        assert_eq!(pick(&layout, |_| true), [1, 2, 0]);
        assert_eq!(pick(&layout, |cpu| cpu > 2), [4, 5, 3]);
        assert_eq!(measure(&layout, |_| false), None);
    }
}
