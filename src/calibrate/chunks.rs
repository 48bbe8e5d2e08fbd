// SPDX-License-Identifier: GPL-2.0-only
//! Equal chunks of work, timed on one CPU.

use crate::intf;
use nix::sched::{sched_setaffinity, CpuSet};
use nix::unistd::Pid;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Full speed of a CPU.
pub const FULL: u64 = intf::fl_consts_FL_FULL_SPEED as u64;

/// Keeps the calling thread on one CPU.
pub fn stay_on(cpu: usize) -> Option<()> {
    let mut set = CpuSet::new();
    set.set(cpu).ok()?;
    sched_setaffinity(Pid::from_raw(0), &set).ok()
}

/// A step of Marsaglia's xorshift ("Xorshift RNGs", Journal of Statistical Software 2003): each
/// needs the one before.
#[inline(always)]
fn step(mut x: u64) -> u64 {
    x ^= x << 13;
    x ^= x >> 7;
    x ^ x << 17
}

/// Some 2 ns a step at 3 GHz; of a number that 8 divides. Eight in a row, since what a simulated
/// machine's host works for grows with the jumps, and no compiler unrolls this at opt-level "s".
pub fn chunk(steps: u32) {
    let mut x = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..steps / 8 {
        x = step(step(step(step(step(step(step(step(x))))))));
    }
    black_box(x);
}

/// The durations of chunks of work, done for this long.
pub fn chunks(until: Duration, steps: u32) -> Vec<Duration> {
    let start = Instant::now();
    let mut durations = Vec::with_capacity(4096);
    let mut before = Duration::ZERO;
    while before < until {
        chunk(steps);
        let now = start.elapsed();
        durations.push(now - before);
        before = now;
    }
    durations
}

/// Of an even number the shorter one.
pub fn median(durations: &[Duration]) -> Option<Duration> {
    let mut sorted = durations.to_vec();
    sorted.sort();
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}
