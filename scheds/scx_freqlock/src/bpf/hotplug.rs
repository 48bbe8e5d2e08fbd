// SPDX-License-Identifier: GPL-2.0-only
//! Which CPUs there are and where, as the BPF side knows it: at start, and when some have
//! come or gone, or are isolated or no longer so. It does by itself what cannot wait (bpf/hotplug.bpf.c).

use super::skel::{types, BpfSkel};
use crate::opts::RunOpts;
use anyhow::{Context, Result};
use freqlock::apart::{self, Cpus};
use freqlock::calibrate;
use freqlock::freq::{Counters, Events};
use freqlock::topology::{self, Layout};
use libbpf_rs::{MapCore, MapFlags};
use log::{info, warn};
use std::os::fd::AsRawFd;
use std::thread;

/// Counts each CPU that came or went, under whatever scheduler.
const SEQUENCE: &str = "/sys/kernel/sched_ext/hotplug_seq";

/// The CPUs as they were last stored for the BPF side.
pub struct KnownCpus {
    /// The kernel's count before they were looked at: what changed during a look is found
    /// by the next one.
    sequence: Option<u64>,
    test_capacity: Vec<(usize, u32)>,
    /// Whether they differ in capacity, for which the BPF side was loaded.
    differ: bool,
    /// Those that are left alone, ...
    isolated: Cpus,
    /// ... of which the BPF side was loaded to take notice.
    isolates: bool,
    /// The BPF side reads them as long as they are open.
    counters: Option<Counters>,
}

/// What is to be done about CPUs that came or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    None,
    /// It is stored for the BPF side.
    Told,
    /// The BPF side was loaded for another kind of machine: why.
    Reload(&'static str),
}

impl KnownCpus {
    /// Looks at the CPUs; nothing is stored for the BPF side yet.
    pub fn look(opts: &RunOpts) -> Result<(Self, Layout)> {
        let mut known = Self {
            sequence: sequence(),
            test_capacity: opts.test_capacity.clone(),
            differ: false,
            isolated: apart::isolated(),
            isolates: false,
            counters: None,
        };
        let layout = known.layout()?;
        known.differ = layout.capacity_differs();
        known.isolates = layout.isolates();
        Ok((known, layout))
    }

    /// Whether some are left alone.
    pub fn isolates(&self) -> bool {
        !self.isolated.is_empty()
    }

    /// What is to be said of those.
    pub fn describe_isolated(&self) -> String {
        let cpus = apart::list(&self.isolated);
        format!("isolated: CPUs {cpus}, which are left to tasks that are bound to them")
    }

    fn layout(&self) -> Result<Layout> {
        let mut layout = topology::host()?;
        layout.isolate(&self.isolated);
        for (cpu, capacity) in &self.test_capacity {
            let cpu = layout
                .cpus
                .get_mut(*cpu)
                .context("--test-capacity names a CPU that is not here")?;
            cpu.capacity = *capacity;
        }
        Ok(layout)
    }

    /// Stores what the loaded BPF side learns from maps: the order of the CPUs, and their
    /// counters.
    pub fn fill_maps(
        &mut self,
        skel: &BpfSkel,
        layout: &Layout,
        counters: Option<Counters>,
    ) -> Result<()> {
        for cpu in 0..layout.cpus.len() {
            let order = topology::order_bytes(&layout.order(cpu));
            (skel.maps.cpu_orders)
                .update(&key(cpu), &order, MapFlags::ANY)
                .context("cannot fill cpu_orders")?;
        }
        if let Some(counters) = &counters {
            insert(&skel.maps.aperf_events, &counters.aperf)?;
            insert(&skel.maps.mperf_events, &counters.mperf)?;
        }
        self.counters = counters;
        Ok(())
    }

    /// Stores for the BPF side the CPUs that came or went since the last time, or are to be left
    /// alone now. Decisions that it takes meanwhile may see a CPU where it was, or not at all.
    pub fn follow(&mut self, skel: &mut BpfSkel) -> Result<Change> {
        let now = sequence();
        let isolated = apart::isolated();
        let parted = isolated != self.isolated;
        if now == self.sequence && !parted {
            return Ok(Change::None);
        }
        let before = std::mem::replace(&mut self.isolated, isolated);
        // One may go while its files are read.
        let layout = match self.layout() {
            Ok(layout) => layout,
            Err(error) => {
                warn!("CPUs came or went; the topology will be read again: {error:#}");
                // That it changed is to be found again.
                self.sequence = None;
                return Ok(Change::None);
            }
        };
        let came_or_went = now != self.sequence;
        self.sequence = now;
        let present: Vec<usize> = layout.present().collect();
        if came_or_went {
            info!(
                "CPUs came or went: {} of {} are online",
                present.len(),
                layout.cpus.len()
            );
        }
        match parted {
            true if self.isolates() => info!("{}", self.describe_isolated()),
            true => info!("isolated: no CPUs any more"),
            false => {}
        }
        if layout.capacity_differs() && !self.differ {
            return Ok(Change::Reload("they differ in capacity now"));
        }
        if layout.isolates() && !self.isolates {
            return Ok(Change::Reload("some are isolated now"));
        }
        store(skel.maps.bss_data.as_mut().context("no .bss")?, &layout);
        // Those of a CPU that went do not count again when it is back.
        let counters = match self.counters.take().map(|_| Counters::open(&present)) {
            Some(Err(why)) => {
                warn!("speeds are no longer measured: {why}");
                None
            }
            counters => counters.transpose().unwrap_or_default(),
        };
        self.fill_maps(skel, &layout, counters)?;
        for &cpu in before.difference(&self.isolated) {
            run_once_on(cpu);
        }
        Ok(Change::Told)
    }
}

/// Has a thread run for a moment on a CPU that is not isolated any more: the kernel took it for busy as
/// it gave tasks to it that nobody placed, and takes it for idle again only once something ran there.
/// Does not wait for that, since others may have the CPU.
fn run_once_on(cpu: usize) {
    thread::spawn(move || calibrate::stay_on(cpu));
}

/// Writes where each CPU is.
pub fn store(bss: &mut types::bss, layout: &Layout) {
    bss.nr_present = layout.present().count() as u32;
    bss.smt_present = layout.smt;
    for (to, from) in bss.cpu_topo.iter_mut().zip(&layout.cpus) {
        to.core = from.core;
        to.llc = from.llc;
        to.node = from.node;
        to.capacity = from.capacity;
        to.sibling = from.sibling;
        to.present = from.present;
        to.group = from.group;
        to.place = from.place;
    }
    bss.nr_groups = layout.groups.len() as u32;
    for (to, from) in bss.cpu_groups.iter_mut().zip(&layout.groups) {
        to.first = from.first;
        to.end = from.end;
        to.cpu = from.cpu;
    }
    // Each of them may have tasks; those that have none find out.
    for (work, group) in bss.group_works.iter_mut().zip(&layout.groups) {
        work.cpus = u64::MAX >> (u64::BITS - u32::from(group.nr));
    }
}

fn sequence() -> Option<u64> {
    std::fs::read_to_string(SEQUENCE).ok()?.trim().parse().ok()
}

fn insert(map: &impl MapCore, events: &Events) -> Result<()> {
    for (cpu, event) in events {
        map.update(&key(*cpu), &event.as_raw_fd().to_ne_bytes(), MapFlags::ANY)
            .with_context(|| format!("cannot use the counter of CPU {cpu}"))?;
    }
    Ok(())
}

fn key(cpu: usize) -> [u8; 4] {
    (cpu as u32).to_ne_bytes()
}
