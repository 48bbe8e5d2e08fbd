// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock cost`: runs a command and says what the BPF programs of the
//! sched_ext scheduler in charge, ours or another one, took meanwhile.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Instant;

use anyhow::{ensure, Context, Result};
use freqlock::cost::{Cost, Sample};
use freqlock::preflight;
use libbpf_rs::btf::types::Func;
use libbpf_rs::btf::Btf;
use libbpf_rs::libbpf_sys;
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use libbpf_rs::ProgramType;

use crate::child::{self, ReportOpts};

#[derive(Debug, clap::Args)]
pub struct CostOpts {
    #[command(flatten)]
    report: ReportOpts,

    /// The command to run meanwhile, with its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the command and returns its exit status.
pub fn run(opts: &CostOpts) -> Result<u8> {
    let scheduler = loaded().context(
        "no sched_ext scheduler is loaded: start the one to measure first, for example `scx_freqlock`",
    )?;
    preflight::bpf()?;
    let _counting = count()?;
    let before = samples();
    let start = Instant::now();
    let status = child::spawn(&opts.command)?
        .wait()
        .context("cannot wait for the command")?;
    let elapsed = start.elapsed();
    let after = samples();
    ensure!(
        loaded().as_ref() == Some(&scheduler),
        "the scheduler {scheduler} ended while the command ran"
    );
    let cpus = std::thread::available_parallelism()?.get();
    let elapsed_ns = u64::try_from(elapsed.as_nanos())?;
    opts.report
        .write(&Cost::new(scheduler, &before, &after, elapsed_ns, cpus))?;
    Ok(child::exit_code(status))
}

/// Name of the scheduler in charge.
fn loaded() -> Option<String> {
    let name = std::fs::read_to_string("/sys/kernel/sched_ext/root/ops").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// The kernel counts as long as the descriptor is open.
fn count() -> Result<OwnedFd> {
    // SAFETY: a system call without pointers.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    ensure!(
        fd >= 0,
        "the kernel does not count the run time of BPF programs: {}",
        std::io::Error::from_raw_os_error(-fd)
    );
    // SAFETY: the descriptor was just opened, and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The struct_ops programs, which on a machine that is not a test of other such
/// users are the scheduler's callbacks, and all that share a map with them.
fn samples() -> Vec<Sample> {
    let wanted = ProgInfoQueryOptions::default()
        .include_func_info(true)
        .include_map_ids(true);
    let (callbacks, others): (Vec<ProgramInfo>, Vec<ProgramInfo>) =
        ProgInfoIter::with_query_opts(wanted).partition(|info| info.ty == ProgramType::StructOps);
    let maps: HashSet<u32> = callbacks
        .iter()
        .flat_map(|info| info.map_ids.iter().copied())
        .collect();
    let sharing = others
        .iter()
        .filter(|info| info.map_ids.iter().any(|id| maps.contains(id)));
    callbacks
        .iter()
        .chain(sharing)
        .map(|info| Sample {
            id: info.id,
            name: full_name(info).unwrap_or_else(|| info.name.to_string_lossy().into_owned()),
            runs: info.run_cnt,
            run_ns: info.run_time_ns,
        })
        .collect()
}

/// The kernel cuts names at 15 characters; the type information has all of it.
fn full_name(info: &ProgramInfo) -> Option<String> {
    let btf = Btf::from_prog_id(info.id).ok()?;
    let entry = info.func_info.first()?;
    let function: Func = btf.type_by_id(entry.type_id.into())?;
    Some(function.name()?.to_string_lossy().into_owned())
}
