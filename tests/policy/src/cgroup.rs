// SPDX-License-Identifier: GPL-2.0-only
//! policy/cgroup.h: what tasks weigh along a tree of cgroups. A machine without slices, where each task
//! runs at the rate that its weight gives it, is driven by the steps of the timer of
//! bpf/cgroup.bpf.c, but for two that are for what queues do: sums that fade more slowly where
//! tasks wait for long, and no correction for own tasks that are alone in their cgroup. What
//! groups use comes to be what the tree says.

use crate::{config, policy, sys};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

const PASS_NS: u64 = 1 << 24;
const ONE: u64 = 1 << sys::CGROUP_ONE_SHIFT;

#[derive(Clone, Debug)]
struct Task {
    weight: u64,
    /// Of a CPU, 1 for a busy loop.
    wants: f64,
}

#[derive(Clone, Debug)]
struct Group {
    parent: usize,
    /// cpu.weight
    weight: u64,
    tasks: Vec<Task>,
}

/// The first is the root, and parents come before their children.
type Tree = Vec<Group>;

fn task() -> impl Strategy<Value = Task> {
    let weight = prop_oneof![4 => Just(1024u64), 1 => Just(335u64), 1 => Just(3121u64)];
    let wants = prop_oneof![4 => Just(1.0), 1 => 0.05..0.9f64];
    (weight, wants).prop_map(|(weight, wants)| Task { weight, wants })
}

fn tree() -> impl Strategy<Value = Tree> {
    let group = (
        any::<prop::sample::Index>(),
        prop_oneof![3 => Just(100u64), 2 => 20..2000u64, 1 => Just(1u64)],
        prop::collection::vec(task(), 0..6),
    );
    prop::collection::vec(group, 2..10).prop_map(|groups| {
        let mut tree = vec![Group {
            parent: 0,
            weight: 100,
            tasks: vec![],
        }];
        for (above, weight, tasks) in groups {
            let parent = above.index(tree.len());
            // No tasks beside groups: who has both is in version 1, or the root.
            let parent = if tree[parent].tasks.is_empty() {
                parent
            } else {
                0
            };
            tree.push(Group {
                parent,
                weight,
                tasks,
            });
        }
        tree
    })
}

/// Weighted max-min fairness (Bertsekas and Gallager, Data Networks, section 6.5.2): of `room`, each
/// gets what is in proportion to its weight, and at most what it wants.
fn fill(room: f64, members: &[(f64, f64)]) -> Vec<f64> {
    let mut got = vec![None; members.len()];
    loop {
        let left = room - got.iter().flatten().sum::<f64>();
        let open = || members.iter().zip(&got).filter(|(_, g)| g.is_none());
        let weight: f64 = open().map(|((w, _), _)| w).sum();
        let level = left / weight;
        let full: Vec<usize> = (0..members.len())
            .filter(|&i| got[i].is_none() && members[i].0 * level >= members[i].1)
            .collect();
        if full.is_empty() {
            return (members.iter().zip(&got))
                .map(|((w, _), g)| g.unwrap_or(w * level))
                .collect();
        }
        for i in full {
            got[i] = Some(members[i].1);
        }
    }
}

/// All that is below a group, and that group.
fn wanted(tree: &Tree, group: usize) -> f64 {
    let own: f64 = tree[group].tasks.iter().map(|t| t.wants).sum();
    let below = (1..tree.len()).filter(|&c| tree[c].parent == group && c != group);
    own + below.map(|c| wanted(tree, c)).sum::<f64>()
}

/// What each group should have, in CPUs.
fn ideal(tree: &Tree, cpus: f64) -> Vec<f64> {
    let mut has = vec![0.0; tree.len()];
    has[0] = cpus.min(wanted(tree, 0));
    for group in 0..tree.len() {
        let children: Vec<usize> = (1..tree.len())
            .filter(|&c| tree[c].parent == group)
            .collect();
        let members: Vec<(f64, f64)> = (children.iter())
            .map(|&c| (tree[c].weight as f64, wanted(tree, c)))
            .collect();
        for (c, got) in children.iter().zip(fill(has[group], &members)) {
            has[*c] = got;
        }
    }
    has
}

#[derive(Clone)]
struct Slot {
    own: sys::cgroup_member,
    all: sys::cgroup_member,
    pool: sys::cgroup_pool,
    load: u64,
    claim: u64,
    scale: u64,
}

/// Runs the tree for `passes`, then for as many again: what each group used in these, in CPUs.
fn run(tree: &Tree, cpus: f64, passes: u32) -> Vec<f64> {
    let member = sys::cgroup_member {
        used: 0,
        runnable: 0,
        right: 0,
        has: 0,
        rate: 0,
        correction: ONE,
        content: false,
    };
    let pool = sys::cgroup_pool {
        has: 0,
        rate: 0,
        lift: ONE,
        rights: 0,
        content: 0,
        open: 0,
    };
    let mut slots = vec![
        Slot {
            own: member,
            all: member,
            pool,
            load: 0,
            claim: 0,
            scale: ONE,
        };
        tree.len()
    ];
    let mut total = vec![0.0; tree.len()];
    for pass in 0..2 * passes {
        let tasks: Vec<(usize, &Task)> = (tree.iter().enumerate())
            .flat_map(|(g, group)| group.tasks.iter().map(move |t| (g, t)))
            .collect();
        let weighted: Vec<(f64, f64)> = (tasks.iter())
            .map(|&(g, t)| {
                let weight = policy!(cgroup_scaled(t.weight, slots[g].scale));
                (weight as f64, t.wants)
            })
            .collect();
        let rates = fill(cpus.min(wanted(tree, 0)), &weighted);
        let mut sums = vec![(0u64, 0u64, 0u64); tree.len()];
        let mut alls = vec![(0u64, 0u64); tree.len()];
        for (&(g, t), rate) in tasks.iter().zip(rates) {
            let used = (rate * PASS_NS as f64) as u64;
            // Who has what it wants does not wait; who has not, waits whenever it does not run.
            let runnable = if rate < t.wants - 1e-9 { PASS_NS } else { used };
            sums[g].0 += used;
            sums[g].1 += runnable;
            // Of those that sleep, the weight in the mean.
            let mean = t.weight * runnable / PASS_NS;
            sums[g].2 += policy!(cgroup_load(mean, PASS_NS));
            let mut at = g;
            loop {
                alls[at].0 += used;
                alls[at].1 += runnable;
                if pass >= passes {
                    total[at] += used as f64;
                }
                if at == 0 {
                    break;
                }
                at = tree[at].parent;
            }
        }
        step(tree, &mut slots, &sums, &alls);
    }
    total
        .into_iter()
        .map(|ns| ns / PASS_NS as f64 / f64::from(passes))
        .collect()
}

/// Does something with a group's own tasks in its pool, and with the group in that of its parent.
fn each(
    tree: &Tree,
    slots: &mut [Slot],
    g: usize,
    mut act: impl FnMut(&mut sys::cgroup_member, &mut sys::cgroup_pool),
) {
    let slot = &mut slots[g];
    act(&mut slot.own, &mut slot.pool);
    if g > 0 {
        let mut all = slot.all;
        act(&mut all, &mut slots[tree[g].parent].pool);
        slots[g].all = all;
    }
}

/// The steps of pass_fire().
fn step(tree: &Tree, slots: &mut [Slot], sums: &[(u64, u64, u64)], alls: &[(u64, u64)]) {
    for (g, slot) in slots.iter_mut().enumerate() {
        let faded = |sum, more| policy!(cgroup_faded(sum, PASS_NS, more, 0));
        slot.own.used = faded(slot.own.used, sums[g].0);
        slot.own.runnable = faded(slot.own.runnable, sums[g].1);
        slot.load = faded(slot.load, sums[g].2);
        slot.all.used = faded(slot.all.used, alls[g].0);
        slot.all.runnable = faded(slot.all.runnable, alls[g].1);
        let weight = policy!(cgroup_weight((tree[g].weight * 1024 / 100) << 10, false));
        slot.claim = policy!(cgroup_claim(slot.load));
        slot.own.right = match slot.own.runnable {
            0 => 0,
            active => policy!(cgroup_right(slot.claim, active)),
        };
        slot.all.right = weight * u64::from(sys::CGROUP_ACTIVE);
        (slot.pool.rights, slot.pool.content, slot.pool.open) = (0, 0, 0);
        if g == 0 || slot.pool.has == 0 {
            slot.pool.has = slot.all.used;
            slot.pool.rate = slot.all.used;
            slot.pool.lift = ONE;
        }
    }
    let present: Vec<usize> = (0..slots.len())
        .filter(|&g| slots[g].all.runnable >= u64::from(sys::CGROUP_GONE_NS))
        .collect();
    for &g in &present {
        each(tree, slots, g, |member, pool| {
            policy!(cgroup_join(member, pool))
        });
    }
    for &g in present.repeat(sys::CGROUP_ROUNDS as usize).iter() {
        each(tree, slots, g, |member, pool| {
            policy!(cgroup_ask(member, pool))
        });
    }
    let (mut mass, mut claims) = (0, 0);
    let mut units = vec![0; slots.len()];
    for &g in &present {
        let slot = &mut slots[g];
        policy!(cgroup_settle(&mut slot.own, &slot.pool, 0));
        units[g] = policy!(cgroup_unit(&slot.own, &slot.pool));
        mass += policy!(cgroup_mass(slot.claim, units[g]));
        claims += slot.claim;
        if g > 0 {
            let above = slots[tree[g].parent].pool;
            let slot = &mut slots[g];
            policy!(cgroup_settle(&mut slot.all, &above, 0));
            slot.pool.has = slot.all.has;
            slot.pool.rate = slot.all.rate;
            slot.pool.lift = policy!(cgroup_lift(&slot.all, &above));
        }
    }
    for &g in &present {
        let due = policy!(cgroup_scale(units[g], mass, claims));
        slots[g].scale = policy!(cgroup_steady(slots[g].scale, due));
    }
}

proptest! {
    // The same trees each time: of others, one in some thousands has a group that is due less
    // than 0.01 CPUs and gets 0.005 more, as weights have no fractions.
    #![proptest_config(Config { rng_seed: RngSeed::Fixed(0), ..config() })]

    #[test]
    fn what_groups_use_comes_to_be_what_the_tree_says(tree in tree(), cpus in 1..5u32) {
        prop_assume!(tree.iter().any(|g| !g.tasks.is_empty()));
        let cpus = f64::from(cpus);
        let (got, due) = (run(&tree, cpus, 300), ideal(&tree, cpus));
        for (g, (got, due)) in got.iter().zip(&due).enumerate() {
            // A weight has no fractions, and the least share of one is 1/1024 of nice 0.
            let off = (got - due).abs();
            prop_assert!(off <= 0.05 * due + 0.005, "group {g} has {got}, should have {due}");
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn nothing_overflows(
        used in 0..1u64 << 40, runnable in 0..1u64 << 40, load in 0..1u64 << 40,
        weight in 2..1u64 << 18, correction in ONE / 8..ONE * 8, lift in ONE / 8..ONE * 8,
        has in 0..1u64 << 40, rate in 0..1u64 << 40, ns: u64, longest: u64, own in 1..100_000u64, scale: u64
    ) {
        let slowness = policy!(cgroup_slowness(longest));
        prop_assert!(slowness <= 6);
        let claim = policy!(cgroup_claim(load));
        let mut m = sys::cgroup_member {
            used,
            runnable,
            right: policy!(cgroup_right(claim, runnable)),
            has: 0,
            rate: 0,
            correction,
            content: false,
        };
        let mut pool = sys::cgroup_pool {
            has,
            rate,
            lift,
            rights: weight << 10,
            content: 0,
            open: weight << 10,
        };
        policy!(cgroup_join(&mut m, &mut pool));
        policy!(cgroup_ask(&mut m, &mut pool));
        policy!(cgroup_settle(&mut m, &pool, slowness));
        prop_assert!((ONE / 8..=ONE * 8).contains(&m.correction));
        prop_assert!((ONE / 8..=ONE * 8).contains(&policy!(cgroup_lift(&m, &pool))));
        let unit = policy!(cgroup_unit(&m, &pool));
        let mass = policy!(cgroup_mass(claim, unit));
        prop_assert!(policy!(cgroup_scale(unit, mass, claim)) >= 1);
        let sum = policy!(cgroup_faded(used << slowness, ns, runnable, slowness));
        prop_assert!(sum <= 1 << 46);
        prop_assert!(policy!(cgroup_resized(used, 0, slowness)) >> slowness == used);
        prop_assert!(policy!(cgroup_scaled(own, scale)) >= 1);
    }

    #[test]
    fn the_mean_is_exact_whatever_part_of_the_time_tasks_are_active(
        weight in prop_oneof![Just(1024u64), 15..=88_761u64], permille in 100..=16_000u64, rate in 1u64 << 25..1 << 30
    ) {
        // One group with a quarter of a CPU or more, and a tenth of a task up to 16 of them.
        let claim = weight * 1024 * permille / 1000;
        let unit = (rate << sys::CGROUP_UNIT_SHIFT) / claim;
        let mass = policy!(cgroup_mass(claim, unit));
        let scale = policy!(cgroup_scale(unit, mass, claim));
        prop_assert!(scale.abs_diff(ONE) <= ONE / 16, "{} of {}", scale, ONE);
        if weight >= 1024 {
            prop_assert!(scale.abs_diff(ONE) <= ONE / 256, "{} of {}", scale, ONE);
        }
    }

    #[test]
    fn alone_a_group_changes_nothing(weight in 1..=10_000u64, tasks in prop::collection::vec(task(), 1..6)) {
        let root = Group { parent: 0, weight: 100, tasks: vec![] };
        let tree = vec![root, Group { parent: 0, weight, tasks }];
        let got = run(&tree, 1.0, 20);
        prop_assert!((got[1] - ideal(&tree, 1.0)[1]).abs() < 0.001);
    }
}

#[test]
fn weights_are_those_of_the_kernel() {
    // sched_weight_from_cgroup(100) is 1024, and task_group::shares has 10 bits more.
    assert_eq!(policy!(cgroup_weight(1 << 20, false)), 1024);
    assert_eq!(policy!(cgroup_weight(10 << 10, false)), 10);
    assert_eq!(policy!(cgroup_weight(102_400 << 10, false)), 102_400);
    assert_eq!(
        policy!(cgroup_weight(1 << 20, true)),
        u64::from(sys::WEIGHT_IDLE)
    );
    assert_eq!(policy!(cgroup_weight(u64::MAX, false)), 1 << 18);
    assert_eq!(policy!(cgroup_weight(0, false)), 2);
}
