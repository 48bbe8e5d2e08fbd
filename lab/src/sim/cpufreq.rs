// SPDX-License-Identifier: GPL-2.0-only
//! What an arm64 guest's cpufreq driver takes for its hardware: a page of memory
//! for each CPU, as Linux's mediatek-cpufreq-hw wants it. It says what operating
//! points there are, and the driver writes its choice there, where the plugin
//! looks for it (CHOICE_OFFSET in machine/plugin/machine.c).

use super::description::{Cluster, Description, Governor, Opp};
use super::flat::places;

/// The compatible name by which the kernel finds the driver.
pub const COMPATIBLE: &str = "mediatek,cpufreq-hw";

/// One CPU's registers; what the guest maps are whole pages.
pub const PAGE: u64 = 4096;

/// Where the guest's memory begins on QEMU's board.
const MEMORY: u64 = 0x4000_0000;

/// Operating points in MHz, from the highest down; the last one is repeated.
const POINTS: usize = 0;
/// Number of the chosen point.
const CHOICE: usize = 0x88;
/// That frequencies and voltages are under control: the driver waits for it.
const STATE: usize = 0x8c;
const STATE_ON: u32 = 3;
/// Power of the points in µW, by which the kernel models energy.
const POWER: usize = 0x90;
/// How long a change takes, in µs.
const LATENCY: usize = 0x110;

const MAX_POINTS: usize = 32;
const MAX_MHZ: u32 = 0xfff;

/// The pages lie at the end of the guest's memory.
pub fn address(machine: &Description, memory_mb: u64) -> u64 {
    MEMORY + (memory_mb << 20) - u64::from(machine.cpus()) * PAGE
}

/// The address, if the guest chooses frequencies: not where they are fixed.
pub fn governing(machine: &Description, memory_mb: u64) -> Option<u64> {
    (machine.governor != Governor::Fixed).then(|| address(machine, memory_mb))
}

/// The points that a guest may choose from.
fn points<'a>(machine: &Description, cluster: &'a Cluster) -> &'a [Opp] {
    match machine.governor {
        Governor::Fixed => &cluster.opps[cluster.opps.len().saturating_sub(1)..],
        Governor::Hardware { .. } => &cluster.opps,
    }
}

/// The registers of all CPUs. The reason is for people.
pub fn registers(machine: &Description) -> Result<Vec<u8>, String> {
    let mut all = Vec::new();
    for place in places(machine) {
        all.extend(page(machine, &machine.clusters[place.cluster])?);
    }
    Ok(all)
}

fn page(machine: &Description, cluster: &Cluster) -> Result<[u8; PAGE as usize], String> {
    let points = points(machine, cluster);
    if points.len() > MAX_POINTS || points.iter().any(|point| point.mhz > MAX_MHZ) {
        return Err(format!(
            "an arm64 guest's driver knows {MAX_POINTS} operating points of at most {MAX_MHZ} MHz"
        ));
    }
    let mut page = [0; PAGE as usize];
    let mut put = |at: usize, value: u32| page[at..at + 4].copy_from_slice(&value.to_le_bytes());
    for number in 0..MAX_POINTS {
        // Counted from the highest down.
        let index = points.len().saturating_sub(number + 1);
        let Some(point) = points.get(index) else {
            continue;
        };
        put(POINTS + 4 * number, point.mhz);
        put(POWER + 4 * number, point.mw.saturating_mul(1000));
    }
    put(CHOICE, 0);
    put(STATE, STATE_ON);
    put(LATENCY, machine.quantum_ns.div_ceil(1000));
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::super::description::tests::small;
    use super::*;

    fn word(registers: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(registers[at..at + 4].try_into().unwrap())
    }

    #[test]
    fn points_are_listed_from_the_highest_down() {
        let all = registers(&small()).unwrap();
        assert_eq!(all.len(), 4 * 4096);
        for cpu in all.chunks(4096) {
            assert_eq!(
                [0, 4, 8, 124].map(|at| word(cpu, at)),
                [2000, 500, 500, 500]
            );
            assert_eq!([0x90, 0x94].map(|at| word(cpu, at)), [3_000_000, 200_000]);
            assert_eq!([0x88, 0x8c, 0x110].map(|at| word(cpu, at)), [0, 3, 20]);
        }
    }

    #[test]
    fn there_is_nothing_to_choose_where_frequencies_are_fixed() {
        let mut machine = small();
        assert_eq!(governing(&machine, 512), Some(0x6000_0000 - 4 * 4096));
        machine.governor = Governor::Fixed;
        assert_eq!(governing(&machine, 512), None);
        let all = registers(&machine).unwrap();
        assert_eq!([0, 4].map(|at| word(&all, at)), [2000, 2000]);
    }

    #[test]
    fn what_the_driver_cannot_know_is_refused() {
        let mut machine = small();
        machine.clusters[0].opps[1].mhz = 4096;
        assert!(registers(&machine).unwrap_err().contains("4095 MHz"));
        machine.clusters[0].opps = (1..=33).map(|i| Opp { mhz: i, mw: i }).collect();
        assert!(registers(&machine).unwrap_err().contains("32 operating"));
    }
}
