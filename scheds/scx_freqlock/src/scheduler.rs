// SPDX-License-Identifier: GPL-2.0-only
//! Loads the BPF object, attaches it, answers questions about it while it runs,
//! and tells why it ended.

use crate::adapt;
use crate::bpf_skel::{BpfSkel, BpfSkelBuilder};
use crate::contexts;
use crate::cpus::CpusPage;
use crate::displaced::Displaced;
use crate::hotplug::{self, Change, KnownCpus};
use crate::libbpf_log;
use crate::opts::{RunOpts, VERSION};
use crate::signals::Signals;
use crate::telemetry::{self, Rings, Watch};
use anyhow::{anyhow, bail, ensure, Context, Result};
use crossbeam::channel::{at, never, select, tick, Receiver};
use freqlock::calibrate::{self, Measured, COLD_KNOBS};
use freqlock::context::InForce;
use freqlock::control;
use freqlock::freq::{self, Machine, Source};
use freqlock::histogram;
use freqlock::intf;
use freqlock::knobs::Tunables;
use freqlock::locks::{Hooks, LockProfile, LockProfiles};
use freqlock::memory::Memory;
use freqlock::metrics::{Metrics, STATS};
use freqlock::predictions::Predictions;
use freqlock::raw::text;
use freqlock::report::ExitInfo;
use freqlock::stats::{self, Request, Response};
use freqlock::telemetry::{Collector, Cpu, Cpus, TaskStats, Telemetry, TASK_STATS};
use freqlock::topology::Layout;
use freqlock::{output, preflight, store_tunables, units};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject, ProgramInput};
use log::{info, warn};
use scx_stats::prelude::StatsServer;
use scx_utils::compat::SCX_OPS_ENQ_MIGRATION_DISABLED;
use scx_utils::{scx_ops_attach, scx_ops_load, scx_ops_open, uei_exited, SCX_ECODE_ACT_RESTART};
use std::cell::RefCell;
use std::ffi::CStr;
use std::io::Read;
use std::mem::MaybeUninit;
use std::time::Duration;

/// How often is looked whether the kernel ended it: there is nothing to wait on.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The smallest ring buffer.
const PAGE_BYTES: u32 = 4096;

/// Where the object lives; longer than the [`Scheduler`] on it.
pub type Storage = MaybeUninit<OpenObject>;

/// What was found out about this machine and stays true over a restart.
#[derive(Default)]
pub struct Learned {
    measured: Option<Measured>,
    /// Those to begin with, until there are settings.
    contexts: InForce,
    /// Knobs and contexts as they were set while it ran.
    settings: Option<control::Settings>,
}

impl Learned {
    /// Nothing yet, and contexts to begin with.
    pub fn new(contexts: InForce) -> Self {
        Self {
            contexts,
            ..Self::default()
        }
    }
}

pub struct Scheduler<'a> {
    skel: BpfSkel<'a>,
    link: Option<Link>,
    /// What is to be said of how it runs.
    about: [String; 5],
    nr_cpus: usize,
    /// Change over to cpuperf when it is seen to vary.
    upgrade: bool,
    cpus: KnownCpus,
}

impl<'a> Scheduler<'a> {
    /// Loads everything and attaches nothing.
    pub fn load(opts: &RunOpts, storage: &'a mut Storage, learned: &mut Learned) -> Result<Self> {
        let (mut cpus, layout) = KnownCpus::look(opts)?;
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

        let measured = learned.measured.clone().unwrap_or_default();
        let contexts = std::mem::take(&mut learned.contexts);
        let at_start = || {
            let mut tunables = opts.tunables();
            take_measured(&measured, opts, &mut tunables);
            // A request that nobody hears costs all the same.
            tunables.cpuperf *= u64::from(machine.schedutil);
            control::Settings::new(tunables, contexts).adaptive(&opts.adapt_modes)
        };
        let settings = learned.settings.get_or_insert_with(at_start);
        settings.interrupt_trial();
        let tunables = settings.tunables();
        let governed = tunables.cpuperf != 0;
        let mut speed = format!("CPU speed: {} ({})", choice.source.name(), choice.why);
        if choice.source == Source::Recency {
            speed += &ramp_text(&tunables);
        }

        scx_utils::try_set_rlimit_infinity();
        libbpf_log::install(opts.verbose, opts.verifier);
        let hook = choice.source == Source::Tracepoint;
        let locks = (tunables.locks != 0).then(Hooks::probe);
        let displaced = Displaced::probe()?;
        let mut skel = open_and_load(
            opts,
            settings,
            &layout,
            choice.source,
            locks.as_ref(),
            &displaced,
            storage,
        )?;
        let locks = match &locks {
            Some(hooks) => hooks.describe(),
            None => "lock holders: not looked for (--locks 0)".into(),
        };

        let data = skel.maps.data_data.as_mut().context("no .data")?;
        data.freq_source = choice.source as u32;
        if let Some(turbo) = &measured.turbo {
            let last = turbo.last().copied().unwrap_or_default();
            if last < intf::fl_consts_FL_FULL_SPEED {
                speed += &format!("; {last}/1024 with {} active cores", turbo.len());
            }
            let bss = skel.maps.bss_data.as_mut().context("no .bss")?;
            fill(&mut bss.turbo, turbo);
        }
        let state = if hook {
            "active"
        } else {
            "off, not the source"
        };
        let requests = match (governed, machine.schedutil) {
            (true, _) => "active",
            (false, true) => "off by --cpuperf",
            (false, false) => "off, no CPU is governed by schedutil",
        };
        let hooks = format!(
            "optional hooks: tracepoint power:cpu_frequency {state}; requests for speed {requests}; \
             what real-time tasks displace is queued anew {}",
            displaced.describe()
        );

        let counted = choice.source == Source::Aperf;
        cpus.fill_maps(&skel, &layout, machine.counters.ok().filter(|_| counted))?;

        Ok(Self {
            skel,
            link: None,
            about: [
                speed,
                cold_text(&tunables),
                hooks,
                locks,
                settings.contexts().to_string(),
            ],
            nr_cpus: layout.cpus.len(),
            upgrade: choice.upgrade,
            cpus,
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
        learned: &mut Learned,
        asked: &Receiver<control::Asked>,
        signals: &Signals,
    ) -> Result<ExitInfo> {
        let (answers, requests) = server.channels();
        let rings = Rings::new(&self.skel.maps)?;
        let collector = RefCell::new(Collector::default());
        let told = rings.read_into(&collector)?;
        let watch = Watch::start(&told)?;
        let look = tick(LOOK_EVERY);
        let mut page = CpusPage::none();
        let mut signalled = false;
        let mut reload = false;
        while !signalled && !reload && !self.exited() {
            if let Some(settings) = &learned.settings {
                page.follow(&mut self.skel, settings.tunables().cpus_ms);
            }
            let next = learned.settings.as_ref().and_then(|s| s.next_trial());
            let trial = next.map_or_else(never, at);
            select! {
                recv(requests) -> request => {
                    telemetry::take_in(&told)?;
                    let answer = self.answer(request?, &collector);
                    answers.send(answer).context("the statistics server is gone")?;
                }
                recv(watch.ready) -> _ => telemetry::take_in(&told)?,
                recv(asked) -> asked => {
                    let asked = asked.context("nobody listens for changes of knobs")?;
                    // Who asked may be gone.
                    drop(asked.answer.send(self.answer_control(&asked, learned)?));
                }
                recv(signals.reload) -> _ => self.reload(learned)?,
                recv(signals.end) -> _ => signalled = true,
                recv(look) -> _ => {
                    telemetry::take_in(&told)?;
                    match self.cpus.follow(&mut self.skel)? {
                        Change::None => {}
                        Change::Told => page.renew(&mut self.skel),
                        Change::Reload => reload = true,
                    }
                }
                recv(page.due) -> _ => page.publish(&mut self.skel),
                recv(trial) -> _ => {
                    let settings = learned.settings.as_mut().context("no settings")?;
                    adapt::step(&mut self.skel, settings)?;
                }
            }
            self.upgrade_source();
        }
        drop(self.link.take());
        if reload {
            return Ok(ExitInfo {
                reason: "they differ in capacity now".into(),
                restart: true,
                ..ExitInfo::default()
            });
        }
        Ok(self.exit_info(signalled))
    }

    /// Why the kernel ended it, if it did.
    pub fn exit_info(&self, signalled: bool) -> ExitInfo {
        let Some(data) = self.skel.maps.data_data.as_ref() else {
            return ExitInfo::default();
        };
        ExitInfo {
            kind: data.uei.kind as u64,
            reason: text(&data.uei.reason).raw().trim().into(),
            message: text(&data.uei.msg).raw().trim().into(),
            restart: data.uei.exit_code as u64 & *SCX_ECODE_ACT_RESTART != 0,
            signalled,
        }
    }

    /// Prints the kernel's dump of its state, if it made one.
    pub fn print_dump(&self) {
        // Not report(), which panics where it cannot write.
        let Ok(dump) = scx_utils::UEI_DUMP_PTR_MUTEX.lock() else {
            return;
        };
        if !dump.ptr.is_null() {
            // SAFETY: where the map begins that the kernel has filled with a string, which
            // lives as long as the skeleton.
            let text = unsafe { CStr::from_ptr(dump.ptr.cast()) }.to_string_lossy();
            match text.trim() {
                "" => output::say("the kernel made no dump of its state"),
                text => output::say(format_args!("the kernel's dump of its state:\n{text}\n")),
            }
        }
    }

    pub fn memory(&self) -> Result<Memory> {
        use libbpf_rs::skel::Skel;
        let memory = Memory::of(self.skel.object()).context("cannot read the size of the maps")?;
        let bss = self.skel.maps.bss_data.as_ref().context("no .bss")?;
        let charged = bss.lock_quota.users.iter().copied();
        Ok(memory.with_lock_slots(bss.lock_slots.iter().map(|slot| slot.id), charged))
    }

    fn exited(&self) -> bool {
        uei_exited!(&self.skel, uei)
    }

    fn answer(&self, request: Request, collector: &RefCell<Collector>) -> Response {
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

    /// Changes knobs and contexts, or tells of them.
    fn answer_control(
        &mut self,
        asked: &control::Asked,
        learned: &mut Learned,
    ) -> Result<control::Answer> {
        let settings = learned.settings.as_mut().context("no settings")?;
        let look = |pid| contexts::look(&mut self.skel, pid);
        let mut answer = settings.answer(&asked.request, asked.by, units::now(), look);
        match &mut answer {
            control::Answer::Status(running) => {
                running.version.clone_from(&VERSION);
                // The last line, of contexts, is as it was at start.
                running.about = self.about[..self.about.len() - 1].to_vec();
            }
            control::Answer::Changed(changes) => {
                self.store(settings)?;
                for change in changes.iter() {
                    info!("{change}");
                }
            }
            control::Answer::Reloaded(contexts) => {
                self.store(settings)?;
                info!("{contexts}");
            }
            _ => {}
        }
        Ok(answer)
    }

    /// Reads the file of contexts again, as a signal asks for.
    fn reload(&mut self, learned: &mut Learned) -> Result<()> {
        let settings = learned.settings.as_mut().context("no settings")?;
        match settings.reload() {
            Ok(contexts) => {
                self.store(settings)?;
                info!("{contexts}");
            }
            Err(error) => warn!("contexts stay as they are: {error:#}"),
        }
        Ok(())
    }

    /// Knobs are stored one after the other: a decision that the kernel takes within these
    /// nanoseconds may see some of several that change at once.
    fn store(&mut self, settings: &control::Settings) -> Result<()> {
        let bss = self.skel.maps.bss_data.as_mut().context("no .bss")?;
        store_tunables!(settings.tunables(), bss.tunables);
        contexts::store(bss, settings.contexts(), settings.tunables());
        Ok(())
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
            rodata.tells_tasks,
            "the scheduler was started with --telemetry 0 and does not count for each task"
        );
        let iterator = self.skel.links.task_records.as_ref();
        let tasks = telemetry::tasks(iterator.context("no iterator over tasks")?)?;
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
            episodes_lost: metrics.episode_lost,
            ..collector.borrow_mut().telemetry(tasks)
        })
    }

    fn cpus(&self) -> Result<Cpus> {
        let maps = &self.skel.maps;
        let look = &self.skel.progs.look_at_cpus;
        look.test_run(ProgramInput::default())
            .context("cannot look at the CPUs")?;
        let bss = maps.bss_data.as_ref().context("no .bss")?;
        let cpus = bss.cpu_states.iter().zip(&bss.cpu_topo).enumerate();
        let present = cpus.filter(|(_, (_, topo))| topo.present != 0);
        let cpus = present.map(|(id, (state, topo))| Cpu {
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

/// Knobs that were not given are as was measured.
fn take_measured(measured: &Measured, opts: &RunOpts, tunables: &mut Tunables) {
    let ramp = measured
        .ramp
        .map(|ramp| [("speed_floor", ramp.floor), ("ramp_us", ramp.us)]);
    let cold = COLD_KNOBS.iter().zip(measured.moves);
    let cold = cold.filter_map(|(knob, ns)| Some(((*knob)?, ns?)));
    for (knob, value) in ramp.into_iter().flatten().chain(cold) {
        if let (false, Some(field)) = (opts.knobs.has(knob), tunables.knob_mut(knob)) {
            *field = value;
        }
    }
}

fn ramp_text(tunables: &Tunables) -> String {
    let full = intf::fl_consts_FL_FULL_SPEED;
    match tunables.speed_floor {
        floor if floor >= u64::from(full) => "; speeds are taken not to change".into(),
        floor => {
            let ms = tunables.ramp_us as f64 / 1e3;
            format!("; {floor}/{full} after idling, {full} in {ms:.1} ms")
        }
    }
}

fn cold_text(tunables: &Tunables) -> String {
    let known = |knob: &'static str| match tunables.knob(knob) {
        None | Some(0) => None,
        Some(ns) => Some(format!("{knob} {ns}")),
    };
    let cold: Vec<String> = COLD_KNOBS.into_iter().flatten().filter_map(known).collect();
    match cold.as_slice() {
        [] => "cost of cold caches: not known, moves cost what the knobs move_*_ns say".into(),
        cold => format!("cost of cold caches: {}", cold.join(", ")),
    }
}

fn open_and_load<'a>(
    opts: &RunOpts,
    settings: &control::Settings,
    layout: &Layout,
    source: Source,
    locks: Option<&Hooks>,
    displaced: &Displaced,
    storage: &'a mut Storage,
) -> Result<BpfSkel<'a>> {
    let builder = BpfSkelBuilder::default();
    let libbpf = opts.libbpf.clone().into_bpf_open_opts();
    let libbpf = Some(opts.verifier.open_opts(libbpf));
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

    let ops = skel.struct_ops.freqlock_ops_mut();
    ops.exit_dump_len = dump_bytes(opts, layout.cpus.len());
    // CPUs may come and go between here and the moment at which it is enabled.
    ops.hotplug_seq = 0;
    // Otherwise the kernel queues these by itself, ahead of all others. 0 where it has no such
    // flag. Exiting tasks stay with the kernel: they soon are gone, and their parents wait.
    ops.flags |= *SCX_OPS_ENQ_MIGRATION_DISABLED;
    displaced.choose(&mut skel);
    skel.progs
        .freq_transition
        .set_autoload(source == Source::Tracepoint);
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
    rodata.capacity_differs = layout.capacity_differs();
    rodata.reads_counters = source == Source::Aperf;
    rodata.displaces = matches!(displaced, Displaced::Release);
    rodata.sees_locks = locks.is_some();
    rodata.lock_key = random_key()?;
    rodata.tells_tasks = settings.tunables().telemetry != 0;
    rodata.adapts = settings.tunables().adapt != 0;
    if let Some(comm) = &opts.test_drop {
        warn!(
            "TEST: tasks called {comm} never run, until the kernel's watchdog ends the scheduler"
        );
        rodata.drops_tasks = true;
        for (to, from) in rodata.dropped_comm.iter_mut().zip(comm.bytes()) {
            *to = from as _;
        }
    }
    let bss = skel.maps.bss_data.as_mut().context("no .bss")?;
    hotplug::tell(bss, layout);
    store_tunables!(settings.tunables(), bss.tunables);
    contexts::store(bss, settings.contexts(), settings.tunables());
    bss.test_speed.fill(intf::fl_consts_FL_FULL_SPEED);
    for (cpu, speed) in &opts.test_speed {
        bss.test_speed[*cpu] = *speed;
    }
    if locks.is_none() {
        skel.maps.lock_profiles.set_max_entries(1)?;
    }
    if settings.tunables().telemetry == 0 {
        skel.maps.exits.set_max_entries(PAGE_BYTES)?;
        skel.maps.episodes.set_max_entries(PAGE_BYTES)?;
    }
    if settings.tunables().adapt == 0 {
        skel.maps.done_by_policy.set_max_entries(1)?;
    }
    skel.maps.cpu_orders.set_max_entries(nr_cpus)?;
    skel.maps.ledgers.set_max_entries(nr_cpus)?;
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

/// What was asked for, or else what has room for a trace of each CPU's task, and the
/// kernel's own 32 KiB at least.
fn dump_bytes(opts: &RunOpts, nr_cpus: usize) -> u32 {
    match opts.exit_dump_len {
        0 => (nr_cpus as u32 * (2 << 10)).max(32 << 10),
        asked => asked,
    }
}

/// The last value stands for all that follow.
fn fill(all: &mut [u32], values: &[u32]) {
    let Some(last) = values.last() else { return };
    let (known, rest) = all.split_at_mut(values.len().min(all.len()));
    known.copy_from_slice(&values[..known.len()]);
    rest.fill(*last);
}

/// What nobody can guess.
fn random_key() -> Result<u64> {
    let mut bytes = [0; 8];
    let file = std::fs::File::open("/dev/urandom");
    file.and_then(|mut file| file.read_exact(&mut bytes))
        .context("cannot read /dev/urandom")?;
    Ok(u64::from_ne_bytes(bytes))
}
