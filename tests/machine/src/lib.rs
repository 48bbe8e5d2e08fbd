// SPDX-License-Identifier: GPL-2.0-only
//! The simulated machine's model, held to closed forms, and the reader of its
//! flat file and what looks into QEMU, held to their refusals.
#![cfg(test)]

mod accel;
mod config;
mod frequency;
mod life;
mod work;

/// Bindings of machine/plugin/model.h, config.h and qemu.h.
#[allow(
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    dead_code,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
mod sys {
    include!(concat!(env!("OUT_DIR"), "/model.rs"));
}

use std::ffi::CStr;

const ONE: u32 = sys::MODEL_ONE;
const QUANTUM: u64 = 20_000;

/// A machine of `n` equal CPUs, each a core of one last-level cache, with
/// operating points at every 1/32 of the way from `floor` to the top.
fn config(n: u32, floor: u32) -> Box<sys::model_config> {
    // SAFETY: the struct holds integers and booleans only: zeroes are valid.
    let mut config: Box<sys::model_config> = Box::new(unsafe { std::mem::zeroed() });
    config.nr_cpus = n;
    config.mips = 3000;
    config.quantum_ns = QUANTUM as u32;
    config.ramp_us = 29_000;
    config.hold_us = 10_000;
    config.decay_us = 98_000;
    config.rep_bytes_per_insn = 32;
    config.power_idle_mw = 300;
    for way in &mut config.move_ {
        way.speed = ONE;
    }
    config.nr_turbo = 1;
    config.turbo[0] = sys::model_turbo {
        cores: n,
        speed: ONE,
    };
    for i in 0..n {
        let cpu = &mut config.cpu[i as usize];
        cpu.present = true;
        cpu.capacity = ONE;
        cpu.floor = floor;
        cpu.core = i;
        let mut speeds: Vec<u32> = (0..=32).map(|k| floor + (ONE - floor) * k / 32).collect();
        speeds.dedup();
        cpu.nr_opps = speeds.len() as u32;
        for (opp, speed) in cpu.opp.iter_mut().zip(speeds) {
            opp.speed = speed;
            opp.power_mw = 1000 + speed * 3;
        }
    }
    config
}

/// What is wrong with a configuration.
fn check(config: &sys::model_config) -> Option<(String, u32)> {
    let mut cpu = 0;
    // SAFETY: both pointers are made from references; the answer is a literal.
    unsafe {
        let wrong = sys::model_check(config, &mut cpu);
        (!wrong.is_null()).then(|| (CStr::from_ptr(wrong).to_string_lossy().into_owned(), cpu))
    }
}

/// Calls a function of the model.
macro_rules! model {
    ($function:ident($model:expr $(, $argument:expr)* $(,)?)) => {
        // SAFETY: the model is initialised, and CPU numbers are below nr_cpus.
        unsafe { $crate::sys::$function(&mut *$model.0 $(, $argument)*) }
    };
}
use model;

struct Model(Box<sys::model>);

impl Model {
    fn new(config: &sys::model_config) -> Self {
        assert_eq!(check(config), None);
        // SAFETY: integers, booleans and optional pointers only: zeroes are valid.
        let mut model = Model(Box::new(unsafe { std::mem::zeroed() }));
        model!(model_init(model, config));
        model
    }

    /// All CPUs in `cpus` run without a break from `from` to `until`.
    fn run(&mut self, cpus: &[u32], from: u64, until: u64) {
        let mut now = from;
        while now < until {
            now = (now + QUANTUM).min(until);
            for &cpu in cpus {
                let insns = model!(model_budget(self, cpu, now));
                model!(model_charge(self, cpu, insns * u64::from(ONE)));
            }
            model!(model_tick(self, now));
        }
    }

    fn speed(&mut self, cpu: u32) -> u32 {
        model!(model_speed(self, cpu))
    }

    fn cpu(&self, cpu: u32) -> &sys::model_cpu {
        &self.0.cpu[cpu as usize]
    }

    /// The highest operating point that is not above `speed`.
    fn point(&self, cpu: u32, speed: f64) -> u32 {
        let config = &self.0.config.cpu[cpu as usize];
        config.opp[..config.nr_opps as usize]
            .iter()
            .map(|o| o.speed)
            .filter(|&s| f64::from(s) <= speed)
            .max()
            .unwrap_or(config.opp[0].speed)
    }
}
