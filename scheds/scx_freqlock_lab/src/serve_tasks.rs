// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler: takes tasks from the BPF side, decides, and sends them to their CPUs.

use crate::bpf::{BpfScheduler, DispatchedTask, QueuedTask};
use crate::choice::Chooser;
use crate::gather::{self, Gatherer, Queued};
use crate::opts::{Opts, SLICE};
use crate::order::Clock;
use crate::watch::Watch;
use anyhow::{Context, Result};
use freqlock::{page_file, topology};
use nix::sched::{sched_getaffinity, CpuSet};
use nix::unistd::Pid;
use std::collections::VecDeque;
use std::mem::MaybeUninit;

/// Its name in /sys.
const NAME: &str = "freqlock_lab";
/// Tasks that are placed before those that were may run.
const BATCH: usize = 512;

/// Schedules until it is told to end, or the kernel ends it.
pub fn serve(opts: &Opts) -> Result<()> {
    let layout = topology::host()?;
    let knobs = opts.all();
    let value = |name: &str| knobs.get(name).copied().unwrap_or_default();
    let slice = value(SLICE) * 1000;
    let scan = value("scan_cpus") as usize;
    let by = gather::decides_by(&layout, knobs);
    let mut chooser = Chooser::new(&by, opts.log.as_deref())?;
    let now = monotonic();
    let mut gatherer = Gatherer::new(layout, scan, slice, std::process::id(), now);
    // Before the other: with that, this process gets no more memory from the kernel.
    let mut watched = MaybeUninit::uninit();
    let watch = Watch::start(&mut watched)?;
    let mut object = MaybeUninit::uninit();
    let mut bpf = BpfScheduler::init(
        &mut object,
        None,
        0,
        false,
        false,
        false,
        false,
        slice,
        NAME,
    )
    .context("cannot load the scheduler")?;

    let mut clock = Clock::default();
    let mut placed = VecDeque::new();
    while !bpf.exited() {
        while placed.len() < BATCH {
            let Ok(Some(task)) = bpf.dequeue_task() else {
                break;
            };
            let cpu = place(&task, &mut chooser, &mut gatherer, &watch)?;
            let ran = task.stop_ts.saturating_sub(task.start_ts);
            let mut to = DispatchedTask::new(&task);
            to.cpu = cpu;
            to.slice_ns = slice;
            to.vtime = clock.place(task.vtime, ran, task.weight, slice);
            placed.push_back(to);
        }
        // With no room for more they come the next time.
        while placed
            .front()
            .is_some_and(|to| bpf.dispatch_task(to).is_ok())
        {
            placed.pop_front();
        }
        bpf.notify_complete(placed.len() as u64);
    }
    chooser.finish()?;
    bpf.shutdown_and_report()?;
    Ok(())
}

fn monotonic() -> u64 {
    page_file::monotonic().as_nanos() as u64
}

/// The CPU for it.
fn place(
    task: &QueuedTask,
    chooser: &mut Chooser,
    gatherer: &mut Gatherer,
    watch: &Watch,
) -> Result<i32> {
    // The BPF side sends a task that may not go where it is sent to where it was.
    let all = task.nr_cpus_allowed >= gatherer.present() as u64;
    let set = match all {
        true => CpuSet::new(),
        false => sched_getaffinity(Pid::from_raw(task.pid)).unwrap_or_default(),
    };
    let queued = Queued {
        pid: task.pid as u32,
        prev_cpu: task.cpu as usize,
        allowed: &|cpu| all || set.is_set(cpu).unwrap_or_default(),
    };
    let inputs = gatherer.inputs(&queued, watch, chooser, monotonic());
    let result = chooser.choose(&inputs)?;
    let cpu = if result.best < 0 {
        task.cpu
    } else {
        result.best
    };
    gatherer.sent(queued.pid, cpu as usize, &inputs);
    Ok(cpu)
}
