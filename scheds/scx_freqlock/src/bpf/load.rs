// SPDX-License-Identifier: GPL-2.0-only
//! Loads the BPF object for this machine, and attaches it.

use super::displaced::Displaced;
use super::hotplug::{self, KnownCpus};
use super::rules;
use super::skel::{BpfSkel, BpfSkelBuilder};
use super::tickless;
use super::user_policies::{Source as PolicySource, UserPolicies};
use crate::libbpf_log;
use crate::opts::RunOpts;
use anyhow::{anyhow, bail, ensure, Context, Result};
use freqlock::apart;
use freqlock::calibrate::{self, Measured, COLD_KNOBS};
use freqlock::context::InForce;
use freqlock::control;
use freqlock::freq::{self, Machine, Source};
use freqlock::intf;
use freqlock::knobs::Tunables;
use freqlock::locks::Hooks;
use freqlock::topology::Layout;
use freqlock::{preflight, store_tunables};
use libbpf_rs::{Link, OpenObject};
use log::{info, warn};
use scx_utils::compat::{struct_has_field, SCX_OPS_ENQ_MIGRATION_DISABLED, SCX_OPS_SWITCH_PARTIAL};
use scx_utils::{scx_ops_attach, scx_ops_load, scx_ops_open};
use std::io::Read;
use std::mem::MaybeUninit;

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
    pub(super) settings: Option<control::Settings>,
    /// Policies by users that are to be loaded again.
    pub(super) policies: Vec<PolicySource>,
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
    pub(super) skel: BpfSkel<'a>,
    pub(super) link: Option<Link>,
    /// What is to be said of how it runs.
    pub(super) about: Vec<String>,
    pub(super) nr_cpus: usize,
    /// Change over to cpuperf when it is seen to vary.
    pub(super) upgrade: bool,
    pub(super) cpus: KnownCpus,
    pub(super) policies: UserPolicies,
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
            let floor =
                choice.source.has(intf::fl_source_flags_MODELLED) && !opts.knobs.has("speed_floor");
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
        if choice.source.has(intf::fl_source_flags_MODELLED) {
            speed += &ramp_text(&tunables);
        }

        scx_utils::try_set_rlimit_infinity();
        libbpf_log::install(opts.verbose, opts.verifier);
        let hook = choice.source.has(intf::fl_source_flags_HOOKED);
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

        let counted = choice.source.has(intf::fl_source_flags_COUNTERS);
        cpus.fill_maps(&skel, &layout, machine.counters.ok().filter(|_| counted))?;
        let mut about = vec![speed, cold_text(&tunables), hooks, locks];
        if tunables.pi_ipc != 0 {
            about.push("tasks that answer others: known by their wake-ups (--pi-ipc)".into());
        }
        if tunables.partial != 0 {
            about.push(partial_text());
        }
        let without_ticks = apart::tickless();
        if !without_ticks.is_empty() {
            about.push(tickless::describe(&without_ticks));
        }
        if cpus.isolates() {
            about.push(cpus.describe_isolated());
        }
        about.push(settings.contexts().to_string());

        Ok(Self {
            skel,
            link: None,
            about,
            nr_cpus: layout.cpus.len(),
            upgrade: choice.upgrade,
            cpus,
            policies: UserPolicies::default(),
        })
    }

    /// Makes the kernel use it.
    pub fn attach(&mut self) -> Result<()> {
        for line in &self.about {
            info!("{line}");
        }
        self.link = Some(scx_ops_attach!(self.skel, freqlock_ops)?);
        if (self.skel.maps.bss_data.as_ref()).is_some_and(|bss| bss.no_irq_regs) {
            info!("spinners: found by sched_yield only, since this kernel does not expose what an interrupt interrupted");
        }
        Ok(())
    }
}

/// Whether the kernel's tasks are in groups with weights, as BPF programs see them.
fn kernel_has_cgroups() -> bool {
    let has = |(of, field)| matches!(struct_has_field(of, field), Ok(true));
    let needed = [
        ("task_struct", "sched_task_group"),
        ("task_group", "parent"),
        ("task_group", "shares"),
        ("task_group", "idle"),
    ];
    match needed.into_iter().find(|&field| !has(field)) {
        None => true,
        Some((of, field)) => {
            warn!(
                "cgroups: every task counts by its nice value alone, since this kernel has no \
                 {of}::{field} (CONFIG_CGROUP_SCHED, CONFIG_FAIR_GROUP_SCHED)"
            );
            false
        }
    }
}

/// Knobs that were not given are as was measured.
fn take_measured(measured: &Measured, opts: &RunOpts, tunables: &mut Tunables) {
    let ramp = measured
        .ramp
        .map(|ramp| [("speed_floor", ramp.floor), ("ramp_us", ramp.us)]);
    let cooling = measured
        .cooling
        .map(|cool| [("decay_after_us", cool.after_us), ("decay_us", cool.us)]);
    let cold = COLD_KNOBS.iter().zip(measured.migration);
    let cold = cold.filter_map(|(knob, ns)| Some(((*knob)?, ns?)));
    let speeds = ramp.into_iter().chain(cooling).flatten();
    for (knob, value) in speeds.chain(cold) {
        if let (false, Some(field)) = (opts.knobs.has(knob), tunables.knob_mut(knob)) {
            *field = value;
        }
    }
}

/// Whether tasks of SCHED_EXT get some CPU time beside any others.
fn reserves_a_share() -> bool {
    struct_has_field("rq", "ext_server").unwrap_or(false)
}

/// What tasks of the kernel's scheduler leave to ours.
fn partial_text() -> String {
    let share = match reserves_a_share() {
        true => "but for the share of each CPU that the kernel reserves for these",
        false => {
            "and this kernel reserves no share for these: one that gets no CPU for seconds \
             becomes a normal task"
        }
    };
    format!("partial: tasks of policy SCHED_EXT alone; all others go first, {share}")
}

fn ramp_text(tunables: &Tunables) -> String {
    let full = intf::fl_consts_FL_FULL_SPEED;
    match tunables.speed_floor {
        floor if floor >= u64::from(full) => "; speeds are taken not to change".into(),
        floor => {
            let ms = |us: u64| us as f64 / 1e3;
            format!(
                "; {floor}/{full} after idling, {full} in {:.1} ms; slow again after {:.1} ms, in {:.1} ms",
                ms(tunables.ramp_us),
                ms(tunables.decay_after_us),
                ms(tunables.decay_us)
            )
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
        [] => "cost of cold caches: not known, migrations cost by the knobs migrate_*_ns".into(),
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
    let partial = settings.tunables().partial != 0;
    if partial {
        ensure!(
            *SCX_OPS_SWITCH_PARTIAL != 0,
            "this kernel has no SCX_OPS_SWITCH_PARTIAL: start it without --partial"
        );
        ops.flags |= *SCX_OPS_SWITCH_PARTIAL;
    }
    displaced.choose(&mut skel, partial);
    tickless::choose(&mut skel, &apart::tickless())?;
    skel.progs
        .starved_tasks
        .set_autoload(partial && !reserves_a_share());
    skel.progs
        .freq_transition
        .set_autoload(source.has(intf::fl_source_flags_HOOKED));
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
    let cgroups = settings.tunables().cgroups != 0 && kernel_has_cgroups();
    let rodata = skel.maps.rodata_data.as_mut().context("no .rodata")?;
    ensure!(
        rodata.abi_version == intf::fl_consts_FL_ABI_VERSION,
        "the BPF object speaks version {} of its interface and the agent {}: build both again",
        rodata.abi_version,
        intf::fl_consts_FL_ABI_VERSION
    );
    rodata.nr_cpus = nr_cpus;
    rodata.capacity_differs = layout.capacity_differs();
    rodata.reads_counters = source.has(intf::fl_source_flags_COUNTERS);
    rodata.displaces = matches!(displaced, Displaced::Release);
    rodata.partial = partial;
    rodata.isolates = layout.isolates();
    rodata.sees_locks = locks.is_some();
    rodata.sees_answers = locks.is_some() && settings.tunables().pi_ipc != 0;
    rodata.lock_key = random_key()?;
    rodata.reports_tasks = settings.tunables().telemetry != 0;
    rodata.shares_cgroups = cgroups;
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
    hotplug::store(bss, layout);
    store_tunables!(settings.tunables(), bss.tunables);
    rules::store(bss, settings.contexts(), settings.tunables());
    bss.test_speed.fill(intf::fl_consts_FL_FULL_SPEED);
    for (cpu, speed) in &opts.test_speed {
        bss.test_speed[*cpu] = *speed;
    }
    if locks.is_none() {
        skel.maps.lock_profiles.set_max_entries(1)?;
    }
    if settings.tunables().telemetry == 0 {
        skel.maps.exits.set_max_entries(PAGE_BYTES)?;
        skel.maps.inversions.set_max_entries(PAGE_BYTES)?;
    }
    if !cgroups {
        skel.maps.cgroup_sums.set_max_entries(1)?;
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
