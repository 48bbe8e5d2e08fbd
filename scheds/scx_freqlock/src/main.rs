// SPDX-License-Identifier: GPL-2.0-only
//! scx_freqlock: the scheduler's command. Without a sub-command it loads the
//! scheduler and serves it until it ends.

mod bpf;
mod child;
mod contexts_page;
mod cost_command;
mod decisions;
mod examples;
mod flight_recorder;
mod generate;
mod lab;
mod libbpf_log;
mod observe_command;
mod opts;
mod policy;
mod policy_command;
mod record_command;
mod run_command;
mod signals;
mod variables;

use anyhow::{bail, Context, Result};
use bpf::load::{Learned, Scheduler, Storage};
use bpf::serve;
use clap::Parser;
use crossbeam::channel::Receiver;
use freqlock::commands::{
    analyze, context_table, cpus_table, export, knob_table, live_knobs, lock_table, status,
    task_table, top, trace_page,
};
use freqlock::context::{self, InForce};
use freqlock::ending::Ending;
use freqlock::memory::Memory;
use freqlock::metrics::Metrics;
use freqlock::notify::{self, State};
use freqlock::predictions::Predictions;

use freqlock::{control, cpus, openmetrics, output, preflight, stats};
use log::{error, info, warn, LevelFilter};
use nix::sys::resource::{getrlimit, setrlimit, Resource};
use opts::{Command, MemoryOpts, Opts, RunOpts, VERSION};
use rustix::fs::Mode;
use rustix::process::{getpriority_process, setpriority_process, umask};

use serde::Serialize;
use signals::Signals;
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let opts = Opts::from_command_line();
    start_log(opts.run.verbose);
    for retired in opts.run.knobs.retired() {
        warn!("{retired}");
    }
    match dispatch(&opts) {
        Ok(status) => status,
        Err(error) => output::failed(&error, || status_of(&error)),
    }
}

fn status_of(error: &anyhow::Error) -> ExitCode {
    if error.is::<Failed>() {
        return ExitCode::from(ENDED_BY_KERNEL);
    }
    if error.is::<context::Error>() || error.is::<NoCommand>() || error.is::<lab::NotThere>() {
        return ExitCode::from(WRONG_USAGE);
    }
    ExitCode::FAILURE
}

/// What clap exits with, for what it cannot know itself.
const WRONG_USAGE: u8 = 2;
/// It ran, and the kernel ended it.
const ENDED_BY_KERNEL: u8 = 3;

/// Why the kernel ended it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failed(String);

/// What was asked for help about.
#[derive(Debug, thiserror::Error)]
#[error("there is no command `{0}`: `scx_freqlock help` lists them")]
struct NoCommand(String);

const NAME: &str = env!("CARGO_PKG_NAME");

#[derive(Serialize)]
struct Version<'a> {
    version: &'a str,
}

fn dispatch(opts: &Opts) -> Result<ExitCode> {
    match &opts.command {
        Some(Command::Status(format)) => {
            if !status::print(format)? {
                return Ok(ExitCode::FAILURE);
            }
        }
        Some(Command::Version(format)) => {
            let version = Version { version: &VERSION };
            output::show(format.json, &version, |v| format!("{NAME} {}\n", v.version))?;
        }
        Some(Command::Help(opts)) => {
            if !opts::help(opts)? {
                bail!(NoCommand(opts.words()));
            }
        }
        Some(Command::Observe(opts)) => return Ok(observe_command::run(opts)?.into()),
        Some(Command::Record(opts)) => return Ok(record_command::run(opts)?.into()),
        Some(Command::Analyze(args)) => analyze::print(args)?,
        Some(Command::Export(args)) => export::print(args)?,
        Some(Command::View(args)) => trace_page::make(args)?,
        Some(Command::Cost(opts)) => return Ok(cost_command::run(opts)?.into()),
        Some(Command::Run(opts)) => return Ok(run_command::run(opts)?.into()),
        Some(Command::Counters(format)) => {
            let total: Metrics = stats::fetch(stats::target::TOTAL)?;
            output::show(format.json, &total, Metrics::table)?;
        }
        Some(Command::Predictions(format)) => {
            let predictions: Predictions = stats::fetch(stats::target::PREDICTIONS)?;
            output::show(format.json, &predictions, Predictions::text)?;
        }
        Some(Command::Locks(args)) => lock_table::print(args)?,
        Some(Command::Top(args)) => top::run(args)?,
        Some(Command::Report(args)) => task_table::print(args)?,
        Some(Command::Cpus(args)) => cpus_table::print(args)?,
        Some(Command::Set(args)) => live_knobs::set(args)?,
        Some(Command::Get(args)) => live_knobs::get(args)?,
        Some(Command::Undo(format)) => live_knobs::undo(format)?,
        Some(Command::Changes(format)) => live_knobs::changes(format)?,
        Some(Command::Knobs(format)) => knob_table::print(format)?,
        Some(Command::Reload(format)) => live_knobs::reload(format)?,
        Some(Command::Adapt(args)) => live_knobs::adapt(args)?,
        Some(Command::Explain(args)) => live_knobs::explain(args)?,
        Some(Command::Contexts(args)) => context_table::print(args)?,
        Some(Command::Policy(args)) => policy_command::run(args)?,
        Some(Command::Memory(opts)) => show_memory(opts)?,
        Some(Command::Generate(args)) => generate::run(args)?,
        Some(Command::Compare(_)) => lab::run("compare")?,
        Some(Command::Machine(_)) => lab::run("machine")?,
        Some(Command::Promises(_)) => lab::run("promises")?,
        None => run(&opts.run)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn run(opts: &RunOpts) -> Result<()> {
    if opts.help_stats {
        let mut text = Vec::new();
        stats::describe(&mut text)?;
        return Ok(output::pass_on(&text)?);
    }
    if let Some(interval) = opts.monitor {
        ctrlc::set_handler(|| std::process::exit(0)).context("cannot handle signals")?;
        return stats::monitor(interval);
    }
    let contexts = InForce::start(opts.contexts.as_deref())?;
    preflight::run()?;
    if opts.tunables().partial != 0 {
        // Before there are threads, which inherit it.
        policy::leave_ext().context("cannot leave SCHED_EXT, where it would wait for itself")?;
    }
    let signals = Signals::take()?;
    // Nobody else may use what is made from now on, the socket of statistics too, whatever
    // was inherited; what others may see says so itself.
    umask(Mode::RWXG | Mode::RWXO);
    allow_files();
    info!("scx_freqlock {}: mode {}", *VERSION, opts.mode.name());
    if opts.tunables().cgroups == 0 {
        if let Some(line) = cpus::ignored() {
            warn!("{line}");
        }
    }

    let (_control, asked) = control::Server::start(control::SOCKET.as_ref())?;
    let mut learned = Learned::new(contexts);
    if let Some(address) = &opts.metrics {
        openmetrics::start(address)?;
    }
    if let Some(interval) = opts.stats {
        print_stats(interval);
    }
    let mut hurry = None;
    loop {
        notify_systemd(State::Starting("Being calibrated and loaded"));
        match run_once(opts, &mut learned, &asked, &signals, hurry)? {
            Ending::Asked(line) => {
                notify_systemd(State::Stopping(&line));
                info!("{line}");
                return Ok(());
            }
            Ending::Restart(line) => {
                info!("{line}");
                hurry = Hurry::begin();
            }
            Ending::Failed(line) => {
                notify_systemd(State::Stopping(&line));
                bail!(Failed(line))
            }
        }
    }
}

fn notify_systemd(state: State) {
    notify::announce(state).unwrap_or_else(|why| warn!("systemd cannot be notified: {why}"));
}

/// As many files as it may have at all: with two perf events a CPU, maps and connections,
/// the usual 1024 are few for a machine of many CPUs.
fn allow_files() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, most)| setrlimit(Resource::RLIMIT_NOFILE, most, most));
    if let Err(error) = raised {
        warn!("the limit of open files stays as it is: {error}");
    }
}

/// Loading goes before all other work, for as long as this lives.
struct Hurry {
    nice: i32,
}

impl Hurry {
    const MOST: i32 = -20;

    /// None where that is not allowed.
    fn begin() -> Option<Self> {
        let nice = getpriority_process(None).ok()?;
        setpriority_process(None, Self::MOST).ok()?;
        Some(Self { nice })
    }
}

impl Drop for Hurry {
    fn drop(&mut self) {
        if let Err(error) = setpriority_process(None, self.nice) {
            warn!("the nice value stays at {}: {error}", Self::MOST);
        }
    }
}

/// Loads it, serves it, and says how it ended.
fn run_once(
    opts: &RunOpts,
    learned: &mut Learned,
    asked: &Receiver<control::Asked>,
    signals: &Signals,
    hurry: Option<Hurry>,
) -> Result<Ending> {
    let start = Instant::now();
    let server = serve::stats_server()?;
    let mut storage = Storage::uninit();
    let mut scheduler = Scheduler::load(opts, &mut storage, learned)?;
    let attached = scheduler.attach();
    drop(hurry);
    let info = match attached {
        Ok(()) => {
            info!("enabled after {:.2} s", start.elapsed().as_secs_f64());
            notify_systemd(State::Ready(&format!(
                "Started in mode {}",
                opts.mode.name()
            )));
            scheduler.run(&server, learned, asked, signals)?
        }
        // The kernel may have said why before it refused.
        Err(error) => match scheduler.exit_info(false) {
            info if info.kind != 0 => info,
            _ => return Err(error),
        },
    };
    let ending = info.ending();
    if matches!(ending, Ending::Failed(_)) {
        scheduler.print_dump();
    }
    Ok(ending)
}

/// Memory of the running scheduler, or of one that is loaded for it alone.
fn show_memory(opts: &MemoryOpts) -> Result<()> {
    let memory: Memory = match stats::fetch(stats::target::MEMORY) {
        Err(stats::Error::NotRunning) => {
            preflight::run()?;
            let run =
                Opts::parse_from(["scx_freqlock", "--freq-source=recency", "--no-calibrate"]).run;
            let mut storage = Storage::uninit();
            let scheduler = Scheduler::load(&run, &mut storage, &mut Learned::default())?;
            scheduler.memory()?
        }
        answer => answer?,
    };
    output::show(opts.format.json, &memory, |m| m.text(opts.cpus, opts.tasks))
}

/// Prints statistics beside the scheduler, for as long as the process lives.
fn print_stats(interval: Duration) {
    std::thread::spawn(move || {
        if let Err(why) = stats::print(interval) {
            error!("statistics can no longer be printed: {why:#}");
        }
    });
}

fn start_log(verbose: bool) {
    let mut builder = env_logger::Builder::new();
    if verbose {
        builder.filter_level(LevelFilter::Debug);
    } else {
        builder
            .filter_level(LevelFilter::Error)
            .filter_module("scx_freqlock", LevelFilter::Info)
            .filter_module("freqlock", LevelFilter::Info);
    }
    builder
        .format(|to, record| output::write_line(to, record.args()))
        .init();
}
