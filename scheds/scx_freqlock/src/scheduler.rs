// SPDX-License-Identifier: GPL-2.0-only
//! Loads the BPF object, attaches it, answers questions about it while it runs,
//! and tells why it ended.

use crate::bpf_skel::{BpfSkel, BpfSkelBuilder};
use crate::libbpf_log;
use crate::opts::RunOpts;
use anyhow::{anyhow, bail, ensure, Context, Result};
use crossbeam::channel::{select, Receiver};
use freqlock::calibrate::{self, Measured};
use freqlock::freq::{self, Counters, Events, Machine, Source};
use freqlock::intf;
use freqlock::locks::Hooks;
use freqlock::memory::Memory;
use freqlock::metrics::{Metrics, STATS};
use freqlock::predictions::Predictions;
use freqlock::report::ExitInfo;
use freqlock::stats::{self, Request, Response};
use freqlock::topology::{self, Layout};
use freqlock::{preflight, store_tunables};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject};
use log::{debug, info};
use scx_stats::prelude::StatsServer;
use scx_utils::{scx_ops_attach, scx_ops_load, scx_ops_open, uei_exited, uei_read, UserExitInfo};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// How often is looked whether the kernel ended it: there is nothing to wait on.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Where the object lives; longer than the [`Scheduler`] on it.
pub type Storage = MaybeUninit<OpenObject>;

/// What was found out about this machine and stays true over a restart.
#[derive(Default)]
pub struct Learned {
    measured: Option<Measured>,
}

pub struct Scheduler<'a> {
    skel: BpfSkel<'a>,
    link: Option<Link>,
    /// What is to be said of how it runs.
    about: [String; 3],
    nr_cpus: usize,
    /// Change over to cpuperf when it is seen to vary.
    upgrade: bool,
    /// The BPF side reads them as long as they are open.
    _counters: Option<Counters>,
}

impl<'a> Scheduler<'a> {
    /// Loads everything and attaches nothing.
    pub fn load(opts: &RunOpts, storage: &'a mut Storage, learned: &mut Learned) -> Result<Self> {
        let mut layout = topology::host()?;
        for (cpu, capacity) in &opts.test_capacity {
            let cpu = layout
                .cpus
                .get_mut(*cpu)
                .context("--test-capacity names a CPU that is not here")?;
            cpu.capacity = *capacity;
        }
        let present: Vec<usize> = layout.present().collect();
        if let Some((cpu, _)) = opts
            .test_speed
            .iter()
            .find(|(cpu, _)| !present.contains(cpu))
        {
            bail!("--test-speed names CPU {cpu}, which is not online here");
        }
        let wanted = opts.freq_source();
        let machine = Machine::probe(wanted, &present);
        let choice = freq::choose(wanted, &machine)?;
        if !opts.no_calibrate && learned.measured.is_none() {
            let floor = choice.source == Source::Recency && !opts.knobs.has("speed_floor");
            learned.measured = Some(calibrate::measure(&layout, floor));
        }

        scx_utils::try_set_rlimit_infinity();
        libbpf_log::install(opts.verbose);
        let hook = choice.source == Source::Tracepoint;
        let locks = (opts.tunables().locks != 0).then(Hooks::probe);
        let mut skel = open_and_load(opts, &layout, hook, locks.as_ref(), storage)?;
        let locks = match &locks {
            Some(hooks) => hooks.describe(),
            None => "lock holders: not looked for (--locks 1)".into(),
        };

        let measured = learned.measured.clone().unwrap_or_default();
        let mut speed = format!("CPU speed: {} ({})", choice.source.name(), choice.why);
        let data = skel.maps.data_data.as_mut().context("no .data")?;
        data.freq_source = choice.source as u32;
        if choice.source == Source::Recency {
            if let Some(ramp) = measured.ramp {
                data.tunables.speed_floor = ramp.floor;
                if !opts.knobs.has("ramp_us") {
                    data.tunables.ramp_us = ramp.us;
                }
            }
            let full = intf::fl_consts_FL_FULL_SPEED;
            match data.tunables.speed_floor {
                floor if floor >= u64::from(full) => speed += "; speeds are taken not to change",
                floor => {
                    let ms = data.tunables.ramp_us as f64 / 1e3;
                    speed += &format!("; {floor}/{full} after idling, {full} in {ms:.1} ms");
                }
            }
        }
        if let Some(turbo) = measured.turbo {
            let last = turbo.last().copied().unwrap_or_default();
            if last < intf::fl_consts_FL_FULL_SPEED {
                speed += &format!("; {last}/1024 with {} active cores", turbo.len());
            }
            let bss = skel.maps.bss_data.as_mut().context("no .bss")?;
            fill(&mut bss.turbo, &turbo);
        }
        let state = if hook {
            "active"
        } else {
            "off, not the source"
        };
        // A request that nobody hears costs all the same.
        let governed = machine.schedutil && data.tunables.cpuperf != 0;
        data.tunables.cpuperf = u64::from(governed);
        let requests = match (governed, machine.schedutil) {
            (true, _) => "active",
            (false, true) => "off by --cpuperf",
            (false, false) => "off, no CPU is governed by schedutil",
        };
        let hooks = format!(
            "optional hooks: tracepoint power:cpu_frequency {state}; requests for speed {requests}"
        );

        let counters = match (choice.source, machine.counters) {
            (Source::Aperf, Ok(counters)) => {
                insert(&skel.maps.aperf_events, &counters.aperf)?;
                insert(&skel.maps.mperf_events, &counters.mperf)?;
                Some(counters)
            }
            _ => None,
        };
        for cpu in &present {
            let order = topology::order_bytes(&layout.order(*cpu));
            skel.maps
                .cpu_orders
                .update(&key(*cpu), &order, MapFlags::ANY)
                .context("cannot fill cpu_orders")?;
        }

        Ok(Self {
            skel,
            link: None,
            about: [speed, hooks, locks],
            nr_cpus: layout.cpus.len(),
            upgrade: choice.upgrade,
            _counters: counters,
        })
    }

    /// Makes the kernel use it.
    pub fn attach(&mut self) -> Result<()> {
        for line in &self.about {
            info!("{line}");
        }
        self.link = Some(scx_ops_attach!(self.skel, freqlock_ops)?);
        if (self.skel.maps.bss_data.as_ref()).is_some_and(|bss| bss.spin_blind) {
            info!("spinners: found by sched_yield only, for this kernel does not tell what an interrupt interrupted");
        }
        Ok(())
    }

    /// Serves until it ends or is told to, and detaches.
    pub fn run(
        &mut self,
        server: &StatsServer<Request, Response>,
        shutdown: &Receiver<()>,
    ) -> Result<ExitInfo> {
        let (answers, requests) = server.channels();
        let mut signalled = false;
        while !signalled && !self.exited() {
            select! {
                recv(requests) -> request => {
                    answers.send(self.answer(request?)).context("the statistics server is gone")?;
                }
                recv(shutdown) -> _ => signalled = true,
                default(LOOK_EVERY) => {}
            }
            self.upgrade_source();
        }
        drop(self.link.take());
        Ok(self.exit_info(signalled))
    }

    /// Why the kernel ended it, if it did.
    pub fn exit_info(&self, signalled: bool) -> ExitInfo {
        let Some(data) = self.skel.maps.data_data.as_ref() else {
            return ExitInfo::default();
        };
        ExitInfo {
            kind: data.uei.kind as u64,
            reason: text(&data.uei.reason),
            message: text(&data.uei.msg),
            restart: self.uei().should_restart(),
            signalled,
        }
    }

    /// Prints the kernel's dump of its state, if it made one.
    pub fn print_dump(&self) {
        // The error that it returns says what exit_info() says.
        if let Err(error) = self.uei().report() {
            debug!("{error:#}");
        }
    }

    pub fn memory(&self) -> Result<Memory> {
        use libbpf_rs::skel::Skel;
        Memory::of(self.skel.object()).context("cannot read the size of the maps")
    }

    fn uei(&self) -> UserExitInfo {
        uei_read!(&self.skel, uei)
    }

    fn exited(&self) -> bool {
        uei_exited!(&self.skel, uei)
    }

    fn answer(&self, request: Request) -> Response {
        let answer = match request {
            Request::Metrics => self.metrics().map(|m| Response::Metrics(Box::new(m))),
            Request::Predictions => self.predictions().map(Response::Predictions),
            Request::Memory => self.memory().map(Response::Memory),
        };
        answer.unwrap_or_else(|error| Response::Failed(format!("{error:#}")))
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

    fn upgrade_source(&mut self) {
        let maps = &mut self.skel.maps;
        let varies = maps.bss_data.as_ref().is_some_and(|bss| bss.cpuperf_varies);
        if let (true, true, Some(data)) = (self.upgrade, varies, maps.data_data.as_mut()) {
            data.freq_source = Source::Cpuperf as u32;
            self.upgrade = false;
            info!("CPU speed: cpuperf from now on, since it was seen to vary");
        }
    }
}

fn open_and_load<'a>(
    opts: &RunOpts,
    layout: &Layout,
    hook: bool,
    locks: Option<&Hooks>,
    storage: &'a mut Storage,
) -> Result<BpfSkel<'a>> {
    let builder = BpfSkelBuilder::default();
    let libbpf = opts.libbpf.clone().into_bpf_open_opts();
    let mut skel = scx_ops_open!(builder, storage, freqlock_ops, libbpf)?;
    let wants_kconfig = {
        use libbpf_rs::skel::OpenSkel;
        let mut maps = skel.open_object().maps();
        maps.any(|map| map.name().to_string_lossy().ends_with(".kconfig"))
    };
    match &opts.libbpf.kconfig {
        // libbpf's options would leave out a file that cannot be read.
        Some(path) => drop(std::fs::File::open(path).with_context(|| format!("--kconfig {path}"))?),
        None if wants_kconfig => preflight::kconfig()?,
        None => {}
    }

    skel.struct_ops.freqlock_ops_mut().exit_dump_len = opts.exit_dump_len;
    skel.progs.freq_transition.set_autoload(hook);
    if let Some(hooks) = locks {
        let progs = &mut skel.progs;
        progs.lock_futex_wait.set_autoload(hooks.futex);
        progs.lock_futex_waited.set_autoload(hooks.futex);
        progs.lock_futex_pi.set_autoload(hooks.futex_pi);
        progs.lock_futex_pi_done.set_autoload(hooks.futex_pi);
        progs.lock_kernel_wait.set_autoload(hooks.kernel);
        progs.lock_kernel_waited.set_autoload(hooks.kernel);
    }

    let nr_cpus = layout.cpus.len() as u32;
    let rodata = skel.maps.rodata_data.as_mut().context("no .rodata")?;
    ensure!(
        rodata.abi_version == intf::fl_consts_FL_ABI_VERSION,
        "the BPF object speaks version {} of its interface and the agent {}: build both again",
        rodata.abi_version,
        intf::fl_consts_FL_ABI_VERSION
    );
    rodata.nr_cpus = nr_cpus;
    rodata.nr_present = layout.present().count() as u32;
    rodata.smt_present = layout.smt;
    rodata.capacity_differs = layout.capacity_differs();
    rodata.sees_locks = locks.is_some();
    for (to, from) in rodata.cpu_topo.iter_mut().zip(&layout.cpus) {
        to.core = from.core;
        to.llc = from.llc;
        to.node = from.node;
        to.capacity = from.capacity;
        to.sibling = from.sibling;
        to.present = from.present;
    }
    let data = skel.maps.data_data.as_mut().context("no .data")?;
    store_tunables!(opts.tunables(), data.tunables);
    let bss = skel.maps.bss_data.as_mut().context("no .bss")?;
    bss.test_speed.fill(intf::fl_consts_FL_FULL_SPEED);
    for (cpu, speed) in &opts.test_speed {
        bss.test_speed[*cpu] = *speed;
    }
    skel.maps.cpu_orders.set_max_entries(nr_cpus)?;
    skel.maps.aperf_events.set_max_entries(nr_cpus)?;
    skel.maps.mperf_events.set_max_entries(nr_cpus)?;

    scx_ops_load!(skel, freqlock_ops, uei).map_err(|error| {
        let why = libbpf_log::failure().unwrap_or_else(|| error.root_cause().to_string());
        anyhow!("the BPF programs do not load on this kernel: {why} (--verbose shows more)")
    })
}

/// A server on the socket that scx_stats clients know.
pub fn stats_server() -> Result<StatsServer<Request, Response>> {
    StatsServer::new(stats::server_data())
        .launch()
        .context("cannot offer statistics")
}

/// The last value stands for all that follow.
fn fill(all: &mut [u32], values: &[u32]) {
    let Some(last) = values.last() else { return };
    let (known, rest) = all.split_at_mut(values.len().min(all.len()));
    known.copy_from_slice(&values[..known.len()]);
    rest.fill(*last);
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

/// A string of C, as far as it goes.
fn text(chars: &[i8]) -> String {
    let bytes: Vec<u8> = chars
        .iter()
        .map(|c| *c as u8)
        .take_while(|c| *c != 0)
        .collect();
    String::from_utf8_lossy(&bytes).trim().into()
}
