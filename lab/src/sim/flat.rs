// SPDX-License-Identifier: GPL-2.0-only
//! The file that the plugin reads: every CPU of a machine and every constant of
//! its model, one to a line. machine/README.md says what the lines mean.

use std::fmt::Write;

use super::description::{Cold, Description, Governor, FULL};

const VERSION: u32 = 1;

/// How a run differs from what the machine's file says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// The limit of what a scheduler can reach: every CPU always at its highest
    /// speed.
    pub always_top: bool,
    /// A migration costs what the machine's file says, rather than nothing.
    pub migration_cost: bool,
}

/// A CPU's place: CPUs with the same number share the core or the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub cluster: usize,
    pub core: u32,
    pub llc: u32,
}

pub fn places(machine: &Description) -> Vec<Place> {
    let mut places = Vec::new();
    let (mut cores, mut llcs) = (0, 0);
    for (index, cluster) in machine.clusters.iter().enumerate() {
        places.extend((0..cluster.cpus).map(|cpu| Place {
            cluster: index,
            core: cores + cpu / cluster.threads_per_core,
            llc: llcs + cpu / cluster.cpus_per_llc,
        }));
        cores += cluster.cpus / cluster.threads_per_core;
        llcs += cluster.cpus / cluster.cpus_per_llc;
    }
    places
}

/// The CPUs by speed; among equals those that share a cache come together.
pub fn fastest_first(machine: &Description) -> Vec<usize> {
    let places = places(machine);
    let mut cpus: Vec<_> = (0..places.len()).collect();
    cpus.sort_by_key(|cpu| {
        let place = places[*cpu];
        let capacity = machine.clusters[place.cluster].capacity;
        (std::cmp::Reverse(capacity), place.llc, *cpu)
    });
    cpus
}

/// `guest_page` is where the guest writes which operating points it chooses;
/// without it the hardware chooses.
pub fn flat(machine: &Description, variant: Variant, guest_page: Option<u64>) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    write_flat(&mut out, machine, variant, guest_page).ok();
    out
}

fn write_flat(
    out: &mut String,
    machine: &Description,
    variant: Variant,
    guest_page: Option<u64>,
) -> std::fmt::Result {
    let us = |ms: f64| (ms * 1e3).round() as u64;
    let (ramp, hold, decay) = match (machine.governor, guest_page) {
        (Governor::Fixed, _) | (_, Some(_)) => (1, 0, 1),
        (
            Governor::Hardware {
                ramp_ms,
                hold_ms,
                decay_ms,
            },
            None,
        ) => (us(ramp_ms), us(hold_ms), us(decay_ms)),
    };
    let top = variant.always_top || machine.governor == Governor::Fixed;
    writeln!(out, "version {VERSION}")?;
    writeln!(out, "cpus {}", machine.cpus())?;
    writeln!(out, "mips {}", machine.mips)?;
    writeln!(out, "quantum_ns {}", machine.quantum_ns)?;
    match guest_page {
        Some(page) => writeln!(out, "governor guest\nguest_page {page:#x}")?,
        None => writeln!(out, "governor hardware")?,
    }
    writeln!(out, "ramp_us {ramp}")?;
    writeln!(out, "hold_us {hold}")?;
    writeln!(out, "decay_us {decay}")?;
    writeln!(out, "always_top {}", u8::from(top))?;
    for (name, cold) in [
        ("core", machine.migration.core),
        ("llc", machine.migration.llc),
        ("far", machine.migration.far),
    ] {
        let cold = if variant.migration_cost {
            cold
        } else {
            Cold::FREE
        };
        writeln!(out, "move_{name} {} {}", cold.insns, cold.speed)?;
    }
    writeln!(out, "rep_bytes_per_insn {}", machine.rep_bytes_per_insn)?;
    writeln!(out, "power_idle_mw {}", machine.idle_mw)?;
    for (cpu, place) in places(machine).iter().enumerate() {
        let cluster = &machine.clusters[place.cluster];
        let floor = cluster
            .opps
            .first()
            .map_or(FULL, |opp| cluster.speed(opp.mhz));
        writeln!(
            out,
            "cpu {cpu} capacity {} floor {floor} core {} llc {}",
            cluster.capacity, place.core, place.llc
        )?;
        for opp in &cluster.opps {
            writeln!(out, "opp {cpu} {} {}", cluster.speed(opp.mhz), opp.mw)?;
        }
    }
    if machine.turbo.is_empty() {
        // The plugin wants a limit for all of them.
        writeln!(out, "turbo {} {FULL}", machine.cpus())?;
    }
    for turbo in &machine.turbo {
        let speed = machine.clusters[0].speed(turbo.mhz);
        writeln!(out, "turbo {} {speed}", turbo.active)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::description::tests::{small, SMALL};
    use super::*;

    #[test]
    fn has_every_line_of_a_small_machine() {
        let expected = "\
version 1
cpus 4
mips 1000
quantum_ns 20000
governor hardware
ramp_us 8000
hold_us 1000
decay_us 20000
always_top 0
move_core 0 1024
move_llc 0 1024
move_far 0 1024
rep_bytes_per_insn 8
power_idle_mw 100
cpu 0 capacity 1024 floor 256 core 0 llc 0
opp 0 256 200
opp 0 1024 3000
cpu 1 capacity 1024 floor 256 core 1 llc 0
opp 1 256 200
opp 1 1024 3000
cpu 2 capacity 1024 floor 256 core 2 llc 1
opp 2 256 200
opp 2 1024 3000
cpu 3 capacity 1024 floor 256 core 3 llc 1
opp 3 256 200
opp 3 1024 3000
turbo 1 1024
turbo 4 768
";
        assert_eq!(flat(&small(), Variant::default(), None), expected);
    }

    #[test]
    fn variants_change_their_lines_alone() {
        let plain = flat(&small(), Variant::default(), None);
        let both = flat(
            &small(),
            Variant {
                always_top: true,
                migration_cost: true,
            },
            None,
        );
        let changed: Vec<_> = plain
            .lines()
            .zip(both.lines())
            .filter(|(a, b)| a != b)
            .map(|(_, b)| b)
            .collect();
        assert_eq!(
            changed,
            ["always_top 1", "move_llc 1000 512", "move_far 5000 256"]
        );
    }

    #[test]
    fn a_guest_that_governs_has_its_page() {
        let text = flat(&small(), Variant::default(), Some(0x5fff_c000));
        assert!(text.contains("\ngovernor guest\nguest_page 0x5fffc000\nramp_us 1\n"));
    }

    #[test]
    fn cores_and_caches_are_numbered_through_all_clusters() {
        let text = SMALL.replace("cpus = 4", "cpus = 4\nthreads_per_core = 2");
        let text = text.replace("active = 4", "active = 2");
        let mut machine = Description::parse("small", &text).unwrap();
        machine.clusters.push(machine.clusters[0].clone());
        let of = |f: fn(&Place) -> u32| places(&machine).iter().map(f).collect::<Vec<_>>();
        assert_eq!(of(|place| place.core), [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(of(|place| place.llc), [0, 0, 1, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn a_fixed_machine_is_always_at_the_top() {
        let mut machine = small();
        machine.governor = Governor::Fixed;
        assert!(flat(&machine, Variant::default(), None).contains("\nalways_top 1\n"));
    }
}
