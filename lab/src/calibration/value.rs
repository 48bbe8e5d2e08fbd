// SPDX-License-Identifier: GPL-2.0-only
//! The things that the model has a value for, by name, so that two sources of them can be
//! held beside each other.

use super::fit::{Fit, Known};
use super::measured::Measured;
use crate::sim::description::{Cold, Description, Governor, FULL};

#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Its tolerances are those of this name.
    pub thing: &'static str,
    /// What tells several of one thing apart.
    pub of: String,
    pub unit: &'static str,
    pub value: Known<f64>,
}

fn value(thing: &'static str, unit: &'static str, value: Known<f64>) -> Value {
    Value {
        thing,
        of: String::new(),
        unit,
        value,
    }
}

fn one_of(thing: &'static str, of: impl ToString, unit: &'static str, known: Known<f64>) -> Value {
    Value {
        of: of.to_string(),
        ..value(thing, unit, known)
    }
}

/// Of what was measured, with costs that the description has no value for.
pub fn of_fit(fit: &Fit, measured: &Measured) -> Vec<Value> {
    let governed = |part: fn(&super::fit::Governor) -> f64| match &fit.governor {
        Ok(Some(governor)) => Ok(part(governor)),
        Ok(None) => Err("no speed changes".into()),
        Err(why) => Err(why.clone()),
    };
    let points = |part: fn(&[f64]) -> f64| fit.points.as_deref().map(part).map_err(String::clone);
    let mut all = vec![
        value("instructions", "/us", Ok(fit.mips)),
        value("points", "", points(|points| points.len() as f64)),
        value("floor", "% of top", points(|points| points[0] * 100.0)),
        value("ramp", "ms", governed(|g| g.ramp_ms)),
        value("hold", "ms", governed(|g| g.hold_ms)),
        value("decay", "ms", governed(|g| g.decay_ms)),
    ];
    match &fit.turbo {
        Err(why) => all.push(value("turbo", "% of top", Err(why.clone()))),
        Ok(shares) => {
            all.extend((1..).zip(shares).map(|(cores, share): (u32, _)| {
                one_of("turbo", cores, "% of top", Ok(share * 100.0))
            }))
        }
    }
    for (distance, cold) in &fit.moves {
        let cold =
            |part: fn(&super::fit::Cold) -> f64| cold.as_ref().map(part).map_err(String::clone);
        all.push(one_of("migration", distance, "us", cold(|c| c.cost_us)));
        all.push(one_of(
            "migration-speed",
            distance,
            "%",
            cold(|c| c.speed * 100.0),
        ));
    }
    let costs = [
        ("wake", "us", 1000.0),
        ("syscall", "us", 1000.0),
        ("switch", "us", 1000.0),
    ];
    for (thing, unit, per_unit) in costs {
        let cost = measured.costs.get(thing).map(|ns| ns / per_unit);
        all.push(value(
            thing,
            unit,
            cost.ok_or_else(|| "not measured".into()),
        ));
    }
    all
}

/// Of a description.
pub fn of_description(machine: &Description) -> Vec<Value> {
    let cluster = &machine.clusters[0];
    let share = |mhz: u32| Ok(100.0 * f64::from(mhz) / f64::from(cluster.top_mhz().max(1)));
    let mut all = vec![value("instructions", "/us", Ok(machine.mips.into()))];
    if let Governor::Hardware {
        ramp_ms,
        hold_ms,
        decay_ms,
    } = machine.governor
    {
        all.extend([
            value("points", "", Ok(cluster.opps.len() as f64)),
            value("floor", "% of top", share(cluster.opps[0].mhz)),
            value("ramp", "ms", Ok(ramp_ms)),
            value("hold", "ms", Ok(hold_ms)),
            value("decay", "ms", Ok(decay_ms)),
        ]);
    }
    for cores in 1..=cluster.cpus / cluster.threads_per_core {
        let limit = machine.turbo.iter().find(|turbo| cores <= turbo.active);
        let mhz = limit.map_or(cluster.top_mhz(), |turbo| turbo.mhz);
        all.push(one_of("turbo", cores, "% of top", share(mhz)));
    }
    let moves = [
        ("core", machine.migration.core),
        ("llc", machine.migration.llc),
        ("far", machine.migration.far),
    ];
    for (distance, cold) in moves {
        let (cost_us, speed) = cost(cold, machine.mips);
        all.push(one_of("migration", distance, "us", Ok(cost_us)));
        all.push(one_of("migration-speed", distance, "%", Ok(speed * 100.0)));
    }
    all
}

/// The time that it takes longer, and the speed meanwhile.
fn cost(cold: Cold, mips: u32) -> (f64, f64) {
    let speed = f64::from(cold.speed) / f64::from(FULL);
    let warm_us = f64::from(cold.insns) / f64::from(mips);
    match cold.insns {
        0 => (0.0, 1.0),
        _ => (warm_us * (1.0 / speed - 1.0), speed),
    }
}

/// A line for each.
pub fn list(values: &[Value]) -> String {
    let line = |of: &Value| {
        let name = [of.thing, &of.of].join(" ");
        match &of.value {
            Ok(value) => format!("{name:<22} {value:.2} {}", of.unit),
            Err(why) => format!("{name:<22} not measured: {why}"),
        }
    };
    values
        .iter()
        .map(|of| line(of).trim_end().to_string() + "\n")
        .collect()
}
