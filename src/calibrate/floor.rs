// SPDX-License-Identifier: GPL-2.0-only
//! How slow a CPU is here after it has been idle: the floor of the recency
//! model, measured at start where no better source of CPU speeds exists.
//!
//! A thread on each of a few CPUs lets its CPU idle for as long as cores take
//! to cool, then does equal chunks of work and times them.

use super::{chunks, stay_on, FULL};
use crate::topology::Layout;
use std::thread::JoinHandle;
use std::time::Duration;

/// From here up the difference is noise: speeds do not change.
const STEADY: u64 = FULL * 92 / 100;
/// CPUs that are measured at the same time.
const CPUS: usize = 3;
/// Times that each of them cools and warms.
const ROUNDS: usize = 2;
/// A guess: most cores reach their lowest frequency within it.
const COOL: Duration = Duration::from_millis(100);
/// More than the 29 ms from the lowest to the highest speed that were published
/// for the E7-8870 v4 (Gouicem et al., USENIX ATC 2020, section 2).
const WARM: Duration = Duration::from_millis(40);
/// What counts as just after idling, in time and at least in chunks.
const EARLY: Duration = Duration::from_millis(1);
const EARLY_CHUNKS: usize = 3;
/// Work of a chunk: some 130 us at 3 GHz, long against what clocks of CPUs differ.
const STEPS: u32 = 65_536;

/// What one CPU showed: a chunk just after idling, and when warm, and when it
/// had come half of the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shown {
    early: Duration,
    warm: Duration,
    half_way: Duration,
}

/// How CPUs get fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// Speed after idling, 1..=1024 of the speed when warm.
    pub floor: u64,
    /// Busy time from there to the full speed.
    pub us: u64,
}

/// Measured on a few of the largest CPUs; none if nothing could be.
pub fn measure(layout: &Layout, may: impl Fn(usize) -> bool) -> Option<Ramp> {
    let threads: Vec<JoinHandle<Option<Shown>>> = pick(layout, may)
        .into_iter()
        .map(|cpu| std::thread::spawn(move || show(cpu)))
        .collect();
    let shown: Vec<Shown> = threads
        .into_iter()
        .filter_map(|thread| thread.join().ok().flatten())
        .collect();
    Some(Ramp {
        floor: floor(&shown)?,
        us: ramp_us(&shown)?,
    })
}

/// CPUs of the highest capacity, on cores of their own, spread over the machine.
fn pick(layout: &Layout, may: impl Fn(usize) -> bool) -> Vec<usize> {
    let cpus = |cpu: &usize| &layout.cpus[*cpu];
    let largest = layout.present().map(|cpu| cpus(&cpu).capacity).max();
    let mut picked: Vec<usize> = layout
        .present()
        .filter(|cpu| may(*cpu) && Some(cpus(cpu).capacity) == largest)
        .collect();
    picked.sort_by_key(|cpu| (cpus(cpu).core, *cpu));
    picked.dedup_by_key(|cpu| cpus(cpu).core);
    let apart = picked.len().div_ceil(CPUS).max(1);
    picked.into_iter().step_by(apart).collect()
}

fn show(cpu: usize) -> Option<Shown> {
    stay_on(cpu)?;
    (0..ROUNDS)
        .filter_map(|_| {
            // To idle is what is to be measured: nothing is awaited here.
            std::thread::sleep(COOL);
            shown(&chunks(WARM, STEPS))
        })
        .reduce(|a, b| Shown {
            early: a.early.min(b.early),
            warm: a.warm.min(b.warm),
            half_way: a.half_way.min(b.half_way),
        })
}

/// The medians of the early chunks and of the last quarter.
fn shown(durations: &[Duration]) -> Option<Shown> {
    let mut sum = Duration::ZERO;
    let in_time = durations
        .iter()
        .take_while(|d| {
            sum += **d;
            sum <= EARLY
        })
        .count();
    let (early, rest) = durations.split_at_checked(in_time.max(EARLY_CHUNKS))?;
    let warm = &rest[rest.len() - rest.len().div_ceil(4)..];
    let (early, warm) = (median(early)?, median(warm)?);
    Some(Shown {
        early,
        warm,
        half_way: half_way(durations, early, warm),
    })
}

/// The time until a chunk was as short as half way between the two speeds.
fn half_way(durations: &[Duration], early: Duration, warm: Duration) -> Duration {
    let (early, warm) = (early.as_secs_f64(), warm.as_secs_f64());
    let half = 2.0 * early * warm / (early + warm).max(1e-9);
    durations
        .iter()
        .take_while(|duration| duration.as_secs_f64() > half)
        .sum()
}

/// The median over CPUs; speeds rise along a line.
fn ramp_us(shown: &[Shown]) -> Option<u64> {
    let mut half: Vec<Duration> = shown.iter().map(|s| s.half_way).collect();
    half.sort();
    Some((2 * half.get(half.len() / 2)?.as_micros() as u64).max(1))
}

/// Of an even number the shorter one.
fn median(durations: &[Duration]) -> Option<Duration> {
    let mut sorted = durations.to_vec();
    sorted.sort();
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

/// The median over CPUs of the speed just after idling, in 1..=1024 of the
/// speed when warm.
fn floor(shown: &[Shown]) -> Option<u64> {
    let mut floors: Vec<u64> = shown
        .iter()
        .filter(|s| !s.early.is_zero())
        .map(|s| FULL * s.warm.as_nanos() as u64 / s.early.as_nanos() as u64)
        .collect();
    floors.sort();
    let median = *floors.get(floors.len() / 2)?;
    Some(if median >= STEADY {
        FULL
    } else {
        median.max(1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Cpu;

    fn us(values: &[u64]) -> Vec<Duration> {
        values.iter().map(|&v| Duration::from_micros(v)).collect()
    }

    fn of(early: u64, warm: u64) -> Shown {
        Shown {
            early: Duration::from_micros(early),
            warm: Duration::from_micros(warm),
            half_way: Duration::ZERO,
        }
    }

    #[test]
    fn early_chunks_against_warm_ones() {
        // 310 + 300 + 320 us are within the first millisecond, and three at least count.
        let durations = us(&[310, 300, 320, 990, 250, 200, 180, 150, 150, 130, 125, 900]);
        // Half way is 183 us: up to the chunk of 180.
        let half_way = Duration::from_micros(310 + 300 + 320 + 990 + 250 + 200);
        let want = Shown {
            half_way,
            ..of(310, 130)
        };
        assert_eq!(shown(&durations), Some(want));
        let slow = shown(&us(&[900, 800, 700, 600, 500])).unwrap();
        assert_eq!((slow.early, slow.warm), (us(&[800])[0], us(&[500])[0]));
        assert_eq!(ramp_us(&[want]), Some(4740));
        assert_eq!(shown(&us(&[1, 1])), None);
        assert_eq!(shown(&us(&[1, 1, 1])), None);
    }

    #[test]
    fn floor_is_the_median_over_cpus() {
        assert_eq!(floor(&[of(250, 100)]), Some(409));
        assert_eq!(
            floor(&[of(100, 100), of(250, 100), of(240, 100)]),
            Some(426)
        );
        assert_eq!(floor(&[]), None);
        assert_eq!(floor(&[of(0, 100)]), None);
    }

    #[test]
    fn small_differences_mean_that_speeds_do_not_change() {
        assert_eq!(floor(&[of(108, 100)]), Some(1024));
        assert_eq!(floor(&[of(112, 100)]), Some(914));
        assert_eq!(floor(&[of(100, 130)]), Some(1024));
    }

    #[test]
    fn picks_large_cpus_on_cores_of_their_own() {
        let online: Vec<Cpu> = (0..24)
            .map(|id| Cpu {
                id,
                core: id % 12,
                llc: 0,
                node: 0,
                capacity: if id % 12 < 3 { 500 } else { 1000 },
            })
            .collect();
        let layout = Layout::new(24, &online).unwrap();
        assert_eq!(pick(&layout, |_| true), [3, 6, 9]);
        assert_eq!(pick(&layout, |cpu| cpu == 16), [16]);
        assert!(pick(&layout, |cpu| cpu == 1).is_empty());
    }
}
