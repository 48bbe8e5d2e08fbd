// SPDX-License-Identifier: GPL-2.0-only
//! policy/cgroup.h: what tasks weigh along a tree of cgroups. Two machines are driven by the steps of the
//! timer of bpf/cgroup.bpf.c, but for one, no correction for own tasks that are alone in their cgroup:
//! one without slices, where each task runs at the rate that its weight gives it, and one with slices
//! and a queue (cgroup/slices.rs). What groups use comes to be what the tree says.

mod slices;

use crate::{config, policy, sys};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

const PASS_NS: u64 = 1 << 24;
const GONE: u64 = sys::CGROUP_GONE_NS as u64;
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

/// As struct cgroup_ctx.
#[derive(Clone)]
struct Slot {
    own: sys::cgroup_member,
    all: sys::cgroup_member,
    pool: sys::cgroup_pool,
    load: u64,
    scale: u64,
    burst: u64,
    bursts: u64,
    /// Used and runnable, of own tasks and of all below, and the time.
    fading: [u64; 5],
    active: u64,
}

/// What a group's own tasks added up since the last pass, ns.
#[derive(Clone, Copy, Default)]
struct Sums {
    used: u64,
    runnable: u64,
    load: u64,
    active: u64,
}

fn slots(tree: &Tree) -> Vec<Slot> {
    let member = sys::cgroup_member {
        used: 0,
        runnable: 0,
        ran: 0,
        wanted: 0,
        right: 0,
        has: 0,
        rate: 0,
        correction: ONE,
        content: false,
        gone: false,
    };
    let pool = sys::cgroup_pool {
        has: 0,
        rate: 0,
        lift: ONE,
        rights: 0,
        content: 0,
        open: 0,
        ran: 0,
    };
    let slot = Slot {
        own: member,
        all: member,
        pool,
        load: 0,
        scale: ONE,
        burst: 0,
        bursts: 0,
        fading: [0; 5],
        active: 0,
    };
    let mut slots = vec![slot; tree.len()];
    for g in 1..tree.len() {
        let above = slots[tree[g].parent].scale;
        // Those without tasks have no slot.
        let lives = |at: usize| {
            (0..tree.len()).any(|b| !tree[b].tasks.is_empty() && path(tree, b).any(|p| p == at))
        };
        let siblings = (1..tree.len()).filter(|&b| tree[b].parent == tree[g].parent && lives(b));
        slots[g].scale = match siblings.count() {
            1 if tree[g].parent > 0 => above,
            _ => policy!(cgroup_begin(weight(&tree[g]), above)),
        };
    }
    for slot in &mut slots {
        slot.scale = slot.scale.clamp(ONE / 128, ONE * 128);
    }
    slots
}

fn weight(group: &Group) -> u64 {
    policy!(cgroup_weight((group.weight * 1024 / 100) << 10, false))
}

/// The group and all above it.
fn path(tree: &Tree, g: usize) -> impl Iterator<Item = usize> + '_ {
    std::iter::successors(Some(g), |&g| (g > 0).then(|| tree[g].parent))
}

/// Runs the tree for `passes`, then for as many again: what each group used in these, in CPUs.
fn run(tree: &Tree, cpus: f64, passes: u32) -> Vec<f64> {
    let mut slots = slots(tree);
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
        let mut sums = vec![Sums::default(); tree.len()];
        for (&(g, t), rate) in tasks.iter().zip(rates) {
            let used = (rate * PASS_NS as f64) as u64;
            // Who has what it wants does not wait; who has not, waits whenever it does not run.
            let runnable = if rate < t.wants - 1e-9 { PASS_NS } else { used };
            sums[g].used += used;
            sums[g].runnable += runnable;
            // Of those that sleep, the weight in the mean.
            let mean = t.weight * runnable / PASS_NS;
            sums[g].load += policy!(cgroup_load(mean, PASS_NS));
            sums[g].active = PASS_NS.min(sums[g].runnable);
            if pass >= passes {
                path(tree, g).for_each(|at| total[at] += used as f64);
            }
        }
        step(tree, &mut slots, &sums, 0);
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
fn step(tree: &Tree, slots: &mut [Slot], sums: &[Sums], slice: u64) {
    let mut alls = vec![(0u64, 0u64); tree.len()];
    for (g, sum) in sums.iter().enumerate() {
        for at in path(tree, g) {
            alls[at] = (alls[at].0 + sum.used, alls[at].1 + sum.runnable);
        }
    }
    for (g, slot) in slots.iter_mut().enumerate() {
        (slot.burst, slot.bursts) = (slot.bursts, 0);
        let more = [
            sums[g].used,
            sums[g].runnable,
            alls[g].0,
            alls[g].1,
            PASS_NS,
        ];
        for (sum, more) in slot.fading.iter_mut().zip(more) {
            *sum = policy!(cgroup_faded(*sum, PASS_NS, more));
        }
        let [.., time] = slot.fading;
        let [used, runnable, all_used, all_runnable, _] =
            slot.fading.map(|sum| policy!(cgroup_mature(sum, time)));
        (slot.own.used, slot.own.runnable) = (used, runnable);
        (slot.all.used, slot.all.runnable) = (all_used, all_runnable);
        (slot.own.ran, slot.own.wanted) = (sums[g].used, sums[g].runnable);
        (slot.all.ran, slot.all.wanted) = alls[g];
        slot.load = policy!(cgroup_faded(slot.load, PASS_NS, sums[g].load));
        let weight = weight(&tree[g]);
        let claim = policy!(cgroup_claim(slot.load));
        slot.active = policy!(cgroup_faded(slot.active, PASS_NS, sums[g].active));
        slot.own.right = match slot.own.runnable {
            0 => 0,
            _ => policy!(cgroup_right(claim, slot.active)),
        };
        slot.all.right = weight * u64::from(sys::CGROUP_ACTIVE);
        (slot.pool.rights, slot.pool.content) = (0, 0);
        (slot.pool.open, slot.pool.ran) = (0, 0);
        if g == 0 {
            slot.pool.has = slot.all.used;
            slot.pool.rate = slot.all.used;
            slot.pool.lift = ONE;
        }
    }
    let present: Vec<usize> = (0..slots.len())
        .filter(|&g| slots[g].all.runnable >= GONE || slots[g].active > 0)
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
    let (mut mass, mut tasks, mut before) = (0, 0, 0);
    let mut units = vec![0; slots.len()];
    for &g in &present {
        let slot = &mut slots[g];
        let burst = policy!(cgroup_burst(&slot.own, slice));
        policy!(cgroup_settle(&mut slot.own, &slot.pool, burst));
        let known = slot.pool.rate > 0;
        units[g] = policy!(cgroup_unit(&slot.own, &slot.pool));
        path(tree, g).for_each(|at| slots[at].bursts = slots[at].bursts.max(burst));
        let slot = &mut slots[g];
        if known {
            let own = policy!(cgroup_claim(slot.own.runnable));
            mass += policy!(cgroup_mass(own, units[g]));
            tasks += own;
            before += policy!(cgroup_mass_before(own, slot.scale));
        }
        if g > 0 {
            let above = slots[tree[g].parent].pool;
            let slot = &mut slots[g];
            policy!(cgroup_settle(&mut slot.all, &above, slot.burst));
            slot.pool.has = slot.all.has;
            slot.pool.rate = slot.all.rate;
            slot.pool.lift = policy!(cgroup_lift(&slot.all, &above));
        }
    }
    let mean = policy!(cgroup_mean(mass, tasks));
    let mean = policy!(cgroup_slewed(mean, before, tasks));
    for &g in &present {
        if mean == 0 || slots[g].pool.rate == 0 || units[g] == 0 && slots[g].own.right > 0 {
            continue;
        }
        let due = match slots[g].own.right {
            0 => policy!(cgroup_newcomer(&slots[g].pool, mean)),
            _ => policy!(cgroup_scale(units[g], mean)),
        };
        slots[g].scale = policy!(cgroup_steady(slots[g].scale, due));
    }
}

/// A member that wants more than it has.
fn open(ran: u64, right: u64) -> sys::cgroup_member {
    sys::cgroup_member {
        used: 0,
        runnable: 1 << 40,
        ran,
        wanted: ran,
        right,
        has: 0,
        rate: 0,
        correction: ONE,
        content: false,
        gone: false,
    }
}

proptest! {
    // The same trees each time: of others, one in some thousands is slower to get there.
    #![proptest_config(Config { rng_seed: RngSeed::Fixed(0), max_global_rejects: 1 << 16, ..config() })]

    #[test]
    fn what_groups_use_comes_to_be_what_the_tree_says(tree in tree(), cpus in 1..5u32) {
        prop_assume!(tree.iter().any(|g| !g.tasks.is_empty()));
        let cpus = f64::from(cpus);
        let due = ideal(&tree, cpus);
        // Weights have no fractions, and so cannot say 0.001 CPUs of each task beside one with 1.
        let least = |g: usize| tree[g].tasks.len() as f64 * 0.002;
        prop_assume!((1..tree.len()).all(|g| due[g] >= least(g)));
        let got = run(&tree, cpus, 500);
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
        has in 0..1u64 << 40, rate in 0..1u64 << 40, ran in 0..1u64 << 40, pool_ran in 0..1i64 << 40, ns: u64, burst: u64, slice: u64, own in 1..100_000u64, scale: u64
    ) {
        prop_assert!(policy!(cgroup_slowness(burst, has)) <= 6);
        let claim = policy!(cgroup_claim(load));
        let mut m = sys::cgroup_member {
            used,
            runnable,
            ran,
            wanted: runnable,
            right: policy!(cgroup_right(claim, runnable)),
            has: 0,
            rate: 0,
            correction,
            content: false,
            gone: false,
        };
        let mut pool = sys::cgroup_pool {
            has,
            rate,
            lift,
            rights: weight << 10,
            content: 0,
            open: weight << 10,
            ran: pool_ran - (1 << 39),
        };
        policy!(cgroup_join(&mut m, &mut pool));
        policy!(cgroup_ask(&mut m, &mut pool));
        policy!(cgroup_settle(&mut m, &pool, burst));
        prop_assert!(policy!(cgroup_burst(&m, slice)) < 1 << 42);
        prop_assert!((ONE / 8..=ONE * 8).contains(&m.correction));
        prop_assert!((ONE / 8..=ONE * 8).contains(&policy!(cgroup_lift(&m, &pool))));
        let unit = policy!(cgroup_unit(&m, &pool));
        let mass = policy!(cgroup_mass(claim, unit));
        let mean = policy!(cgroup_mean(mass, claim));
        prop_assert!(policy!(cgroup_scale(unit, mean)) >= 1);
        let before = policy!(cgroup_mass_before(claim, scale));
        prop_assert!(before <= 1 << 54);
        let mean = policy!(cgroup_slewed(mean, before, claim));
        // Next to nothing that runs makes no scale of thousands.
        prop_assert!(mean > 0 || claim < 1 << 10 || mass < 1 << 14);
        prop_assert!(policy!(cgroup_scale(unit, mean)) >= 1);
        let newcomer = policy!(cgroup_newcomer(&pool, mean));
        let begins = policy!(cgroup_begin(weight, newcomer));
        prop_assert!((1..1 << 48).contains(&begins));
        let sum = policy!(cgroup_faded(used, ns, runnable));
        prop_assert!(sum <= 1 << 40);
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
        let mean = policy!(cgroup_mean(mass, claim));
        let scale = policy!(cgroup_scale(unit, mean));
        prop_assert!(scale.abs_diff(ONE) <= ONE / 16, "{} of {}", scale, ONE);
        if weight >= 1024 {
            // Sums leave out bits of the unit and of what it is times tasks; tasks lose less.
            let truncated = ((2 * ONE) << sys::CGROUP_MEAN_SHIFT) / unit;
            let most = truncated + ONE / 1000;
            prop_assert!(scale.abs_diff(ONE) <= most, "{} of {}, {} for rounding", scale, ONE, most);
        }
    }

    #[test]
    fn others_do_not_share_the_cpus_of_one_that_is_gone(
        used in 1u64 << 20..1 << 30, gone in 1u64 << 20..1 << 32, weights in prop::collection::vec(2..=10_000u64, 2..5)
    ) {
        let mut pool = sys::cgroup_pool { has: used + gone, rate: used + gone, lift: ONE, rights: 0, content: 0, open: 0, ran: 0 };
        let mut left = sys::cgroup_member { used: gone, wanted: 0, ..open(0, 1024 << 10) };
        let mut members: Vec<_> = weights.iter().map(|w| open(1, w << 10)).collect();
        policy!(cgroup_join(&mut left, &mut pool));
        for m in &mut members {
            policy!(cgroup_join(m, &mut pool));
        }
        policy!(cgroup_ask(&mut left, &mut pool));
        policy!(cgroup_settle(&mut left, &pool, 0));
        prop_assert_eq!((left.has, left.correction), (gone, ONE));
        for m in &mut members {
            policy!(cgroup_settle(m, &pool, 0));
        }
        let has: u64 = members.iter().map(|m| m.has).sum();
        prop_assert!(has <= used && used - has <= used >> 10, "{has} of {used}");
    }

    #[test]
    fn a_new_group_weighs_what_it_will_beside_its_siblings(
        weights in prop::collection::vec(100..=10_000u64, 1..8), rate in 1u64 << 25..1 << 30, lift in ONE / 8..ONE * 8,
        mean in 1u64 << 32..1 << 40
    ) {
        let rights: u64 = weights.iter().map(|w| (w * 1024 / 100) << 10).sum();
        let pool = sys::cgroup_pool { has: rate, rate, lift, rights, content: 0, open: rights, ran: 0 };
        for weight in weights {
            let weight = weight * 1024 / 100;
            // The sibling's one task, of nice 0, has all of that.
            let has = policy!(cgroup_part(rate, weight << 10, rights));
            let own = sys::cgroup_member { used: has, runnable: has, ran: 0, wanted: 0, right: 1024 << 10, has, rate: has, correction: ONE, content: false, gone: false };
            let unit = policy!(cgroup_unit(&own, &pool));
            let sibling = policy!(cgroup_scale(unit, mean));
            let newcomer = policy!(cgroup_newcomer(&pool, mean));
            let newcomer = policy!(cgroup_begin(weight, newcomer));
            prop_assert!(newcomer.abs_diff(sibling) <= sibling / 64 + weight / 512 + 1, "{newcomer}, {sibling}");
        }
    }

    #[test]
    fn idle_time_before_a_pass_does_not_count(passed in 0..1u64 << 50, idle in 0..1u64 << 40, ran in 0..1u64 << 30) {
        let period = 1u64 << sys::CGROUP_PERIOD_SHIFT;
        let (since, now) = (passed + idle, passed + idle + ran);
        let span = policy!(cgroup_span(passed, since, now));
        // A CPU that never stops is seen to run in the period after the pass at the latest.
        if idle < period {
            prop_assert_eq!(span, now - passed);
        }
        if idle >= 2 * period {
            prop_assert_eq!(span, ran);
        }
        prop_assert!(span >= ran && span <= ran + 2 * period);
    }

    #[test]
    fn what_a_pool_cannot_use_changes_nothing_between_its_members(
        used in 1u64 << 20..1 << 30, permille in 100..=4000u64, rights in prop::collection::vec(1024..=1u64 << 16, 2..6),
        bursts in prop::collection::vec(0..1u64 << 30, 6)
    ) {
        // Bound to CPUs with others, all ran more or less than they have, each by the same part.
        let whole: u64 = rights.iter().sum();
        let has = used * 1000 / permille;
        let pool = sys::cgroup_pool { has, rate: has, lift: ONE, rights: whole, content: 0, open: whole, ran: used as i64 };
        for (&right, burst) in rights.iter().zip(bursts) {
            let mut m = open(policy!(cgroup_part(used, right, whole)), right);
            for _ in 0..1000 {
                policy!(cgroup_settle(&mut m, &pool, burst));
            }
            prop_assert_eq!(m.correction, ONE);
            prop_assert_eq!(m.has, policy!(cgroup_part(has, right, whole)));
        }
    }

    #[test]
    fn bursts_that_come_seldom_change_no_correction_in_the_mean(share in 0.02..0.5f64, passes in 1..64u64) {
        // It runs once in so many passes, and has its part.
        let rights = 1u64 << 20;
        let right = (rights as f64 * share) as u64;
        let pool = sys::cgroup_pool {
            has: 1 << 27, rate: 1 << 27, lift: ONE, rights, content: 0, open: rights, ran: PASS_NS as i64
        };
        let burst = policy!(cgroup_part(passes * PASS_NS, right, rights));
        let mut m = open(0, right);
        for pass in 1..=8 * passes {
            m.ran = if pass % passes == 0 { burst } else { 0 };
            policy!(cgroup_settle(&mut m, &pool, burst));
            prop_assert!(m.correction.abs_diff(ONE) <= ONE / 16, "{}", m.correction);
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
