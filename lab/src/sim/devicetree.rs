// SPDX-License-Identifier: GPL-2.0-only
//! The device tree of an arm64 guest: of QEMU's board `virt` what a simulated
//! machine uses, and the CPUs as the machine's description has them. QEMU adds
//! the memory, the image and the kernel's command line.

use sha2::{Digest, Sha512};
use vm_fdt::{Error, FdtWriter};

use super::cpufreq;
use super::description::{Description, FULL};
use super::flat::places;

/// Interrupts of the board: shared ones, and those of each CPU.
const SHARED: u32 = 0;
const PRIVATE: u32 = 1;
const LEVEL_HIGH: u32 = 4;

/// CPUs that QEMU gives the same upper part of their identification.
const CPUS_PER_GROUP: u32 = 16;

/// What refers to each other.
const GIC: u32 = 1;
const CLOCK: u32 = 2;
const FREQUENCIES: u32 = 3;
const FIRST_CPU: u32 = 0x100;
const FIRST_CACHE: u32 = 0x200;

/// Two cells each.
fn cells(values: &[u64]) -> Vec<u32> {
    values
        .iter()
        .flat_map(|value| [(value >> 32) as u32, *value as u32])
        .collect()
}

pub fn blob(machine: &Description, memory_mb: u64, seed: u32) -> Result<Vec<u8>, Error> {
    let mut tree = FdtWriter::new()?;
    let root = tree.begin_node("")?;
    tree.property_u32("#address-cells", 2)?;
    tree.property_u32("#size-cells", 2)?;
    tree.property_string("compatible", "linux,dummy-virt")?;
    tree.property_u32("interrupt-parent", GIC)?;
    chosen(&mut tree, seed)?;
    firmware(&mut tree)?;
    interrupts(&mut tree)?;
    devices(&mut tree)?;
    frequencies(&mut tree, machine, memory_mb)?;
    cpus(&mut tree, machine)?;
    tree.end_node(root)?;
    tree.finish()
}

/// The guest's random numbers come from here alone.
fn chosen(tree: &mut FdtWriter, seed: u32) -> Result<(), Error> {
    let node = tree.begin_node("chosen")?;
    tree.property_string("stdout-path", "serial0")?;
    tree.property("rng-seed", &Sha512::digest(seed.to_le_bytes()))?;
    tree.end_node(node)
}

/// It starts and stops CPUs.
fn firmware(tree: &mut FdtWriter) -> Result<(), Error> {
    let node = tree.begin_node("psci")?;
    tree.property_string_list(
        "compatible",
        vec!["arm,psci-1.0".into(), "arm,psci-0.2".into()],
    )?;
    tree.property_string("method", "hvc")?;
    tree.end_node(node)
}

fn interrupts(tree: &mut FdtWriter) -> Result<(), Error> {
    let node = tree.begin_node("intc@8000000")?;
    tree.property_string("compatible", "arm,gic-v3")?;
    tree.property_null("interrupt-controller")?;
    tree.property_u32("#interrupt-cells", 3)?;
    tree.property_array_u32(
        "reg",
        &cells(&[0x0800_0000, 0x1_0000, 0x080a_0000, 0xf6_0000]),
    )?;
    tree.property_phandle(GIC)?;
    tree.end_node(node)?;

    let node = tree.begin_node("timer")?;
    tree.property_string("compatible", "arm,armv8-timer")?;
    let lines = [13, 14, 11, 10].map(|number| [PRIVATE, number, LEVEL_HIGH]);
    tree.property_array_u32("interrupts", &lines.concat())?;
    tree.property_null("always-on")?;
    tree.end_node(node)
}

/// Two serial lines, and a clock that knows the date.
fn devices(tree: &mut FdtWriter) -> Result<(), Error> {
    const DEVICES: [(&str, u64, u32); 3] = [
        ("pl011", 0x0900_0000, 1),
        ("pl011", 0x0904_0000, 8),
        ("pl031", 0x0901_0000, 2),
    ];

    let node = tree.begin_node("aliases")?;
    tree.property_string("serial0", "/pl011@9000000")?;
    tree.property_string("serial1", "/pl011@9040000")?;
    tree.end_node(node)?;

    let node = tree.begin_node("apb-pclk")?;
    tree.property_string("compatible", "fixed-clock")?;
    tree.property_u32("#clock-cells", 0)?;
    tree.property_u32("clock-frequency", 24_000_000)?;
    tree.property_phandle(CLOCK)?;
    tree.end_node(node)?;

    for (kind, address, interrupt) in DEVICES {
        let node = tree.begin_node(&format!("{kind}@{address:x}"))?;
        tree.property_string_list(
            "compatible",
            vec![format!("arm,{kind}"), "arm,primecell".into()],
        )?;
        tree.property_array_u32("reg", &cells(&[address, 0x1000]))?;
        tree.property_array_u32("interrupts", &[SHARED, interrupt, LEVEL_HIGH])?;
        tree.property_array_u32("clocks", &[CLOCK, CLOCK])?;
        tree.property_string_list("clock-names", vec!["uartclk".into(), "apb_pclk".into()])?;
        tree.end_node(node)?;
    }
    Ok(())
}

/// The pages of cpufreq.rs, which the kernel must not use as memory.
fn frequencies(tree: &mut FdtWriter, machine: &Description, memory_mb: u64) -> Result<(), Error> {
    let first = cpufreq::address(machine, memory_mb);
    let pages: Vec<u64> = (0..u64::from(machine.cpus()))
        .flat_map(|cpu| [first + cpu * cpufreq::PAGE, cpufreq::PAGE])
        .collect();

    let node = tree.begin_node("reserved-memory")?;
    tree.property_u32("#address-cells", 2)?;
    tree.property_u32("#size-cells", 2)?;
    tree.property_null("ranges")?;
    let inner = tree.begin_node(&format!("frequencies@{first:x}"))?;
    let length = u64::from(machine.cpus()) * cpufreq::PAGE;
    tree.property_array_u32("reg", &cells(&[first, length]))?;
    tree.property_null("no-map")?;
    tree.end_node(inner)?;
    tree.end_node(node)?;

    let node = tree.begin_node(&format!("performance-controller@{first:x}"))?;
    tree.property_string("compatible", cpufreq::COMPATIBLE)?;
    tree.property_array_u32("reg", &cells(&pages))?;
    tree.property_u32("#performance-domain-cells", 1)?;
    tree.property_phandle(FREQUENCIES)?;
    tree.end_node(node)
}

/// Work per MHz. The kernel multiplies it by the highest frequency and takes
/// what comes out as a share of the largest one, rounded down; hence half a unit
/// more than the share that is wanted.
fn work_per_mhz(capacity: u32, top_mhz: u32) -> u32 {
    let halves = u64::from(2 * capacity + u32::from(capacity < FULL));
    ((halves << 19) / u64::from(top_mhz.max(1))) as u32
}

fn cpus(tree: &mut FdtWriter, machine: &Description) -> Result<(), Error> {
    let places = places(machine);
    let node = tree.begin_node("cpus")?;
    tree.property_u32("#address-cells", 1)?;
    tree.property_u32("#size-cells", 0)?;
    for (number, place) in (0..).zip(&places) {
        let cluster = &machine.clusters[place.cluster];
        let id = ((number / CPUS_PER_GROUP) << 8) | (number % CPUS_PER_GROUP);
        let cpu = tree.begin_node(&format!("cpu@{id:x}"))?;
        tree.property_string("device_type", "cpu")?;
        tree.property_string("compatible", "arm,armv8")?;
        tree.property_u32("reg", id)?;
        tree.property_string("enable-method", "psci")?;
        tree.property_u32(
            "capacity-dmips-mhz",
            work_per_mhz(cluster.capacity, cluster.top_mhz()),
        )?;
        tree.property_array_u32("performance-domains", &[FREQUENCIES, number])?;
        tree.property_u32("next-level-cache", FIRST_CACHE + place.llc)?;
        tree.property_phandle(FIRST_CPU + number)?;
        tree.end_node(cpu)?;
    }
    cpu_map(tree, machine)?;
    let caches = places.last().map_or(0, |place| place.llc + 1);
    for number in 0..caches {
        let cache = tree.begin_node(&format!("l2-cache{number}"))?;
        tree.property_string("compatible", "cache")?;
        tree.property_u32("cache-level", 2)?;
        tree.property_null("cache-unified")?;
        tree.property_phandle(FIRST_CACHE + number)?;
        tree.end_node(cache)?;
    }
    tree.end_node(node)
}

/// Which CPUs are threads of a core, and which cores share a cache.
fn cpu_map(tree: &mut FdtWriter, machine: &Description) -> Result<(), Error> {
    let map = tree.begin_node("cpu-map")?;
    let (mut cache, mut cpu) = (0, FIRST_CPU);
    for cluster in &machine.clusters {
        let threads = cluster.threads_per_core;
        for _ in 0..cluster.cpus / cluster.cpus_per_llc {
            let group = tree.begin_node(&format!("cluster{cache}"))?;
            for core in 0..cluster.cpus_per_llc / threads {
                let node = tree.begin_node(&format!("core{core}"))?;
                for thread in 0..threads {
                    if threads == 1 {
                        tree.property_u32("cpu", cpu)?;
                    } else {
                        let inner = tree.begin_node(&format!("thread{thread}"))?;
                        tree.property_u32("cpu", cpu)?;
                        tree.end_node(inner)?;
                    }
                    cpu += 1;
                }
                tree.end_node(node)?;
            }
            tree.end_node(group)?;
            cache += 1;
        }
    }
    tree.end_node(map)
}

#[cfg(test)]
mod tests {
    use super::super::description::tests::{small, SMALL};
    use super::*;

    fn has(blob: &[u8], part: &[u8]) -> bool {
        blob.windows(part.len()).any(|window| window == part)
    }

    #[test]
    fn capacities_come_out_as_they_went_in() {
        // As the kernel computes them, in kHz.
        let kernel = |capacity: u32, mhz: u32, biggest: u64| {
            u64::from(work_per_mhz(capacity, mhz)) * u64::from(mhz) * 1000 * 1024 / biggest
        };
        for (big_mhz, little, little_mhz) in [(3204, 460, 2064), (2000, 1, 4095), (10, 1023, 10)] {
            let biggest = u64::from(work_per_mhz(1024, big_mhz)) * u64::from(big_mhz) * 1000;
            assert_eq!(kernel(1024, big_mhz, biggest), 1024);
            assert_eq!(kernel(little, little_mhz, biggest), u64::from(little));
        }
    }

    #[test]
    fn the_seed_is_all_that_differs() {
        let machine = small();
        let blob = |seed| super::blob(&machine, 512, seed).unwrap();
        assert_eq!(blob(1), blob(1));
        assert_ne!(blob(1), blob(2));
        assert_eq!(blob(1).len(), blob(2).len());
    }

    #[test]
    fn every_cpu_has_its_page_and_its_place() {
        let text = SMALL.replace("cpus = 4", "cpus = 4\nthreads_per_core = 2");
        let machine = Description::parse("small", &text.replace("active = 4", "active = 2"));
        let blob = blob(&machine.unwrap(), 512, 1).unwrap();
        for name in [
            "cpu@3\0",
            "cluster1\0",
            "core0\0",
            "thread1\0",
            "l2-cache1\0",
        ] {
            assert!(has(&blob, name.as_bytes()), "{name}");
        }
        assert!(!has(&blob, b"cpu@4\0") && !has(&blob, b"core1\0"));
        let last = [0, 0x6000_0000 - 0x1000, 0, 0x1000u32];
        let last: Vec<u8> = last.iter().flat_map(|cell| cell.to_be_bytes()).collect();
        assert!(has(&blob, &last));
    }

    #[test]
    fn cpus_are_numbered_as_qemu_does() {
        let mut machine = small();
        machine.clusters[0].cpus = 20;
        let blob = blob(&machine, 512, 1).unwrap();
        assert!(has(&blob, b"cpu@f\0") && has(&blob, b"cpu@100\0") && has(&blob, b"cpu@103\0"));
        assert!(!has(&blob, b"cpu@10\0"));
    }
}
