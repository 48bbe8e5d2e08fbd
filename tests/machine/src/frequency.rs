// SPDX-License-Identifier: GPL-2.0-only
//! Frequencies against closed forms: ramp, hold, decay, turbo, operating points.

use crate::{config, model, sys, Model, ONE, QUANTUM};
use proptest::prelude::*;

/// A speed may be one step of the model's 1/1024 off what a closed form says.
fn near(model: &Model, cpu: u32, speed: u32, expected: f64) -> bool {
    (model.point(cpu, expected - 1.0)..=model.point(cpu, expected + 1.0)).contains(&speed)
}

proptest! {
    #[test]
    fn busy_time_moves_it_up_in_ramp_us(
        floor in 1..=ONE, ramp_us in 100u32..60_000, decay_us in 0u32..200_000, share in 0.0..1.2
    ) {
        let mut config = config(1, floor);
        config.ramp_us = ramp_us;
        config.decay_us = decay_us;
        let mut m = Model::new(&config);
        model!(model_start(m, 0, 0));
        prop_assert_eq!(m.speed(0), floor);
        let until = (share * f64::from(ramp_us) * 1e3) as u64;
        m.run(&[0], 0, until);
        let way = (until as f64 / (f64::from(ramp_us) * 1e3)).min(1.0);
        let expected = f64::from(floor) + f64::from(ONE - floor) * way;
        let speed = m.speed(0);
        prop_assert!(near(&m, 0, speed, expected), "{speed}, expected {expected}");
    }

    #[test]
    fn idle_time_moves_it_down_after_the_hold(
        floor in 1..ONE, hold_us in 0u32..20_000, decay_us in 100u32..200_000,
        idle_us in 0u64..300_000, in_one in any::<bool>()
    ) {
        let mut config = config(1, floor);
        config.ramp_us = 0;
        config.hold_us = hold_us;
        config.decay_us = decay_us;
        let mut m = Model::new(&config);
        model!(model_start(m, 0, 0));
        m.run(&[0], 0, QUANTUM);
        prop_assert_eq!(m.speed(0), ONE);
        model!(model_sleep(m, 0));
        let from = m.cpu(0).idle_since;
        let until = from + idle_us * 1000;
        if in_one {
            model!(model_idle_until(m, from, until));
        } else {
            let mut now = from;
            while now < until {
                now = (now + 777_777).min(until);
                model!(model_tick(m, now));
            }
        }
        let falling = idle_us.saturating_sub(u64::from(hold_us)) as f64 / f64::from(decay_us);
        let expected = f64::from(ONE) - f64::from(ONE - floor) * falling.min(1.0);
        let speed = m.speed(0);
        prop_assert!(near(&m, 0, speed, expected), "{speed}, expected {expected}");
        // A wake-up sees the frequency of that moment, too.
        model!(model_wake(m, 0, until));
        prop_assert_eq!(m.speed(0), speed);
    }

    #[test]
    fn ramp_and_decay_undo_each_other(
        ramp_us in 1u32..50_000, decay_us in 1u32..50_000, busy in 1u64..1000
    ) {
        let mut config = config(1, 400);
        config.ramp_us = ramp_us;
        config.hold_us = 0;
        config.decay_us = decay_us;
        let mut m = Model::new(&config);
        model!(model_start(m, 0, 0));
        let insns = model!(model_budget(m, 0, busy * 1000));
        model!(model_charge(m, 0, insns * u64::from(ONE)));
        model!(model_sleep(m, 0));
        let up = m.cpu(0).idle_since.min(u64::from(ramp_us) * 1000);
        let down = up * u64::from(decay_us) / u64::from(ramp_us) + 1;
        let from = m.cpu(0).idle_since;
        model!(model_idle_until(m, from, from + down - 1));
        prop_assert!(m.cpu(0).level <= m.0.fall);
        model!(model_idle_until(m, from + down - 1, from + down));
        prop_assert_eq!(m.cpu(0).level, 0);
    }

    #[test]
    fn the_turbo_table_limits_by_active_cores(
        limits in prop::collection::vec(500..=ONE, 1..6), busy in 1u32..8, siblings in any::<bool>()
    ) {
        let mut limits = limits;
        limits.sort_unstable_by(|a, b| b.cmp(a));
        let mut config = config(8, 500);
        config.ramp_us = 0;
        config.nr_turbo = limits.len() as u32;
        for (k, &speed) in limits.iter().enumerate() {
            let cores = if k + 1 == limits.len() { sys::MODEL_MAX_CPUS } else { k as u32 + 1 };
            config.turbo[k].cores = cores;
            config.turbo[k].speed = speed;
        }
        if siblings {
            for cpu in &mut config.cpu[..8] {
                cpu.core /= 2;
            }
        }
        let mut m = Model::new(&config);
        let cpus: Vec<u32> = (0..busy).collect();
        for &cpu in &cpus {
            model!(model_start(m, cpu, 0));
        }
        m.run(&cpus, 0, 5 * QUANTUM);
        let cores = if siblings { busy.div_ceil(2) } else { busy } as usize;
        let limit = limits[cores.min(limits.len()) - 1];
        let expected = m.point(0, f64::from(limit));
        for &cpu in &cpus {
            prop_assert_eq!(m.speed(cpu), expected);
        }
    }

    #[test]
    fn always_top_is_the_turbo_limit(limit in 500..=ONE, idle_ms in 0u64..1000) {
        let mut config = config(2, 400);
        config.always_top = true;
        config.turbo[0].speed = limit;
        let mut m = Model::new(&config);
        model!(model_start(m, 0, 0));
        model!(model_sleep(m, 0));
        model!(model_wake(m, 0, idle_ms * 1_000_000));
        let expected = m.point(0, f64::from(limit));
        prop_assert_eq!(m.speed(0), expected);
    }

    #[test]
    fn the_guests_choice_holds_from_the_next_tick(opp in 0u32..100) {
        let mut config = config(1, 400);
        config.guest_governs = true;
        config.guest_page = 0x7f00_0000;
        let mut m = Model::new(&config);
        model!(model_start(m, 0, 0));
        let before = m.speed(0);
        model!(model_guest_choice(m, 0, opp));
        prop_assert_eq!(m.speed(0), before);
        model!(model_tick(m, QUANTUM));
        let last = m.0.config.cpu[0].nr_opps - 1;
        prop_assert_eq!(m.speed(0), m.0.config.cpu[0].opp[opp.min(last) as usize].speed);
    }
}

#[test]
fn each_idle_period_has_a_hold_of_its_own() {
    let mut config = config(1, 400);
    config.ramp_us = 0;
    config.hold_us = 1000;
    config.decay_us = 1000;
    let mut m = Model::new(&config);
    model!(model_start(m, 0, 0));
    m.run(&[0], 0, QUANTUM);
    // Ten times 0.9 ms of idleness: none comes to the end of the hold.
    for _ in 0..10 {
        model!(model_sleep(m, 0));
        let since = m.cpu(0).idle_since;
        model!(model_wake(m, 0, since + 900_000));
        assert_eq!(m.speed(0), ONE);
    }
}
