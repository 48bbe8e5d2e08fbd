// SPDX-License-Identifier: GPL-2.0-only
//! The parameters of the model that fit what was measured. Pure.

use super::measured::{Measured, Move, Runs};

/// A value, or why it is not known.
pub type Known<T> = Result<T, String>;

/// Speeds that are nearer to each other are one.
const ALIKE: f64 = 0.01;

/// A speed that changes by less than this does not change.
const STEADY: f64 = 0.02;

/// Passes in a row that are as fast as the later ones: caches are warm.
const WARM: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Governor {
    pub ramp_ms: f64,
    pub hold_ms: f64,
    pub decay_ms: f64,
}

/// What a migration costs, where that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cold {
    pub cost_us: f64,
    /// Of what is warm.
    pub speed: f64,
}

impl Cold {
    pub const FREE: Self = Self {
        cost_us: 0.0,
        speed: 1.0,
    };
}

#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Instructions a microsecond, of the loop that was measured.
    pub mips: f64,
    pub top_mhz: f64,
    /// Shares of the highest speed, rising to 1.
    pub points: Known<Vec<f64>>,
    /// None: no speed changes.
    pub governor: Known<Option<Governor>>,
    /// Shares of the highest speed, by active cores from one on.
    pub turbo: Known<Vec<f64>>,
    /// To another hardware thread, to another core, farther.
    pub moves: [(&'static str, Known<Cold>); 3],
}

impl Fit {
    pub fn new(of: &Measured) -> Self {
        let top_ns = median(settled(&of.ramps));
        let steps_per_us = of.chunk * 1000.0 / top_ns;
        let changes = changes(of, top_ns);
        Self {
            mips: of.insns_of_step * steps_per_us,
            top_mhz: of.cycles_of_step * steps_per_us,
            points: changes.clone().map(|()| points(of, top_ns)),
            governor: changes.clone().and_then(|()| governor(of, top_ns)),
            turbo: match of.absent.get("turbo") {
                Some(why) => Err(why.clone()),
                None => changes.map(|()| {
                    let alone = of.turbo.first().map_or(top_ns, |(_, ns)| *ns);
                    let shares = of.turbo.iter().map(|(_, ns)| (alone / ns).min(1.0));
                    // More active cores are not faster.
                    let falling = shares.scan(1.0_f64, |least, share| {
                        *least = least.min(share);
                        Some(*least)
                    });
                    falling.collect()
                }),
            },
            moves: ["core", "llc", "far"].map(|distance| (distance, cold(of, distance))),
        }
    }
}

/// Whether what is seen of speeds is the machine's own.
fn changes(of: &Measured, top_ns: f64) -> Known<()> {
    if of.says("hypervisor") == "yes" {
        return Err("a virtual machine: its host decides how fast it is, and for whom".into());
    }
    let of_rounds: Vec<f64> = (of.ramps.iter())
        .map(|ramp| median(settled(std::slice::from_ref(ramp))))
        .collect();
    let worst = of_rounds.iter().map(|ns| (ns / top_ns - 1.0).abs());
    match worst.fold(0.0, f64::max) {
        off if off > STEADY => Err(format!(
            "the highest speed of the rounds differs by {:.0}%: other things run here",
            off * 100.0
        )),
        _ => Ok(()),
    }
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Chunks of the second half of each trace.
fn settled(ramps: &[Runs]) -> Vec<f64> {
    let half = |ramp: &Runs| {
        let all: u64 = ramp.iter().map(|(count, _)| count).sum();
        let each = ramp
            .iter()
            .flat_map(|&(count, ns)| (0..count).map(move |_| ns));
        each.skip((all / 2) as usize).collect::<Vec<_>>()
    };
    ramps.iter().flat_map(half).collect()
}

/// Speeds that the machine stayed at.
fn points(of: &Measured, top_ns: f64) -> Vec<f64> {
    let stays = of.ramps.iter().flatten().filter(|(count, _)| *count >= 2);
    let mut seen: Vec<f64> = stays.map(|(_, ns)| top_ns / ns).collect();
    seen.push(floor(of, top_ns));
    seen.sort_by(f64::total_cmp);
    let alike = |a: &f64, b: &f64| b / a - 1.0 < ALIKE;
    let mut points: Vec<f64> = (seen.chunk_by(alike))
        .map(|group| median(group.to_vec()))
        .filter(|point| *point < 1.0 - ALIKE)
        .collect();
    points.push(1.0);
    points
}

/// The speed after the longest idle times.
fn floor(of: &Measured, top_ns: f64) -> f64 {
    let longest = of.decays.iter().map(|(idle, _)| *idle).fold(0.0, f64::max);
    let late = of.decays.iter().filter(|(idle, _)| *idle > longest / 2.0);
    (top_ns / median(late.map(|(_, ns)| *ns).collect())).min(1.0)
}

fn governor(of: &Measured, top_ns: f64) -> Known<Option<Governor>> {
    let floor = floor(of, top_ns);
    if floor > 1.0 - STEADY {
        return Ok(None);
    }
    let ramps: Vec<f64> = of.ramps.iter().map(|ramp| climb_ms(ramp, top_ns)).collect();
    let (hold_ms, decay_ms) = fall_ms(of, top_ns, &points(of, top_ns));
    Ok(Some(Governor {
        ramp_ms: median(ramps),
        hold_ms,
        decay_ms,
    }))
}

/// Until the highest speed is reached.
fn climb_ms(ramp: &Runs, top_ns: f64) -> f64 {
    let slow = ramp.iter().take_while(|(_, ns)| top_ns / ns < 1.0 - ALIKE);
    slow.map(|(count, ns)| *count as f64 * ns).sum::<f64>() / 1e6
}

/// Hold and decay with which the model has the speeds that were seen: the least sum of
/// differences, by a search on a grid that gets finer.
fn fall_ms(of: &Measured, top_ns: f64, points: &[f64]) -> (f64, f64) {
    const SIDE: u32 = 24;
    let floor = points[0];
    let misfit = |hold: f64, decay: f64| -> f64 {
        let of_one = |&(idle, ns): &(f64, f64)| {
            let fallen = ((idle / 1e6 - hold).max(0.0) / decay).min(1.0);
            let wanted = 1.0 - fallen * (1.0 - floor);
            let below = points.iter().rev().find(|p| **p <= wanted + 1e-6);
            (below.unwrap_or(&floor) - top_ns / ns).abs()
        };
        of.decays.iter().map(of_one).sum()
    };
    let longest = of.decays.iter().map(|(idle, _)| *idle).fold(0.0, f64::max) / 1e6;
    // Both by their logarithms, for idle times are spread so.
    let (mut hold, mut decay, mut width) = (1.0_f64, 10.0_f64, (longest / 0.05).ln());
    let mut best = (f64::INFINITY, hold, decay);
    for _ in 0..12 {
        for i in 0..=SIDE {
            for k in 0..=SIDE {
                let at = |n: u32| (width * (f64::from(n) / f64::from(SIDE) - 0.5)).exp();
                // None at all is not on such a grid.
                for h in [hold * at(i), 0.0] {
                    let d = (decay * at(k)).clamp(0.001, 1000.0);
                    let off = misfit(h, d);
                    if off < best.0 {
                        best = (off, h, d);
                    }
                }
            }
        }
        (hold, decay) = (best.1.max(0.01), best.2);
        width *= 0.6;
    }
    (best.1, best.2)
}

fn cold(of: &Measured, distance: &str) -> Known<Cold> {
    if let Some(why) = of.absent.get(distance) {
        return Err(why.clone());
    }
    if of.says("hypervisor") == "yes" {
        return Err("a virtual machine: which CPUs share caches is not known".into());
    }
    let mut all: Vec<Cold> = (of.moves.iter())
        .filter(|m| m.distance == distance)
        .filter_map(after_move)
        .collect();
    if all.is_empty() {
        return Err("not measured".into());
    }
    // Of the rounds the middle one: an interrupt makes one dearer, or ends it.
    all.sort_by(|a, b| a.cost_us.total_cmp(&b.cost_us));
    Ok(all[all.len() / 2])
}

fn after_move(of: &Move) -> Option<Cold> {
    let each: Vec<f64> = (of.passes.iter())
        .flat_map(|&(count, ns)| (0..count).map(move |_| ns))
        .collect();
    let warm = median(each[each.len() / 2..].to_vec());
    let end = each
        .windows(WARM)
        .position(|next| next.iter().all(|ns| *ns < warm * (1.0 + STEADY)))?;
    if end == 0 {
        return Some(Cold::FREE);
    }
    let slow = &each[..end];
    Some(Cold {
        cost_us: slow.iter().map(|ns| ns - warm).sum::<f64>() / 1000.0,
        speed: (warm / median(slow.to_vec())).min(1.0),
    })
}
