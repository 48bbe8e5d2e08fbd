// SPDX-License-Identifier: GPL-2.0-only
//! What watch.bpf.c sees of CPUs and tasks, as it is now.

mod abi {
    //! Bindings of watch.h.
    #![allow(
        non_camel_case_types,
        non_upper_case_globals,
        non_snake_case,
        dead_code
    )]
    #![allow(clippy::all, clippy::undocumented_unsafe_blocks)]
    include!(concat!(env!("OUT_DIR"), "/watch.rs"));
}
mod skel {
    #![allow(clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
    include!(concat!(env!("OUT_DIR"), "/watch_skel.rs"));
}

use anyhow::{Context, Result};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::OpenObject;
use std::mem::MaybeUninit;

/// A CPU; times in ns of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    /// Who runs there; 0 is nobody.
    pub pid: u32,
    /// Whether that is a task of a higher class.
    pub taken: bool,
    /// When it began to run, or the CPU to idle; 0 is not known yet.
    pub since: u64,
    /// For how long tasks ran there before that, in all.
    pub busy: u64,
    /// Who ran last.
    pub last: u32,
}

/// A task; all 0 if nothing has been seen of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Task {
    /// Whether it is new.
    pub fork: bool,
    /// Whether a task woke it up last, or forked it.
    pub from_task: bool,
    /// On which CPU.
    pub waker: u32,
    /// How many of its bursts ended.
    pub bursts: u32,
    /// For how long it ran since it was woken up, until it left its CPU last, ns.
    pub ran: u64,
    /// Its last burst, ns.
    pub burst: u64,
    /// Its last sleep, ns; 0 is none.
    pub slept: u64,
    /// When it got a CPU last.
    pub began_at: u64,
}

/// The programs, as long as it is there.
pub struct Watch<'obj> {
    skel: skel::WatchSkel<'obj>,
}

impl<'obj> Watch<'obj> {
    /// Begins to watch.
    pub fn start(object: &'obj mut MaybeUninit<OpenObject>) -> Result<Self> {
        let cannot = "cannot watch CPUs and tasks";
        let open = skel::WatchSkelBuilder::default()
            .open(object)
            .context(cannot)?;
        let mut skel = open.load().context(cannot)?;
        skel.attach().context(cannot)?;
        Ok(Self { skel })
    }

    /// The CPU of this id.
    pub fn cpu(&self, id: usize) -> Cpu {
        let all = self.skel.maps.bss_data.as_deref().map(|bss| &bss.cpus);
        let Some(cpu) = all.and_then(|cpus| cpus.get(id)) else {
            return Cpu::default();
        };
        // SAFETY: it is a struct of integers in mapped memory, which programs write meanwhile.
        let cpu = unsafe { std::ptr::read_volatile(cpu) };
        Cpu {
            pid: cpu.pid,
            taken: cpu.taken != 0,
            since: cpu.since,
            busy: cpu.busy,
            last: cpu.last,
        }
    }

    /// The task of this id.
    pub fn task(&self, pid: u32) -> Task {
        let all = self.skel.maps.bss_data.as_deref().map(|bss| &bss.tasks);
        let id = pid as usize & (abi::WATCH_TASKS as usize - 1);
        let Some(task) = all.and_then(|tasks| tasks.get(id)) else {
            return Task::default();
        };
        // SAFETY: as above.
        let task = unsafe { std::ptr::read_volatile(task) };
        if task.pid != pid {
            return Task::default();
        }
        Task {
            fork: task.flags & abi::watch_task_flags_WATCH_FORK != 0,
            from_task: task.flags & abi::watch_task_flags_WATCH_FROM_TASK != 0,
            waker: task.waker,
            bursts: task.bursts,
            ran: task.ran,
            burst: task.burst,
            slept: task.slept,
            began_at: task.began_at,
        }
    }
}
