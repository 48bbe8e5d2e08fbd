// SPDX-License-Identifier: GPL-2.0-only
//! A CPU's life: running, idle, off, and whose turn it is.

use crate::{config, model, sys, Model, ONE};
use proptest::prelude::*;

#[test]
fn only_the_state_that_is_left_allows_a_change() {
    let mut m = Model::new(&config(1, 400));
    assert!(!model!(model_sleep(m, 0)));
    assert!(!model!(model_wake(m, 0, 5)));
    assert!(model!(model_start(m, 0, 5)));
    assert!(!model!(model_start(m, 0, 6)));
    assert!(!model!(model_wake(m, 0, 6)));
    assert!(model!(model_sleep(m, 0)));
    assert!(!model!(model_sleep(m, 0)));
    assert!(model!(model_wake(m, 0, 7)));
    assert_eq!(m.cpu(0).state, sys::MODEL_RUNNING);
    assert_eq!((m.cpu(0).t, m.cpu(0).idle_ns, m.cpu(0).busy_ns), (7, 2, 0));
}

#[test]
fn a_cpu_that_is_off_costs_nothing() {
    let mut m = Model::new(&config(2, 400));
    model!(model_start(m, 0, 0));
    model!(model_tick(m, 1_000_000_000));
    assert_eq!(m.cpu(1).energy_uj, 0);
    model!(model_start(m, 1, 1_000_000_000));
    assert_eq!((m.cpu(1).idle_ns, m.cpu(1).busy_ns), (0, 0));
}

proptest! {
    #[test]
    fn a_wake_up_is_never_before_the_sleep(sleep in 0u64..1_000_000, wake in 0u64..2_000_000) {
        let mut m = Model::new(&config(1, 400));
        model!(model_start(m, 0, 0));
        let insns = model!(model_budget(m, 0, sleep));
        model!(model_charge(m, 0, insns * u64::from(ONE)));
        let since = m.cpu(0).t;
        model!(model_sleep(m, 0));
        model!(model_wake(m, 0, wake));
        prop_assert_eq!(m.cpu(0).t, wake.max(since));
        prop_assert_eq!(m.cpu(0).idle_ns, wake.saturating_sub(since));
    }

    #[test]
    fn the_earliest_running_cpu_is_next(work in prop::collection::vec(0u64..1000, 1..16)) {
        let mut m = Model::new(&config(16, 400));
        prop_assert_eq!(model!(model_next(m)), -1);
        for (cpu, &parts) in work.iter().enumerate() {
            model!(model_start(m, cpu as u32, 0));
            model!(model_charge(m, cpu as u32, parts * 4096));
        }
        let times: Vec<u64> = (0..work.len()).map(|i| m.cpu(i as u32).t).collect();
        let first = times.iter().enumerate().min_by_key(|&(i, t)| (t, i)).map(|(i, _)| i as i32);
        prop_assert_eq!(Some(model!(model_next(m))), first);
    }

    #[test]
    fn ten_hours_of_idleness_are_no_different(hours in 1u64..100) {
        let mut m = Model::new(&config(2, 400));
        model!(model_start(m, 0, 0));
        m.run(&[0], 0, 40_000_000);
        model!(model_sleep(m, 0));
        let since = m.cpu(0).idle_since;
        let until = since + hours * 3_600_000_000_000;
        model!(model_idle_until(m, since, until));
        prop_assert_eq!(m.cpu(0).idle_ns, until - since);
        prop_assert_eq!(m.speed(0), 400);
        let busy_pj: u64 = m.cpu(0).residency_ns.iter().zip(&m.0.config.cpu[0].opp)
            .map(|(&ns, o)| ns * u64::from(o.power_mw)).sum();
        let idle_uj = hours * 3_600_000_000 * 300 / 1000;
        prop_assert_eq!(m.cpu(0).energy_uj, idle_uj + busy_pj / 1_000_000);
    }
}
