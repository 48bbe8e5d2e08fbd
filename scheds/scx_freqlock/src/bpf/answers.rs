// SPDX-License-Identifier: GPL-2.0-only
//! What the statistics socket reports, read from the BPF side's maps.

use super::load::Scheduler;
use super::rings;
use super::skel::types::{cpu_topo, fl_cpu_state};
use super::skel::BpfSkel;
use anyhow::{ensure, Context, Result};
use freqlock::histogram;
use freqlock::intf;
use freqlock::locks::{LockProfile, LockProfiles};
use freqlock::memory::Memory;
use freqlock::metrics::{Metrics, STATS};
use freqlock::predictions::Predictions;
use freqlock::stats::{Request, Response};
use freqlock::telemetry::{Collector, Cpu, Cpus, TaskStats, Telemetry, TASK_STATS};
use libbpf_rs::{MapCore, MapFlags, ProgramInput};
use std::cell::RefCell;

/// What each CPU that there is does now, and what it is.
pub fn look_at_cpus<'s>(
    skel: &'s BpfSkel,
) -> Result<impl Iterator<Item = (usize, (&'s fl_cpu_state, &'s cpu_topo))>> {
    let look = &skel.progs.look_at_cpus;
    look.test_run(ProgramInput::default())
        .context("cannot look at the CPUs")?;
    let bss = skel.maps.bss_data.as_ref().context("no .bss")?;
    let cpus = bss.cpu_states.iter().zip(&bss.cpu_topo).enumerate();
    Ok(cpus.filter(|(_, (_, topo))| topo.present != 0))
}

impl Scheduler<'_> {
    /// The answer to a request, or why there is none.
    pub(super) fn answer(&self, request: Request, collector: &RefCell<Collector>) -> Response {
        let answer = match request {
            Request::Metrics => self.metrics().map(|m| Response::Metrics(Box::new(m))),
            Request::Predictions => self.predictions().map(Response::Predictions),
            Request::Memory => self.memory().map(Response::Memory),
            Request::Locks => self.lock_profiles().map(Response::Locks),
            Request::Cpus => self.cpus().map(Response::Cpus),
            Request::Tasks => self
                .telemetry(collector)
                .map(|t| Response::Tasks(Box::new(t))),
        };
        answer.unwrap_or_else(|error| Response::Failed(format!("{error:#}")))
    }

    /// Of its maps and slots.
    pub fn memory(&self) -> Result<Memory> {
        use libbpf_rs::skel::Skel;
        let memory = Memory::of(self.skel.object()).context("cannot read the size of the maps")?;
        let bss = self.skel.maps.bss_data.as_ref().context("no .bss")?;
        let charged = bss.lock_quota.users.iter().copied();
        Ok(memory.with_lock_slots(bss.lock_slots.iter().map(|slot| slot.id), charged))
    }

    fn metrics(&self) -> Result<Metrics> {
        let bss = self.skel.maps.bss_data.as_ref().context("no .bss")?;
        let mut counts = [0; STATS.len()];
        for cpu in &bss.cpu_stats[..self.nr_cpus] {
            for (sum, count) in counts.iter_mut().zip(cpu.count) {
                *sum += count;
            }
        }
        Ok(Metrics::from_counts(&counts))
    }

    fn predictions(&self) -> Result<Predictions> {
        let of = |hist: u32| -> Result<Vec<Vec<u8>>> {
            let key = hist.to_ne_bytes();
            let values = self.skel.maps.hists.lookup_percpu(&key, MapFlags::ANY)?;
            values.context("the map of predictions is empty")
        };
        Ok(Predictions::from_maps(
            &of(intf::fl_hist_FL_HIST_WAIT)?,
            &of(intf::fl_hist_FL_HIST_BURST)?,
        ))
    }

    fn lock_profiles(&self) -> Result<LockProfiles> {
        let rodata = self.skel.maps.rodata_data.as_ref().context("no .rodata")?;
        ensure!(
            rodata.sees_locks,
            "the scheduler was started with --locks 0 and does not look for lock holders"
        );
        let map = &self.skel.maps.lock_profiles;
        // One may be forgotten for another between the look at keys and at values.
        let values = map
            .keys()
            .filter_map(|key| map.lookup(&key, MapFlags::ANY).transpose());
        let locks = values
            .filter_map(|value| value.map(|v| LockProfile::from_map(&v)).transpose())
            .collect::<Result<_, _>>()
            .context("cannot read the profiles of locks")?;
        Ok(LockProfiles {
            locks,
            seen: self.metrics()?.profile_new,
            capacity_differs: rodata.capacity_differs.into(),
        })
    }

    fn telemetry(&self, collector: &RefCell<Collector>) -> Result<Telemetry> {
        let maps = &self.skel.maps;
        let rodata = maps.rodata_data.as_ref().context("no .rodata")?;
        ensure!(
            rodata.reports_tasks,
            "the scheduler was started with --telemetry 0 and does not count for each task"
        );
        let iterator = self.skel.links.task_records.as_ref();
        let tasks = rings::tasks(iterator.context("no iterator over tasks")?)?;
        let metrics = self.metrics()?;
        let bss = maps.bss_data.as_ref().context("no .bss")?;
        // SAFETY: the struct is made of u64 alone, one for each line of the table.
        let lost: [u64; TASK_STATS.len()] = unsafe { std::mem::transmute_copy(&bss.exits_lost) };
        Ok(Telemetry {
            lost: metrics.exit_lost,
            lost_stats: TaskStats::from_values(&lost),
            inversions: metrics.inversion,
            inversion_off_ns: bss.inversion_off_ns,
            inversion_hist: histogram::pairs(bss.inversion_slot.iter().copied()),
            inversion_events_lost: metrics.inversion_lost,
            ..collector.borrow_mut().telemetry(tasks)
        })
    }

    fn cpus(&self) -> Result<Cpus> {
        let cpus = look_at_cpus(&self.skel)?.map(|(id, (state, topo))| Cpu {
            id: id as u64,
            capacity: topo.capacity,
            speed: state.speed,
            util: state.util,
            running: state.running,
            warm: state.warm,
            queued_ns: state.queued,
        });
        Ok(Cpus {
            cpus: cpus.collect(),
        })
    }
}
