// SPDX-License-Identifier: GPL-2.0-only
//! The migration cost of a task: after a migration the caches are cold, and the first passes
//! over its data take longer. A thread is migrated to and fro between two CPUs at
//! each distance that the machine has, and what those passes take beyond the
//! later ones is the cost.

use super::chunks::{median, stay_on};
use crate::intf;
use crate::topology::Layout;
use std::hint::black_box;
use std::time::{Duration, Instant};

const NR_DISTANCES: usize = intf::fl_distance_FL_NR_DISTANCES as usize;

/// The second-level cache of many cores: what a task of some milliseconds can
/// have warmed, and the shared cache cannot give back for nothing.
const DATA_BYTES: usize = 256 << 10;
const LINE_BYTES: usize = 64;
const LINES: usize = DATA_BYTES / LINE_BYTES;
/// From line to line in an order that no prefetcher follows; odd, so that a power
/// of two of lines is visited whole.
const STRIDE: usize = 1237;
/// Rounds over the data in a pass: some 20 us at 3 GHz.
const ROUNDS: usize = 4;
/// Passes after a migration, some 2 ms: far less than cores take to cool (10 ms and
/// more before the E7-8870 v4 slows down, machine/e7-8870v4.toml).
const PASSES: usize = 96;
/// On a slow machine, as an emulated one, as many as fit, but not fewer than these.
const STAY: Duration = Duration::from_millis(4);
const LEAST_PASSES: usize = 8;
/// Migrations to each of the two CPUs that are timed.
const MIGRATIONS: usize = 12;
/// For as long on each CPU before that, for it to get fast: 29 ms from the lowest to the
/// highest speed on the E7-8870 v4 (Gouicem et al., USENIX ATC 2020, section 2).
const WARM: Duration = Duration::from_millis(40);
/// A pass is cold if it takes longer than usual by this factor: turbo that comes and
/// goes makes less of a difference.
const COLD: f64 = 1.25;
/// As many after the cold ones show what they would have taken: later on the CPU
/// may have another speed.
const COMPARED: usize = 8;
/// Where less than this is lost nothing was measured: the kernel's own work for a
/// migration costs as much.
const LEAST: Duration = Duration::from_micros(1);

/// Cost of a migration, ns, by `enum fl_distance`; none where the machine has no such
/// distance, or nothing could be seen.
pub type MigrationCosts = [Option<u64>; NR_DISTANCES];

/// The knobs that say the same, in the same order.
pub const COLD_KNOBS: [Option<&str>; NR_DISTANCES] = [
    None,
    Some("cold_smt_ns"),
    Some("cold_llc_ns"),
    Some("cold_node_ns"),
    Some("cold_far_ns"),
];

/// Measured between CPUs of the highest capacity that this process may use.
pub fn measure(layout: &Layout, may: impl Fn(usize) -> bool) -> MigrationCosts {
    let mut data = vec![0_u64; DATA_BYTES / size_of::<u64>()];
    std::array::from_fn(|distance| {
        let (a, b) = pair(layout, distance as u32, &may)?;
        cost(&time_migrations(a, b, &mut data)?)
    })
}

/// Two CPUs at this distance, both of the highest capacity.
fn pair(layout: &Layout, distance: u32, may: impl Fn(usize) -> bool) -> Option<(usize, usize)> {
    let capacity = |cpu: usize| layout.cpus[cpu].capacity;
    let usable = || layout.shared().filter(|cpu| may(*cpu));
    let largest = usable().map(capacity).max()?;
    let big = || usable().filter(|cpu| capacity(*cpu) == largest);
    big()
        .flat_map(|a| big().map(move |b| (a, b)))
        .find(|&(a, b)| a != b && layout.distance(a, b) == distance)
}

/// Times of the passes after each migration.
fn time_migrations(a: usize, b: usize, data: &mut [u64]) -> Option<Vec<Vec<Duration>>> {
    for cpu in [a, b] {
        stay_on(cpu)?;
        let start = Instant::now();
        while start.elapsed() < WARM {
            pass(data);
        }
    }
    (0..2 * MIGRATIONS)
        .map(|i| {
            stay_on(if i % 2 == 0 { a } else { b })?;
            Some(passes(data))
        })
        .collect()
}

fn passes(data: &mut [u64]) -> Vec<Duration> {
    let start = Instant::now();
    let mut before = start;
    let mut times = Vec::with_capacity(PASSES);
    while times.len() < PASSES && (before - start < STAY || times.len() < LEAST_PASSES) {
        pass(data);
        let now = Instant::now();
        times.push(now - before);
        before = now;
    }
    times
}

/// Reads and writes every line of the data.
fn pass(data: &mut [u64]) {
    for _ in 0..ROUNDS {
        for i in 0..LINES {
            let at = i * STRIDE % LINES * (LINE_BYTES / size_of::<u64>());
            data[at] = data[at].wrapping_add(1);
        }
    }
    black_box(data);
}

/// What the first passes after a migration take beyond those that follow, in ns; of each
/// pass the median over all migrations, since interrupts hit one or the other.
fn cost(moves: &[Vec<Duration>]) -> Option<u64> {
    let passes = moves.iter().map(Vec::len).min()?;
    let typical: Vec<Duration> = (0..passes)
        .filter_map(|i| median(&moves.iter().map(|times| times[i]).collect::<Vec<_>>()))
        .collect();
    let usual = median(typical.get(passes / 2..)?)?;
    let is_cold = |time: &&Duration| **time > usual.mul_f64(COLD);
    let (cold, rest) = typical.split_at(typical.iter().take_while(is_cold).count());
    let warm = median(&rest[..rest.len().min(COMPARED)])?;
    let lost: Duration = cold.iter().map(|time| time.saturating_sub(warm)).sum();
    (lost >= LEAST).then_some(lost.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Cpu;

    fn us(times: &[u64]) -> Vec<Duration> {
        times.iter().map(|&t| Duration::from_micros(t)).collect()
    }

    #[test]
    fn the_passes_before_it_is_warm_again_count() {
        let cold = us(&[50, 30, 20, 20, 20, 20]);
        // One migration was interrupted twice.
        let disturbed = us(&[90, 30, 20, 20, 80, 20]);
        let moves = [cold.clone(), disturbed, cold.clone()];
        assert_eq!(cost(&moves), Some(40_000));
        // What comes after is not the migration's.
        assert_eq!(cost(&[us(&[30, 20, 40, 20, 20, 20, 20, 20])]), Some(10_000));
    }

    #[test]
    fn a_change_of_speed_is_no_cost_of_a_move() {
        let mut faster = vec![22; 40];
        faster.extend([20; 56]);
        assert_eq!(cost(&[us(&faster)]), None);
        faster[0] = 44;
        assert_eq!(cost(&[us(&faster)]), Some(22_000));
    }

    #[test]
    fn nothing_seen_is_nothing_measured() {
        assert_eq!(cost(&[us(&[20; 8])]), None);
        let least = LEAST.as_micros() as u64;
        assert_eq!(cost(&[us(&[2 + least, 2, 2, 2])]), Some(1000 * least));
        let mut little = us(&[2 + least, 2, 2, 2]);
        little[0] -= Duration::from_nanos(1);
        assert_eq!(cost(&[little]), None);
        assert_eq!(cost(&[]), None);
        assert_eq!(cost(&[vec![]]), None);
        assert_eq!(cost(&[us(&[20])]), None);
    }

    #[test]
    fn pairs_are_of_the_largest_and_at_their_distance() {
        // Two nodes, in each two cores of two threads; the first core is small.
        let online: Vec<Cpu> = (0..8)
            .map(|id| Cpu {
                id,
                core: id / 2,
                llc: 0,
                node: id / 4,
                capacity: if id < 2 { 400 } else { 1000 },
            })
            .collect();
        let layout = Layout::new(8, &online).unwrap();
        let of = |distance| pair(&layout, distance, |_| true);
        assert_eq!(of(intf::fl_distance_FL_SAME_CPU), None);
        assert_eq!(of(intf::fl_distance_FL_SAME_CORE), Some((2, 3)));
        assert_eq!(of(intf::fl_distance_FL_SAME_LLC), Some((4, 6)));
        assert_eq!(of(intf::fl_distance_FL_SAME_NODE), None);
        assert_eq!(of(intf::fl_distance_FL_FAR), Some((2, 4)));
        let none = |_| false;
        assert_eq!(pair(&layout, intf::fl_distance_FL_FAR, none), None);
        let small = |cpu| cpu < 2;
        let core = intf::fl_distance_FL_SAME_CORE;
        assert_eq!(pair(&layout, core, small), Some((0, 1)));
    }

    #[test]
    fn a_pass_visits_every_line() {
        let mut data = vec![0_u64; DATA_BYTES / size_of::<u64>()];
        pass(&mut data);
        let mut lines = data.chunks(LINE_BYTES / size_of::<u64>());
        assert!(lines.all(|line| line[0] == ROUNDS as u64));
    }
}
