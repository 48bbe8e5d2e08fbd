// SPDX-License-Identifier: GPL-2.0-only
//! The memory that the scheduler's BPF maps take, now and on another machine,
//! and what its agent takes.
//!
//! As it is now comes from the kernel. For other numbers of CPUs and tasks it
//! is computed: per-CPU maps and those with an entry for each CPU grow with
//! CPUs, task storage grows with tasks, everything else is bounded at start.

use crate::intf;
use libbpf_rs::{MapCore, MapType, Object};
use scx_stats_derive::{stat_doc, Stats};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::os::fd::{AsFd, AsRawFd};

/// The promise: all maps together, on 512 CPUs with 10 000 tasks.
pub const MAPS_LIMIT: u64 = 64 << 20;
/// The promise: what of the agent is resident.
pub const AGENT_LIMIT: u64 = 40 << 20;

/// One map, as the kernel describes it.
#[stat_doc]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stats)]
pub struct MapUse {
    #[stat(desc = "Name")]
    pub name: String,
    #[stat(desc = "Kind of map")]
    pub kind: String,
    #[stat(desc = "What it grows with: cpus, tasks or nothing")]
    pub grows: String,
    #[stat(desc = "Entries at most")]
    pub entries: u64,
    #[stat(desc = "Bytes of a key")]
    pub key: u64,
    #[stat(desc = "Bytes of a value")]
    pub value: u64,
    #[stat(desc = "Bytes that the kernel says it takes; without the elements of task storage")]
    pub now: u64,
}

/// What a loaded scheduler takes.
#[stat_doc]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stats)]
#[stat(desc = "Memory of the BPF maps and of the agent, in bytes")]
pub struct Memory {
    #[stat(desc = "The maps")]
    pub maps: Vec<MapUse>,
    #[stat(desc = "CPUs that the kernel counts as possible")]
    pub cpus: u64,
    #[stat(desc = "What of the agent is resident")]
    pub agent: u64,
    #[stat(desc = "The most that was ever resident of it")]
    pub agent_peak: u64,
    #[stat(desc = "Locks for which the wait-for graph has room")]
    pub lock_slots: u64,
    #[stat(desc = "Of these, how many somebody waits for now")]
    pub lock_slots_used: u64,
    #[stat(desc = "References on them: one for each task that waits")]
    pub lock_refs: u64,
    #[stat(desc = "Slots that are charged to a user")]
    pub lock_slots_charged: u64,
}

impl Memory {
    /// Asks the kernel about each map of a loaded object, and about this process.
    pub fn of(object: &Object) -> std::io::Result<Self> {
        let cpus = libbpf_rs::num_possible_cpus().map_err(std::io::Error::other)? as u64;
        let maps = object
            .maps()
            .map(|map| {
                let fd = map.as_fd().as_raw_fd();
                let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}"))?;
                let entries = u64::from(map.max_entries());
                Ok(MapUse {
                    name: map.name().to_string_lossy().into(),
                    kind: format!("{:?}", map.map_type()),
                    grows: grows(map.map_type(), entries, cpus).into(),
                    entries,
                    key: map.key_size().into(),
                    value: map.value_size().into(),
                    now: field(&info, "memlock:"),
                })
            })
            .collect::<std::io::Result<_>>()?;
        let status = std::fs::read_to_string("/proc/self/status")?;
        Ok(Self {
            maps,
            cpus,
            agent: field(&status, "VmRSS:") << 10,
            agent_peak: field(&status, "VmHWM:") << 10,
            ..Self::default()
        })
    }

    /// With what the slots of the wait-for graph say of themselves, each by its id, and
    /// how many of them each place of users is charged for.
    pub fn with_lock_slots(
        mut self,
        ids: impl Iterator<Item = u64>,
        charged: impl Iterator<Item = u32>,
    ) -> Self {
        self.lock_slots_charged = charged.map(u64::from).sum();
        for id in ids {
            let refs = id & u64::from(intf::fl_consts_FL_SLOT_REFS);
            self.lock_slots += 1;
            self.lock_slots_used += u64::from(refs > 0);
            self.lock_refs += refs;
        }
        self
    }

    /// Bytes of all maps on a machine of that size.
    pub fn maps_on(&self, cpus: u64, tasks: u64) -> u64 {
        self.maps.iter().map(|m| m.on(self.cpus, cpus, tasks)).sum()
    }

    /// A table of all maps, totals and promises.
    pub fn text(&self, cpus: u64, tasks: u64) -> String {
        let mut out = String::new();
        let there = format!("{cpus} CPUs, {tasks} tasks");
        let _ = writeln!(
            out,
            "{:<20} {:<14} {:<6} {:>10} {:>10} {:>24}",
            "map", "kind", "grows", "value", "now", there
        );
        for map in &self.maps {
            let _ = writeln!(
                out,
                "{:<20} {:<14} {:<6} {:>10} {:>10} {:>24}",
                map.name,
                map.kind,
                map.grows,
                map.value,
                kib(map.now),
                kib(map.on(self.cpus, cpus, tasks))
            );
        }
        let now: u64 = self.maps.iter().map(|m| m.now).sum();
        let _ = writeln!(
            out,
            "{:<20} {:<14} {:<6} {:>10} {:>10} {:>24}",
            "all maps",
            "",
            "",
            "",
            kib(now),
            kib(self.maps_on(cpus, tasks))
        );
        let _ = writeln!(
            out,
            "Maps promised on 512 CPUs with 10000 tasks: under {}; computed: {}",
            kib(MAPS_LIMIT),
            kib(self.maps_on(512, 10_000))
        );
        let _ = writeln!(
            out,
            "Agent promised: under {} resident; now: {}, at most so far: {}",
            kib(AGENT_LIMIT),
            kib(self.agent),
            kib(self.agent_peak)
        );
        let _ = writeln!(
            out,
            "Locks that somebody waits for: {} of {}, {} waiters",
            self.lock_slots_used, self.lock_slots, self.lock_refs
        );
        out
    }
}

impl MapUse {
    /// Bytes on a machine of that size; `here` is the number of CPUs of the one
    /// that it was described on.
    fn on(&self, here: u64, cpus: u64, tasks: u64) -> u64 {
        let value = self.value.next_multiple_of(8);
        match (self.grows.as_str(), self.kind.as_str()) {
            ("tasks", _) => self.now + tasks * (slab(ELEMENT + value) + slab(OWNER)),
            // Every possible CPU has a copy of every entry.
            ("cpus", kind) if kind.starts_with("Percpu") => {
                let copies = self.entries * value;
                self.now.saturating_sub(copies * here) + copies * cpus
            }
            ("cpus", _) => {
                let entries = self.entries * value;
                self.now.saturating_sub(entries) + value * cpus
            }
            // A map that grows as it is filled is counted as full.
            _ => self.now.max(self.entries * value),
        }
    }
}

/// What the kernel puts before each value of task storage, and what it keeps
/// for each task that has one: struct bpf_local_storage_elem up to its data,
/// struct bpf_local_storage.
const ELEMENT: u64 = 72;
const OWNER: u64 = 192;

/// The size of the piece of memory that the kernel takes for this many bytes.
fn slab(bytes: u64) -> u64 {
    match bytes {
        65..=96 => 96,
        129..=192 => 192,
        _ => bytes.next_power_of_two().max(16),
    }
}

fn grows(kind: MapType, entries: u64, cpus: u64) -> &'static str {
    match kind {
        MapType::TaskStorage => "tasks",
        MapType::PercpuArray | MapType::PercpuHash | MapType::LruPercpuHash => "cpus",
        MapType::Array | MapType::PerfEventArray if entries == cpus && cpus > 1 => "cpus",
        _ => "-",
    }
}

/// The number after the label in files of /proc.
fn field(text: &str, label: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix(label)?.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

fn kib(bytes: u64) -> String {
    format!("{} KiB", bytes.div_ceil(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(kind: &str, grows: &str, entries: u64, value: u64, now: u64) -> MapUse {
        MapUse {
            name: "m".into(),
            kind: kind.into(),
            grows: grows.into(),
            entries,
            key: 4,
            value,
            now,
        }
    }

    #[test]
    fn per_cpu_maps_grow_with_cpus() {
        let hists = map("PercpuArray", "cpus", 2, 4608, 300 + 2 * 4608 * 4);
        assert_eq!(hists.on(4, 4, 0), hists.now);
        assert_eq!(hists.on(4, 512, 0), 300 + 2 * 4608 * 512);
    }

    #[test]
    fn arrays_with_an_entry_for_each_cpu_grow_with_cpus() {
        let orders = map("Array", "cpus", 4, 2076, 300 + 4 * 2080);
        assert_eq!(orders.on(4, 512, 0), 300 + 512 * 2080);
    }

    #[test]
    fn task_storage_grows_with_tasks() {
        let ctx = map("TaskStorage", "tasks", 0, 200, 800);
        assert_eq!(ctx.on(4, 512, 0), 800);
        // 72 + 200 bytes take a piece of 512.
        assert_eq!(ctx.on(4, 512, 10_000), 800 + 10_000 * (512 + 192));
    }

    #[test]
    fn everything_else_is_bounded() {
        let bss = map("Array", "-", 1, 1 << 20, (1 << 20) + 300);
        assert_eq!(bss.on(4, 512, 10_000), bss.now);
        let hash = map("Hash", "-", 1000, 8, 100);
        assert_eq!(hash.on(4, 512, 10_000), 8000);
    }

    #[test]
    fn what_grows_is_known_by_kind() {
        assert_eq!(grows(MapType::PercpuArray, 2, 4), "cpus");
        assert_eq!(grows(MapType::TaskStorage, 0, 4), "tasks");
        assert_eq!(grows(MapType::Array, 4, 4), "cpus");
        assert_eq!(grows(MapType::Array, 1, 4), "-");
        assert_eq!(grows(MapType::LruHash, 4096, 4), "-");
    }

    #[test]
    fn pieces_of_memory_are_those_of_the_kernel() {
        let sizes: Vec<u64> = [1, 64, 65, 97, 129, 193, 272].map(slab).into();
        assert_eq!(sizes, [16, 64, 96, 128, 192, 256, 512]);
    }

    #[test]
    fn numbers_are_read_from_proc() {
        assert_eq!(field("map_type:\t2\nmemlock:\t4096\n", "memlock:"), 4096);
        assert_eq!(field("VmRSS:\t    1234 kB\n", "VmRSS:"), 1234);
        assert_eq!(field("", "VmRSS:"), 0);
    }

    #[test]
    fn the_text_ends_with_totals_and_promises() {
        let memory = Memory {
            maps: vec![
                map("Array", "-", 1, 1 << 20, 1 << 20),
                map("PercpuArray", "cpus", 1, 1024, 4096),
            ],
            cpus: 4,
            agent: 5 << 20,
            agent_peak: 6 << 20,
            ..Memory::default()
        }
        .with_lock_slots(
            [0, 7 << 16, (7 << 16) + 2, 0xffff].into_iter(),
            [1, 1].into_iter(),
        );
        let text = memory.text(8, 10);
        assert!(
            text.contains("1028 KiB") && text.contains("1032 KiB"),
            "{text}"
        );
        assert!(
            text.contains("under 65536 KiB; computed: 1536 KiB"),
            "{text}"
        );
        assert!(
            text.contains("now: 5120 KiB, at most so far: 6144 KiB"),
            "{text}"
        );
        assert!(text.contains(": 2 of 4, 65537 waiters"), "{text}");
    }
}
