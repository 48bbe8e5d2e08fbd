// SPDX-License-Identifier: GPL-2.0-only
//! How a CPU gets slow as it idles: for how long it keeps its speed, and how long it then
//! takes to the floor. A thread warms its CPU, sleeps, and times a chunk of work; then again with
//! twice the sleep, until half of what there is to lose is lost.

use super::chunks::{chunk, chunks, median, stay_on, FULL};
use super::floor::{pick, CPUS, STEPS, WARM};
use crate::topology::Layout;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The first sleep; each is twice the one before.
const FIRST: Duration = Duration::from_millis(1);
/// Sleeps: the last is of a quarter of a second.
const SLEEPS: u32 = 9;
/// A CPU that has lost this share of what there is to lose has shown enough.
const ENOUGH: f64 = 0.5;
/// A loss from which on it is no noise.
const SEEN: f64 = 0.1;

/// How CPUs get slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cooling {
    /// Idle time for which a CPU keeps its speed.
    pub after_us: u64,
    /// Idle time from full speed to the floor, then.
    pub us: u64,
}

/// What was lost after a sleep, as a share of what there is to lose.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Lost {
    slept: Duration,
    share: f64,
}

/// Measured on a few CPUs at the same time; none where speeds do not change, or not in time.
pub fn measure(layout: &Layout, may: impl Fn(usize) -> bool, floor: u64) -> Option<Cooling> {
    if floor >= FULL {
        return None;
    }
    let threads: Vec<JoinHandle<Option<Cooling>>> = pick(layout, may)
        .into_iter()
        .take(CPUS)
        .map(|cpu| std::thread::spawn(move || cooling(&show(cpu, floor)?)))
        .collect();
    let shown = threads
        .into_iter()
        .filter_map(|thread| thread.join().ok().flatten());
    typical(shown.collect())
}

/// What interrupts an idle CPU keeps it warm: the one that cooled soonest but for a third.
fn typical(mut shown: Vec<Cooling>) -> Option<Cooling> {
    shown.sort_by_key(|cool| cool.after_us + cool.us);
    shown.get(shown.len() / 3).copied()
}

fn timed() -> Duration {
    let start = Instant::now();
    chunk(STEPS);
    start.elapsed()
}

fn show(cpu: usize, floor: u64) -> Option<Vec<Lost>> {
    stay_on(cpu)?;
    let mut shown = Vec::new();
    let durations = chunks(WARM, STEPS);
    let warm = median(&durations[durations.len() - durations.len().div_ceil(4)..])?;
    for i in 0..SLEEPS {
        let start = Instant::now();
        // To idle is what is to be measured: nothing is awaited here.
        std::thread::sleep(FIRST * (1 << i));
        let slept = start.elapsed();
        let share = lost(warm, timed(), floor);
        shown.push(Lost { slept, share });
        if share >= ENOUGH {
            break;
        }
        let start = Instant::now();
        while lost(warm, timed(), floor) > SEEN / 4.0 && start.elapsed() < WARM {}
    }
    Some(shown)
}

/// The share that is lost where a chunk takes so long that took `warm`.
fn lost(warm: Duration, now: Duration, floor: u64) -> f64 {
    let speed = warm.as_secs_f64() / now.as_secs_f64().max(1e-9);
    (1.0 - speed) / (1.0 - floor as f64 / FULL as f64)
}

/// Speeds fall along a line: it goes through the last two losses that can be seen.
fn cooling(shown: &[Lost]) -> Option<Cooling> {
    let (last, before) = shown.split_last()?;
    if last.share < ENOUGH {
        return None;
    }
    let end = (last.slept.as_secs_f64() * 1e6, last.share.min(1.0));
    let start = before
        .last()
        .filter(|lost| (SEEN..end.1 - SEEN).contains(&lost.share))
        .map_or((0.0, 0.0), |lost| {
            (lost.slept.as_secs_f64() * 1e6, lost.share)
        });
    let us = (end.0 - start.0) / (end.1 - start.1);
    Some(Cooling {
        after_us: (end.0 - us * end.1).max(0.0) as u64,
        us: (us as u64).max(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a CPU shows that keeps its speed for `after` us and falls in `us`.
    fn falling(after: f64, us: f64) -> Vec<Lost> {
        let mut shown: Vec<Lost> = Vec::new();
        for i in 0..SLEEPS {
            let slept = FIRST * (1 << i);
            let share = ((slept.as_secs_f64() * 1e6 - after) / us).clamp(0.0, 1.0);
            shown.push(Lost { slept, share });
            if share >= ENOUGH {
                break;
            }
        }
        shown
    }

    #[test]
    fn finds_the_line() {
        for (after, us) in [(0, 5000), (10_000, 98_000), (2000, 30_000), (0, 48_000)] {
            let found = cooling(&falling(after as f64, us as f64)).unwrap();
            assert!(found.us.abs_diff(us) <= us / 5, "{found:?}, {after} {us}");
            let all = found.after_us + found.us;
            assert!(
                all.abs_diff(after + us) <= (after + us) / 5,
                "{found:?}, {after} {us}"
            );
        }
    }

    #[test]
    fn a_cpu_that_stays_warm_says_nothing() {
        assert_eq!(cooling(&falling(0.0, 1e7)), None);
        assert_eq!(cooling(&[]), None);
        let layout = Layout::new(1, &[]).unwrap();
        assert_eq!(measure(&layout, |_| false, 400), None);
        assert_eq!(measure(&layout, |_| true, FULL), None);
    }

    #[test]
    fn disturbed_cpus_do_not_count() {
        let cool = |us| Cooling { after_us: 0, us };
        assert_eq!(typical(vec![cool(90), cool(5), cool(50)]), Some(cool(50)));
        assert_eq!(typical(vec![]), None);
    }

    #[test]
    fn lost_is_between_warm_and_floor() {
        let ms = Duration::from_millis;
        assert_eq!(lost(ms(10), ms(10), 512), 0.0);
        assert_eq!(lost(ms(10), ms(20), 512), 1.0);
    }
}
