// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock observe`: runs a command and says where its tasks ran and how
//! long they waited, under whatever scheduler is in charge. The figures are
//! computed in the library (freqlock::observe) from the events of
//! bpf/observe.bpf.c.

use std::cell::RefCell;
use std::ffi::OsString;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::process::Child;

use anyhow::{bail, Context, Result};
use freqlock::locks::Hooks;
use freqlock::observe::{BadEvent, Event, Mutexes, Observer, Report};
use freqlock::preflight;
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{ProgramInput, RingBuffer, RingBufferBuilder};
use nix::sched::{sched_getaffinity, sched_setaffinity, CpuSet};
use nix::unistd;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::process::{pidfd_open, Pid, PidfdFlags};

use crate::child::{self, ReportOpts};
use crate::libbpf_log::{self, VerifierOpts};

#[allow(clippy::all, clippy::unwrap_used)]
#[allow(clippy::undocumented_unsafe_blocks)]
mod skel {
    //! The skeleton of bpf/observe.bpf.c.
    include!(concat!(env!("OUT_DIR"), "/observe_skel.rs"));
}

#[derive(Debug, clap::Args)]
pub struct ObserveOpts {
    #[command(flatten)]
    report: ReportOpts,

    #[command(flatten)]
    verifier: VerifierOpts,

    /// The command to observe, with its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Observes the command and returns its exit status.
pub fn run(opts: &ObserveOpts) -> Result<u8> {
    preflight::bpf()?;
    let online = child::online_cpus()?;
    let ids = online.iter().max().map_or(0, |max| max + 1);

    libbpf_log::install(false, opts.verifier);
    let mut object = MaybeUninit::uninit();
    let mut open = skel::ObserveSkelBuilder::default()
        .open_opts(opts.verifier.open_opts(None), &mut object)
        .context("cannot open the observer's BPF object")?;
    let rodata = open
        .maps
        .rodata_data
        .as_deref_mut()
        .context("the observer has no .rodata")?;
    rodata.nr_mask_words = u32::try_from(ids.div_ceil(64))?;
    let sees_mutexes = Hooks::probe().futex;
    open.progs.observe_lock_wait.set_autoload(sees_mutexes);
    let mut skel = open.load().context("cannot load the observer")?;
    skel.attach()
        .context("cannot attach the observer to the scheduler's tracepoints")?;

    let observer = RefCell::new(Observer::new(&online));
    let unreadable: RefCell<Option<BadEvent>> = RefCell::new(None);
    let mut ring = RingBufferBuilder::new();
    ring.add(&skel.maps.events, |bytes| {
        match Event::decode(bytes) {
            Ok(event) => observer.borrow_mut().feed(event),
            Err(error) => *unreadable.borrow_mut() = Some(error),
        }
        0
    })?;
    let ring = ring.build().context("cannot read the observer's events")?;

    visit(&online)?;
    skel.progs
        .observe_start
        .test_run(ProgramInput::default())
        .context("cannot start the observation")?;
    let mut child = child::spawn(&opts.command)?;
    drain_until_exit(&ring, &child)?;
    let status = child.wait().context("cannot wait for the command")?;

    // Detached before the last reading, so that the ring comes to an end.
    skel.links = skel::ObserveLinks::default();
    ring.consume()
        .context("cannot read the observer's events")?;
    drop(ring);
    if let Some(error) = unreadable.into_inner() {
        bail!(error);
    }
    let bss = skel.maps.bss_data.as_deref();
    let bss = bss.context("the observer has no .bss")?;
    let changed = child::online_cpus()? != online;
    let mut report = Report::new(observer.into_inner(), bss.dropped, changed);
    report.mutexes = sees_mutexes.then_some(Mutexes {
        waits: bss.lock_waits,
        holders_preempted: bss.holders_preempted,
    });
    opts.report.write(&report)?;
    Ok(child::exit_code(status))
}

/// Reads events when the ring is half full, until the command has ended.
fn drain_until_exit(ring: &RingBuffer, child: &Child) -> Result<()> {
    let exit = pidfd_open(Pid::from_child(child), PidfdFlags::empty())
        .context("cannot watch the command")?;
    // SAFETY: the descriptor belongs to `ring`, which outlives this borrow.
    let events = unsafe { BorrowedFd::borrow_raw(ring.epoll_fd()) };
    loop {
        let mut ready = [
            PollFd::new(&events, PollFlags::IN),
            PollFd::new(&exit, PollFlags::IN),
        ];
        match poll(&mut ready, None) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other.context("cannot wait for events")?,
        };
        if ready[0].revents().contains(PollFlags::IN) {
            // Polled rather than consumed: that also takes the readiness away.
            ring.poll(std::time::Duration::ZERO)
                .context("cannot read the observer's events")?;
        }
        if ready[1].revents().contains(PollFlags::IN) {
            return Ok(());
        }
    }
}

/// Runs once on every CPU: a CPU that is idle from before the observation to
/// its end would have no switch that shows it. One that this process may not
/// use is left out.
fn visit(cpus: &[usize]) -> Result<()> {
    let this = unistd::Pid::from_raw(0);
    let own = sched_getaffinity(this).context("cannot read the own affinity")?;
    for &cpu in cpus {
        let mut one = CpuSet::new();
        one.set(cpu)?;
        if sched_setaffinity(this, &one).is_err() {
            log::debug!("CPU {cpu} is not allowed to the observer");
        }
    }
    sched_setaffinity(this, &own).context("cannot restore the own affinity")
}
