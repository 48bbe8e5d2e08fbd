// SPDX-License-Identifier: GPL-2.0-only
//! The file of a machine that was measured. What is not known stands as another machine has
//! it, and says so.

use std::fmt::Write;

use super::fit::{Cold, Fit, Governor, Known};
use super::measured::Measured;
use crate::sim::description::{self, Cluster, Description, FULL};

/// As many operating points as a description may have.
const MAX_POINTS: usize = 40;

pub fn text(fit: &Fit, measured: &Measured, otherwise: &Description) -> String {
    let cluster = &otherwise.clusters[0];
    let points = match &fit.points {
        Ok(points) => thinned(points),
        Err(_) => shares(cluster),
    };
    let mhz: Vec<u32> = points.iter().map(|p| rounded(p * fit.top_mhz)).collect();
    let cores = measured.cores();
    let mut out = String::from("# SPDX-License-Identifier: GPL-2.0-only\n");
    // Writing to a string cannot fail.
    let mut line = |text: String| writeln!(out, "{text}").ok();
    line(format!(
        "# Fitted by scripts/calibrate to {}; {} CPUs, cpufreq {} with {}.",
        measured.says("model"),
        measured.cpus.len(),
        measured.says("scaling_driver"),
        measured.says("scaling_governor"),
    ));
    line(format!(
        "description = \"{} CPUs at {} MHz, calibrated\"\n",
        measured.cpus.len(),
        rounded(fit.top_mhz)
    ));
    line("# Of a loop of dependent instructions, as many a cycle as it has: other code has fewer or more.".into());
    line(format!("mips = {}", rounded(fit.mips)));
    line(format!("memory_mb = {}", otherwise.memory_mb));
    line(unknown("power", "nothing here measures it", otherwise));
    line(format!("idle_mw = {}\n", otherwise.idle_mw));
    line(match &fit.governor {
        Ok(Some(governor)) => governor_text(governor),
        Ok(None) => "# No speed changed.\n[governor]\nkind = \"fixed\"\n".into(),
        Err(why) => unknown("governor", why, otherwise) + "\n" + &governor_of(otherwise),
    });
    line("[migration]".into());
    for (distance, cold) in &fit.moves {
        let default = match *distance {
            "core" => otherwise.migration.core,
            "llc" => otherwise.migration.llc,
            _ => otherwise.migration.far,
        };
        let (insns, speed) = match cold {
            Ok(cold) => slow(cold, fit.mips),
            Err(why) => {
                line(unknown(distance, why, otherwise));
                (default.insns, default.speed)
            }
        };
        line(format!(
            "{distance} = {{ insns = {insns}, speed = {speed} }}"
        ));
    }
    for (active, mhz) in turbo(&fit.turbo, fit.top_mhz, cores, otherwise, mhz[0]) {
        line(format!("\n[[turbo]]\nactive = {active}\nmhz = {mhz}"));
    }
    line(String::new());
    if let Err(why) = &fit.turbo {
        line(unknown("turbo", why, otherwise));
    }
    if let Err(why) = &fit.points {
        line(unknown("opps", why, otherwise));
    }
    line(cluster_text(measured, cores));
    line("opps = [".into());
    let mut below = otherwise.idle_mw;
    for (share, mhz) in points.iter().zip(mhz) {
        below = rounded(power(cluster, *share)).max(below + 1);
        line(format!("    {{ mhz = {mhz}, mw = {below} }},"));
    }
    line("]".into());
    out
}

fn unknown(what: &str, why: &str, otherwise: &Description) -> String {
    format!(
        "# {what}: not measured, as {} has it: {why}.",
        otherwise.name
    )
}

fn rounded(value: f64) -> u32 {
    // All of these are far below its range.
    value.round().max(1.0) as u32
}

fn governor_text(governor: &Governor) -> String {
    format!(
        "[governor]\nkind = \"hardware\"\nramp_ms = {:.3}\nhold_ms = {:.3}\ndecay_ms = {:.3}\n",
        governor.ramp_ms.max(0.001),
        governor.hold_ms,
        governor.decay_ms
    )
}

fn governor_of(otherwise: &Description) -> String {
    match otherwise.governor {
        description::Governor::Fixed => "[governor]\nkind = \"fixed\"\n".into(),
        description::Governor::Hardware {
            ramp_ms,
            hold_ms,
            decay_ms,
        } => governor_text(&Governor {
            ramp_ms,
            hold_ms,
            decay_ms,
        }),
    }
}

/// Instructions and their speed, which together cost what was measured.
fn slow(cold: &Cold, mips: f64) -> (u32, u32) {
    let speed = rounded(cold.speed * f64::from(FULL)).min(FULL);
    if cold.cost_us <= 0.0 || speed == FULL {
        return (0, FULL);
    }
    let longer = f64::from(FULL) / f64::from(speed) - 1.0;
    (rounded(cold.cost_us * mips / longer), speed)
}

fn cluster_text(measured: &Measured, cores: u32) -> String {
    // A machine has at most some thousand CPUs.
    let cpus = measured.cpus.len() as u32;
    let evenly = |parts: u32| {
        if cpus.is_multiple_of(parts) {
            cpus / parts
        } else {
            cpus
        }
    };
    let threads = if cpus.is_multiple_of(cores) {
        cpus / cores
    } else {
        1
    };
    let mixed = measured
        .cpus
        .iter()
        .any(|cpu| cpu.max_khz != measured.cpus[0].max_khz);
    let note = if mixed {
        "# Not measured: cores of several kinds. All are as the first one.\n"
    } else {
        ""
    };
    format!(
        "{note}[[cluster]]\ncpus = {cpus}\ncpus_per_llc = {}\nthreads_per_core = {threads}\ncapacity = {FULL}",
        evenly(measured.llcs())
    )
}

/// The last core number of each step, and its frequency.
fn turbo(
    known: &Known<Vec<f64>>,
    top_mhz: f64,
    cores: u32,
    otherwise: &Description,
    floor_mhz: u32,
) -> Vec<(u32, u32)> {
    let cluster = &otherwise.clusters[0];
    let shares = match known {
        Ok(shares) => shares.clone(),
        Err(_) if otherwise.turbo.is_empty() => return Vec::new(),
        Err(_) => (1..=cores)
            .map(|n| {
                let limit = otherwise.turbo.iter().find(|turbo| n <= turbo.active);
                let limit = limit.or(otherwise.turbo.last());
                limit.map_or(1.0, |t| {
                    f64::from(t.mhz) / f64::from(cluster.top_mhz().max(1))
                })
            })
            .collect(),
    };
    let mut steps: Vec<(u32, f64)> = Vec::new();
    for (cores, share) in (1..).zip(shares) {
        match steps.last_mut() {
            Some((last, of)) if share > *of * 0.99 => *last = cores,
            _ => steps.push((cores, share)),
        }
    }
    if steps.len() == 1 && steps[0].1 > 0.99 {
        return Vec::new();
    }
    steps
        .into_iter()
        .map(|(cores, share)| (cores, rounded(share.min(1.0) * top_mhz).max(floor_mhz)))
        .collect()
}

fn shares(cluster: &Cluster) -> Vec<f64> {
    let top = f64::from(cluster.top_mhz().max(1));
    cluster
        .opps
        .iter()
        .map(|opp| f64::from(opp.mhz) / top)
        .collect()
}

/// No more than a description may have, the ends among them.
fn thinned(points: &[f64]) -> Vec<f64> {
    let nr = points.len().min(MAX_POINTS);
    (0..nr)
        .map(|i| {
            points[if nr < 2 {
                0
            } else {
                i * (points.len() - 1) / (nr - 1)
            }]
        })
        .collect()
}

/// The power that a machine has at this share of its highest frequency, by a line between
/// its operating points.
fn power(cluster: &Cluster, share: f64) -> f64 {
    let at = share * f64::from(cluster.top_mhz());
    let point = |i: usize| {
        (
            f64::from(cluster.opps[i].mhz),
            f64::from(cluster.opps[i].mw),
        )
    };
    let above = cluster.opps.iter().position(|opp| f64::from(opp.mhz) >= at);
    match above {
        Some(0) => point(0).1 * at / point(0).0,
        None => point(cluster.opps.len() - 1).1,
        Some(i) => {
            let ((x0, y0), (x1, y1)) = (point(i - 1), point(i));
            y0 + (y1 - y0) * (at - x0) / (x1 - x0)
        }
    }
}
