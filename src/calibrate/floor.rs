// SPDX-License-Identifier: GPL-2.0-only
//! How slow a CPU is here after it has been idle: the floor of the recency
//! model, measured at start where no better source of CPU speeds exists.
//!
//! CPUs are left idle for as long as cores take to cool; then threads on a few of
//! them at a time do equal chunks of work and time them. What disturbs this goes
//! both ways: an interrupt keeps an idle CPU warm, and whatever else runs makes
//! chunks longer.

use super::chunks::{chunks, median, stay_on, FULL};
use crate::topology::Layout;
use std::thread::JoinHandle;
use std::time::Duration;

/// From here up the difference is noise: speeds do not change.
const STEADY: u64 = FULL * 92 / 100;
/// CPUs that are measured at the same time.
pub const CPUS: usize = 3;
/// Rounds, on other CPUs each time where there are enough.
const ROUNDS: usize = 3;
/// A guess: most cores reach their lowest frequency within it.
const COOL: Duration = Duration::from_millis(100);
/// More than the 29 ms from the lowest to the highest speed that were published
/// for the E7-8870 v4 (Gouicem et al., USENIX ATC 2020, section 2).
pub const WARM: Duration = Duration::from_millis(40);
/// What counts as just after idling, in time and at least in chunks.
const EARLY: Duration = Duration::from_millis(1);
const EARLY_CHUNKS: usize = 3;
/// Work of a chunk: some 130 us at 3 GHz, long against what clocks of CPUs differ.
pub const STEPS: u32 = 65_536;

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
    let threads: Vec<JoinHandle<Option<Shown>>> = plan(&pick(layout, may))
        .into_iter()
        .map(|turn| std::thread::spawn(move || show(&turn)))
        .collect();
    let shown = threads
        .into_iter()
        .filter_map(|thread| thread.join().ok().flatten());
    ramp(shown.collect())
}

/// CPUs of the highest capacity, one of each core, spread over the machine.
pub fn pick(layout: &Layout, may: impl Fn(usize) -> bool) -> Vec<usize> {
    let cpus = |cpu: &usize| &layout.cpus[*cpu];
    let largest = layout.shared().map(|cpu| cpus(&cpu).capacity).max();
    let mut picked: Vec<usize> = layout
        .shared()
        .filter(|cpu| may(*cpu) && Some(cpus(cpu).capacity) == largest)
        .collect();
    picked.sort_by_key(|cpu| (cpus(cpu).core, *cpu));
    picked.dedup_by_key(|cpu| cpus(cpu).core);
    let apart = (picked.len() / (CPUS * ROUNDS)).max(1);
    picked
        .into_iter()
        .step_by(apart)
        .take(CPUS * ROUNDS)
        .collect()
}

/// A CPU and how long after the start its turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn {
    cpu: usize,
    after: Duration,
}

/// A CPU that has its turn again cools before it; one that has not had any yet does
/// so meanwhile.
fn plan(cpus: &[usize]) -> Vec<Turn> {
    let each = cpus.len().min(CPUS);
    let again = cpus.len() < CPUS * ROUNDS;
    let apart = if again { WARM + COOL } else { WARM };
    (0..each * ROUNDS)
        .map(|i| Turn {
            cpu: cpus[i % cpus.len()],
            after: COOL + apart * (i / each) as u32,
        })
        .collect()
}

fn show(turn: &Turn) -> Option<Shown> {
    stay_on(turn.cpu)?;
    // To idle is what is to be measured: nothing is awaited here.
    std::thread::sleep(turn.after);
    shown(&chunks(WARM, STEPS))
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

/// What the CPU showed that began slower than two thirds of them: the slowest few
/// may have been disturbed at work, and many more while they were to be idle.
fn ramp(mut shown: Vec<Shown>) -> Option<Ramp> {
    shown.retain(|s| !s.early.is_zero());
    shown.sort_by_key(floor);
    let typical = shown.get(shown.len() / 3)?;
    Some(Ramp {
        floor: floor(typical),
        // Speeds rise along a line.
        us: (2 * typical.half_way.as_micros() as u64).max(1),
    })
}

/// The speed just after idling, in 1..=1024 of the speed when warm.
fn floor(shown: &Shown) -> u64 {
    match FULL * shown.warm.as_nanos() as u64 / shown.early.as_nanos() as u64 {
        steady if steady >= STEADY => FULL,
        floor => floor.max(1),
    }
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
        let want = Ramp {
            floor: 429,
            us: 4740,
        };
        assert_eq!(ramp(vec![shown(&durations).unwrap()]), Some(want));
        assert_eq!(shown(&us(&[1, 1])), None);
        assert_eq!(shown(&us(&[1, 1, 1])), None);
    }

    fn floor_of(shown: &[(u64, u64)]) -> Option<u64> {
        let shown = shown.iter().map(|&(early, warm)| of(early, warm));
        ramp(shown.collect()).map(|ramp| ramp.floor)
    }

    #[test]
    fn disturbed_cpus_do_not_count() {
        assert_eq!(floor_of(&[(250, 100)]), Some(409));
        // Three of nine had other work to do, and three were never idle.
        let mut nine = vec![(900, 100); 3];
        nine.extend([(240, 100); 3]);
        nine.extend([(100, 100); 3]);
        assert_eq!(floor_of(&nine), Some(426));
        assert_eq!(floor_of(&[(100, 100), (900, 100), (250, 100)]), Some(409));
        assert_eq!(floor_of(&[]), None);
        assert_eq!(floor_of(&[(0, 100)]), None);
    }

    #[test]
    fn small_differences_mean_that_speeds_do_not_change() {
        assert_eq!(floor_of(&[(108, 100)]), Some(1024));
        assert_eq!(floor_of(&[(112, 100)]), Some(914));
        assert_eq!(floor_of(&[(100, 130)]), Some(1024));
    }

    #[test]
    fn a_cpu_has_cooled_when_its_turn_comes() {
        for n in 1..=CPUS * ROUNDS {
            let cpus: Vec<usize> = (10..10 + n).collect();
            let turns = plan(&cpus);
            assert!(cpus.iter().all(|cpu| turns.iter().any(|t| t.cpu == *cpu)));
            for (i, turn) in turns.iter().enumerate() {
                let before = turns[..i].iter().rfind(|t| t.cpu == turn.cpu);
                let idle_since = before.map_or(Duration::ZERO, |t| t.after + WARM);
                assert!(turn.after >= idle_since + COOL, "{n} CPUs: {turns:?}");
            }
        }
        assert!(plan(&[]).is_empty());
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
        assert_eq!(pick(&layout, |_| true), [3, 4, 5, 6, 7, 8, 9, 10, 11]);
        assert_eq!(pick(&layout, |cpu| cpu == 16), [16]);
        assert!(pick(&layout, |cpu| cpu == 1).is_empty());
    }
}
