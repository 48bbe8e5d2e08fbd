// SPDX-License-Identifier: GPL-2.0-only
//! A tree of cgroups full of busy loops, on CPUs with slices and one queue.

use super::{ideal, path, slots, step, tree, Sums, Task, Tree, PASS_NS};
use crate::{config, policy};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

const SLICE_NS: u64 = 4_000_000;

struct Loop {
    group: usize,
    vtime: u64,
    deadline: u64,
    runs: bool,
}

/// Busy loops on CPUs with one queue, by slices of 4 ms: what groups used from 0.2 s on, in CPUs.
fn run_slices(tree: &Tree, cpus: usize, seconds: u64) -> Vec<f64> {
    let mut slots = slots(tree);
    let mut loops = Vec::new();
    for (group, g) in tree.iter().enumerate() {
        for _ in &g.tasks {
            let weight = policy!(cgroup_scaled(1024, slots[group].scale));
            let deadline = policy!(vtime_charge(SLICE_NS, weight));
            loops.push(Loop {
                group,
                vtime: 0,
                deadline,
                runs: false,
            });
        }
    }
    let (from, to) = (200_000_000, 200_000_000 + seconds * 1_000_000_000);
    let mut total = vec![0.0; tree.len()];
    let mut sums = vec![Sums::default(); tree.len()];
    // When each CPU is free, and what runs there.
    let mut free: Vec<(u64, Option<usize>)> = (0..cpus as u64)
        .map(|cpu| (cpu * 1_000_000, None))
        .collect();
    let mut next_pass = PASS_NS;
    loop {
        let cpu = (0..cpus).min_by_key(|&c| free[c].0).unwrap();
        let (now, ran) = free[cpu];
        while next_pass <= now {
            for (g, group) in tree.iter().enumerate() {
                let weight = 1024 * group.tasks.len() as u64;
                sums[g].load = policy!(cgroup_load(weight, PASS_NS));
                sums[g].active = if weight > 0 { PASS_NS } else { 0 };
                sums[g].runnable = group.tasks.len() as u64 * PASS_NS;
            }
            step(tree, &mut slots, &sums, SLICE_NS);
            sums.fill(Sums::default());
            next_pass += PASS_NS;
        }
        if now >= to {
            break;
        }
        if let Some(i) = ran {
            let l = &mut loops[i];
            let weight = policy!(cgroup_scaled(1024, slots[l.group].scale));
            l.vtime += policy!(vtime_charge(SLICE_NS, weight));
            l.deadline = l.vtime + policy!(vtime_charge(SLICE_NS, weight));
            l.runs = false;
            let sum = &mut sums[l.group];
            sum.used += SLICE_NS;
            if now > from {
                path(tree, l.group).for_each(|at| total[at] += SLICE_NS.min(now - from) as f64);
            }
        }
        let next = (0..loops.len())
            .filter(|&i| !loops[i].runs)
            .min_by_key(|&i| loops[i].deadline);
        free[cpu] = match next {
            None => (now + SLICE_NS, None),
            Some(i) => {
                let l = &mut loops[i];
                l.runs = true;
                (now + SLICE_NS, Some(i))
            }
        };
    }
    total
        .into_iter()
        .map(|ns| ns / (to - from) as f64)
        .collect()
}

proptest! {
    #![proptest_config(Config { rng_seed: RngSeed::Fixed(0), ..config() })]

    /// From 0.2 s on, so with what is wrong at first.
    #[test]
    fn with_slices_groups_get_their_share_from_the_start(tree in tree(), cpus in 1..3usize) {
        let mut tree = tree;
        let loops = Task { weight: 1024, wants: 1.0 };
        for group in &mut tree {
            group.tasks.fill(loops.clone());
        }
        prop_assume!(tree.iter().map(|g| g.tasks.len()).sum::<usize>() > cpus);
        let (got, due) = (run_slices(&tree, cpus, 5), ideal(&tree, cpus as f64));
        for (g, (got, due)) in got.iter().zip(&due).enumerate() {
            let off = (got - due).abs();
            // Each of its loops may have one turn more or less, at both ends.
            let below = (0..tree.len()).filter(|&b| path(&tree, b).any(|at| at == g));
            let loops: usize = below.map(|b| tree[b].tasks.len()).sum();
            let turns = (2 * loops + 1) as u64 * SLICE_NS;
            // Two passes know of nothing, and the mean of scales, by which turns count, comes to be 1
            // in some more.
            let may = (turns + 6 * cpus as u64 * PASS_NS) as f64 / 5e9;
            prop_assert!(off <= 0.05 * due + may, "group {g} has {got}, should have {due}");
        }
    }
}
