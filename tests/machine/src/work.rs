// SPDX-License-Identifier: GPL-2.0-only
//! What work takes and costs: time, migrations, residency and energy.

use crate::{config, model, sys, Model, ONE, QUANTUM};
use proptest::prelude::*;

fn fixed(mips: u32, capacity: u32, speed: u32) -> Box<sys::model_config> {
    let mut config = config(4, speed);
    config.mips = mips;
    for cpu in &mut config.cpu[..4] {
        cpu.capacity = capacity;
        cpu.nr_opps = 1;
        cpu.opp[0].speed = speed;
    }
    config
}

/// Time on a CPU's clock, in nanoseconds.
fn clock(m: &Model, cpu: u32) -> f64 {
    m.cpu(cpu).t as f64 + f64::from(m.cpu(cpu).t_frac) / 4_294_967_296.0
}

proptest! {
    #[test]
    fn capacity_and_speed_scale_time(
        mips in 1100u32..10_000, capacity in 32..=ONE, speed in 32..=ONE, insns in 1u64..100_000_000
    ) {
        let mut m = Model::new(&fixed(mips, capacity, speed));
        model!(model_start(m, 0, 0));
        model!(model_charge(m, 0, insns * u64::from(ONE)));
        let share = f64::from(capacity) * f64::from(speed) / f64::from(ONE).powi(2);
        let expected = insns as f64 * 1e3 / f64::from(mips) / share;
        prop_assert!((clock(&m, 0) - expected).abs() <= 1e-8 * expected + 1e-6);
        prop_assert_eq!(m.cpu(0).insns, insns);
    }

    #[test]
    fn a_budget_reaches_the_moment_and_no_more(
        mips in 32u32..10_000, capacity in 32..=ONE, done in 0u64..100_000, until in 1u64..1_000_000
    ) {
        let mut m = Model::new(&fixed(mips, capacity, ONE));
        model!(model_start(m, 0, 0));
        model!(model_charge(m, 0, done));
        let budget = model!(model_budget(m, 0, until));
        prop_assert!(budget >= 1);
        let late = m.cpu(0).t >= until;
        model!(model_charge(m, 0, (budget - 1) * u64::from(ONE)));
        prop_assert!(late || m.cpu(0).t < until);
        model!(model_charge(m, 0, u64::from(ONE)));
        prop_assert!(m.cpu(0).t >= until);
    }

    #[test]
    fn parts_of_an_instruction_add_up(parts in prop::collection::vec(0u64..5000, 0..200)) {
        let mut m = Model::new(&fixed(3000, ONE, ONE));
        model!(model_start(m, 0, 0));
        for &p in &parts {
            model!(model_charge(m, 0, p));
        }
        let sum: u64 = parts.iter().sum();
        let cpu = m.cpu(0);
        prop_assert_eq!(cpu.insns * u64::from(ONE) + cpu.insns_part, sum);
    }

    #[test]
    fn energy_is_power_by_time_and_times_add_up(
        turns in prop::collection::vec((1u64..5_000_000, 0u64..20_000_000), 1..20)
    ) {
        let mut m = Model::new(&config(1, 400));
        model!(model_start(m, 0, 0));
        let mut now = 0;
        for (busy, idle) in turns {
            m.run(&[0], now, now + busy);
            model!(model_sleep(m, 0));
            let since = m.cpu(0).idle_since;
            now = since + idle;
            model!(model_idle_until(m, since, now));
            model!(model_wake(m, 0, now));
        }
        let cpu = *m.cpu(0);
        let opps = &m.0.config.cpu[0].opp;
        let active: u128 = cpu.residency_ns.iter().zip(opps)
            .map(|(&ns, o)| u128::from(ns) * u128::from(o.power_mw)).sum();
        let expected = active + u128::from(cpu.idle_ns) * 300;
        let pj = u128::from(cpu.energy_uj) * 1_000_000 + u128::from(cpu.energy_pj);
        prop_assert_eq!(pj, expected);
        prop_assert_eq!(cpu.residency_ns.iter().sum::<u64>(), cpu.busy_ns);
        prop_assert_eq!(cpu.busy_ns + cpu.idle_ns, now);
    }

    #[test]
    fn a_move_costs_its_first_instructions_by_distance(
        insns in 1u32..1_000_000, speed in 1..ONE, to in 0u32..4, work in 1u64..2_000_000
    ) {
        let mut config = fixed(3000, ONE, ONE);
        // CPUs 0 and 1 share a core, 2 the cache with them; 3 is far.
        for (i, (core, llc)) in [(0, 0), (0, 0), (1, 0), (2, 1)].into_iter().enumerate() {
            config.cpu[i].core = core;
            config.cpu[i].llc = llc;
        }
        for (k, way) in config.move_.iter_mut().enumerate() {
            way.insns = insns * (k as u32 + 1);
            way.speed = speed;
        }
        let mut m = Model::new(&config);
        model!(model_start(m, 0, 0));
        if to > 0 {
            model!(model_start(m, to, 0));
        }
        model!(model_switch(m, 0, 77));
        model!(model_switch(m, to, 77));
        model!(model_charge(m, to, work * u64::from(ONE)));
        let slow = (u64::from(insns) * u64::from(to)).min(work) as f64;
        let expected = (slow * f64::from(ONE) / f64::from(speed) + (work as f64 - slow)) / 3.0;
        prop_assert!((clock(&m, to) - expected).abs() <= 1e-8 * expected + 1e-3);
        prop_assert_eq!(m.cpu(to).migrations, u64::from(to > 0));
    }
}

/// Task 5 has moved to CPU 1, where its first 500 instructions are slow.
fn just_moved() -> Model {
    let mut config = fixed(1000, ONE, ONE);
    config.move_[sys::MODEL_SAME_LLC as usize] = sys::model_move {
        insns: 500,
        speed: 512,
    };
    let mut m = Model::new(&config);
    model!(model_start(m, 0, 0));
    model!(model_start(m, 1, 0));
    model!(model_switch(m, 0, 5));
    model!(model_switch(m, 1, 5));
    m
}

#[test]
fn a_budget_ends_where_the_caches_are_warm() {
    let mut m = just_moved();
    assert_eq!(model!(model_budget(m, 1, QUANTUM)), 500);
    model!(model_charge(m, 1, 500 * u64::from(ONE)));
    assert_eq!(m.cpu(1).t, 1000);
    assert_eq!(model!(model_budget(m, 1, QUANTUM)), 19_000);
}

#[test]
fn another_task_does_not_inherit_cold_caches() {
    let mut m = just_moved();
    model!(model_switch(m, 1, 6));
    assert_eq!(model!(model_budget(m, 1, QUANTUM)), 20_000);
    // Nor does a task without a name, which is never counted as moved.
    model!(model_switch(m, 0, 0));
    model!(model_switch(m, 1, 0));
    assert_eq!(m.cpu(1).migrations, 1);
}

#[test]
fn forgotten_tasks_are_counted() {
    let mut m = Model::new(&fixed(1000, ONE, ONE));
    model!(model_start(m, 0, 0));
    let room = u64::from(sys::MODEL_TASK_SETS * sys::MODEL_TASK_WAYS);
    for key in 1..=2 * room {
        model!(model_switch(m, 0, key));
    }
    assert!(m.0.tasks_forgotten >= room);
    assert!(m.0.tasks_forgotten <= 2 * room);
}
