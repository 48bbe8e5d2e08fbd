// SPDX-License-Identifier: GPL-2.0-only
//! The command lines of `compare`, `machine` and `promises`, which the lab's binary does
//! (lab/). They are here because the scheduler's own binary lists these commands, and
//! makes manual pages and completions of them, whether the lab is installed or not.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::number::whole;
use crate::output::Format;

/// Compare schedulers on workloads, in interleaved runs
///
/// Every round runs every workload once under every scheduler, in an order that
/// rotates. Each run gets a scheduler that was just started; one that is not
/// loaded any more at the end of a run makes that run fail. Printed are medians
/// with 95% intervals, and the median ratio to the baseline of the same round.
#[derive(Clone, Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("simulated").args(["machine", "campaign"]))]
#[command(group = clap::ArgGroup::new("campaign_runs").args(["results", "from"]))]
pub struct CompareArgs {
    /// Make the campaign of this file: workloads x machines x schedulers x seeds,
    /// with a file for each run in the folder --results. What is there already is
    /// not made again, so a campaign that was stopped, however that was, goes on
    /// where it was; --part and --merge spread it over hosts. It ends with reports
    /// of all that is there: losses first, corrected for many comparisons
    #[arg(long, value_name = "FILE", requires = "campaign_runs", conflicts_with_all = [
        "workloads", "schedulers", "runs", "warmup", "baseline", "json", "curves", "machine", "seeds", "cpus",
        "migration_cost", "no_control", "record", "trace"])]
    pub campaign: Option<PathBuf>,

    /// Folder of a campaign's results
    #[arg(long, value_name = "DIR", requires = "campaign")]
    pub results: Option<PathBuf>,

    /// Where a campaign's reports go: BENCHMARKS.md, .html, .csv and .json
    /// [default: the folder of its results]
    #[arg(long, value_name = "DIR", requires = "campaign")]
    pub report: Option<PathBuf>,

    /// Keep a campaign in a repository: BENCHMARKS.md, and all runs in
    /// benchmarks/CAMPAIGN.json, from which --from writes the page again
    #[arg(long, value_name = "DIR", requires = "campaign")]
    pub publish: Option<PathBuf>,

    /// Make no runs: write the reports of those in this file of --publish
    #[arg(long, value_name = "FILE", requires = "campaign", conflicts_with_all = ["merge", "part", "dry_run", "minutes"])]
    pub from: Option<PathBuf>,

    /// Take results of this campaign from another host's folder first
    #[arg(long, value_name = "DIR", requires = "campaign")]
    pub merge: Vec<PathBuf>,

    /// Make only the K-th of N parts of a campaign's runs: other hosts make the
    /// others. All schedulers of a seed run a workload in one part
    #[arg(long, value_name = "K/N", requires = "campaign", value_parser = part)]
    pub part: Option<(u32, u32)>,

    /// Say what the campaign would do, and for how long, and make no runs
    #[arg(long, requires = "campaign")]
    pub dry_run: bool,

    /// Workloads, separated by commas; each is a folder of the bench folder
    /// [default: all without a file only-when-named]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub workloads: Vec<String>,

    /// Schedulers, separated by commas: eevdf (the kernel's own), a mode of
    /// ours, or an installed program such as scx_bpfland. Arguments follow a
    /// colon: off:--slice-us=2000; quote those that hold a comma. One named
    /// twice is compared with itself
    #[arg(
        long,
        value_name = "NAME[:ARGS],...",
        default_value = "eevdf,off,fork-local,auto"
    )]
    pub schedulers: Vec<String>,

    /// Rounds that count; fewer than 6 give no 95% interval
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole(1..=10_000u32))]
    pub runs: u32,

    /// Rounds before those that count
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(0..=1_000u32))]
    pub warmup: u32,

    /// Begin no round that would end later than this; at least one is made
    #[arg(long, value_name = "MINUTES", value_parser = whole(1..=10_000u64))]
    pub minutes: Option<u64>,

    /// The scheduler to compare with [default: eevdf, or else the first]
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,

    /// Write all that was measured to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Draw metrics that a workload has at several points, as critical's
    /// throughput_500us, as curves over the number in their names:
    /// DIR/WORKLOAD-METRIC.svg, both axes logarithmic
    #[arg(long, value_name = "DIR")]
    pub curves: Option<PathBuf>,

    /// Folder of the workloads [default: bench here or above the program]
    #[arg(long, value_name = "DIR")]
    pub bench_dir: Option<PathBuf>,

    /// Compare on this simulated machine (`scx_freqlock machine list`): with
    /// its own kernel, and the schedulers that are in its image. More are there,
    /// which show what is to be gained: limit (eevdf with every CPU always at its
    /// highest speed), pinned:K (eevdf with the workload on K CPUs, the fastest
    /// first; one without a number) and best-of-pinned (the best of all pinned:K
    /// that are named, and of 1, 2, 3, 4, 6, 8, 12 ... and all CPUs, by the median)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["runs", "warmup", "minutes"])]
    pub machine: Option<String>,

    /// Architecture of the simulated machine
    #[arg(long, value_enum, requires = "machine", default_value_t = Arch::X86_64)]
    pub arch: Arch,

    /// Rounds on the simulated machine: each has a seed and a start time of its own
    #[arg(long, value_name = "N", requires = "machine", default_value_t = 10, value_parser = whole(1..=10_000u32))]
    pub seeds: u32,

    /// Simulated machines that run at a time [default: one to each CPU here]
    #[arg(long, value_name = "N", requires = "simulated", value_parser = whole(1..=1_000usize))]
    pub jobs: Option<usize>,

    /// Use only this many CPUs of the simulated machine
    #[arg(long, value_name = "N", requires = "machine", value_parser = whole(1..=u32::MAX))]
    pub cpus: Option<u32>,

    /// Migrations cost what the simulated machine's file says
    #[arg(long, requires = "machine")]
    pub migration_cost: bool,

    /// Do without the control: the same comparison on the machine
    /// symmetric-fixed, where no speed ever changes, whose ratios stand beside
    #[arg(long, requires = "machine")]
    pub no_control: bool,

    /// Keep what each machine's run leaves as `machine run --record` does, the
    /// frequency timeline with it, in DIR/WORKLOAD/SCHEDULER/SEED
    #[arg(long, value_name = "DIR", requires = "machine")]
    pub record: Option<PathBuf>,

    /// Make the runs of the first N seeds once more, under `scx_freqlock record` in the guest, and
    /// keep DIR/WORKLOAD/SCHEDULER/SEED/trace; figures are of the runs that were not recorded
    #[arg(long, value_name = "N", requires = "record", default_value_t = 0, value_parser = whole(0..=10_000u32))]
    pub trace: u32,

    /// Fail a run that takes longer
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = whole(1..=86_400u64))]
    pub timeout_s: u64,
}

/// Which part of the runs: K of N.
fn part(text: &str) -> Result<(u32, u32), String> {
    let parsed = text
        .split_once('/')
        .and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    match parsed {
        Some((k, n)) if 1 <= k && k <= n => Ok((k, n)),
        _ => Err("write 1/2 for the first of two parts".into()),
    }
}

impl CompareArgs {
    /// The same with a round for each seed.
    pub fn with_seeds_as_rounds(&self) -> Self {
        Self {
            runs: self.seeds,
            warmup: 0,
            ..self.clone()
        }
    }

    /// After which a run has failed.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_s)
    }

    /// The time that there is for all rounds.
    pub fn budget(&self) -> Option<Duration> {
        self.minutes
            .map(|minutes| Duration::from_secs(60 * minutes))
    }
}

/// Run commands on a simulated machine, whose speeds change
#[derive(Clone, Debug, clap::Subcommand)]
pub enum MachineArgs {
    /// List the machines
    List {
        /// Folder of the machines [default: machine here or above the program]
        #[arg(long, value_name = "DIR")]
        machines: Option<PathBuf>,

        /// Text or JSON.
        #[command(flatten)]
        format: Format,
    },
    // Words here would stand in the help instead of those of the arguments.
    #[allow(missing_docs)]
    Run(RunArgs),
    #[allow(missing_docs)]
    Check(CheckArgs),
    #[allow(missing_docs)]
    Gate(GateArgs),
    #[allow(missing_docs)]
    Calibrate(CalibrateArgs),
}

/// Fit a machine's description to what was measured of a real one
///
/// Without --beside and --against it prints what fits. What could not be measured
/// has a line that says why, and stands in the description as another machine
/// has it. Exit status 1: something is outside its tolerance
/// (bench/calibrate/tolerances.toml). scripts/calibrate measures and then calls it.
#[derive(Clone, Debug, clap::Args)]
pub struct CalibrateArgs {
    /// What bench/calibrate has printed
    pub measured: PathBuf,

    /// Write the description there
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,

    /// The machine whose values stand for those that are not known
    #[arg(long, value_name = "NAME", default_value = "turbo-laptop-8")]
    pub otherwise: String,

    /// Compare with what bench/calibrate has printed on the simulated machine
    #[arg(long, value_name = "FILE")]
    pub beside: Option<PathBuf>,

    /// Compare with the description of the simulated machine that was measured
    #[arg(long, value_name = "MACHINE", conflicts_with = "beside")]
    pub against: Option<String>,

    /// Folder of the machines [default: machine here or above the program]
    #[arg(long, value_name = "DIR")]
    pub machines: Option<PathBuf>,
}

/// Compare the times of a set of runs with the recorded ones
///
/// Fails if a time differs by a nanosecond. If the kernel, QEMU, a package of the
/// guest or the agent is another one, the ratios to the kernel's own scheduler are
/// compared instead.
#[derive(Clone, Debug, clap::Args)]
pub struct CheckArgs {
    /// Which runs: a file of tests/times, without its ending
    #[arg(default_value = "quick")]
    pub set: String,

    /// Record the times as they are now
    #[arg(long)]
    pub record: bool,

    /// What scripts/machine has prepared for it
    #[arg(long, value_name = "FILE")]
    pub kit: PathBuf,

    /// Machines that run at a time [default: one to each CPU here]
    #[arg(long, value_name = "N", value_parser = whole(1..=1_000usize))]
    pub jobs: Option<usize>,

    /// Kill a machine after this many seconds of the host's time
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = whole(1..=86_400u64))]
    pub timeout_s: u64,
}

const GATE_STATUS: &str = "\
Exit status: 0; 1 if a figure is worse by more than its share; 125 if a machine
failed, so that nothing can be said; 2 for wrong usage.

scripts/gate prepares two commits and then calls it.";

/// Compare the times of a set of runs in two trees of the project, with reasons
///
/// A tree's recorded times count where nothing that they depend on is another;
/// else its runs are made. Where a figure changed, the run of the seed that
/// changed most is made once more in both trees, and the statistics that differ
/// say which decisions of the scheduler changed. A scheduler's change counts
/// beside that of the kernel's own scheduler, where the set has one.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = GATE_STATUS)]
pub struct GateArgs {
    /// The project's folder as it was, with what scripts/machine check prepared
    pub before: PathBuf,

    /// The project's folder as it is
    pub after: PathBuf,

    /// Which runs: a file of tests/times, without its ending
    #[arg(long, value_name = "NAME", default_value = "quick")]
    pub set: String,

    /// A figure may be worse by this share [default: 8, or 100 times the
    /// `within` of its case]. Another image alone moves single runs by 3
    #[arg(long, value_name = "PERCENT", value_parser = whole(0..=1_000u32))]
    pub within: Option<u32>,

    /// Machines that run at a time [default: one to each CPU here]
    #[arg(long, value_name = "N", value_parser = whole(1..=1_000usize))]
    pub jobs: Option<usize>,

    /// Kill a machine after this many seconds of the host's time
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = whole(1..=86_400u64))]
    pub timeout_s: u64,
}

const EXIT_STATUS: &str = "\
Exit status: the command's; 124 if it did not end in time or the guest hangs,
125 if the machine failed, 127 if the command is not in its image, 2 for wrong
usage.

scripts/machine prepares what this needs and then calls it.";

/// Boot a machine, run one command, and give its output and exit status
///
/// The same machine, seed, image and command give the same result on any host,
/// to the last nanosecond of the machine's time.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXIT_STATUS)]
pub struct RunArgs {
    /// A machine of `machine list`, or a file by its path
    pub machine: String,

    /// Where the guest's random numbers start
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(0..=u32::MAX))]
    pub seed: u32,

    /// Architecture of the machine
    #[arg(long, value_enum, default_value_t = Arch::X86_64)]
    pub arch: Arch,

    /// Use only this many of the machine's CPUs
    #[arg(long, value_name = "N", value_parser = whole(1..=u32::MAX))]
    pub cpus: Option<u32>,

    /// Memory of the guest [default: as the machine's file says]
    #[arg(long, value_name = "MB", value_parser = whole(64..=1_048_576u32))]
    pub memory_mb: Option<u32>,

    /// The scheduler: eevdf (the kernel's own), a mode of ours, or another
    /// program in the image such as scx_bpfland; arguments follow a colon
    #[arg(long, value_name = "NAME[:ARGS]", default_value = "eevdf")]
    pub scheduler: String,

    /// Every CPU always at its highest speed: the limit of what is to be gained
    #[arg(long)]
    pub always_top: bool,

    /// A task that migrates runs slower at first, as the machine's file says
    #[arg(long)]
    pub migration_cost: bool,

    /// Said to the guest's kernel as well, such as "nohz_full=2,3 isolcpus=3"
    #[arg(long, value_name = "WORDS", default_value = "")]
    pub kernel_args: String,

    /// Start the command later by this
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0, value_parser = whole(0..=1_000_000_000u64))]
    pub shift_us: u64,

    /// Give up when the command takes longer by the machine's own time, which
    /// passes quickly where the machine is idle
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400, value_parser = whole(1..=10_000_000u64))]
    pub limit_s: u64,

    /// Kill the machine after this many seconds of the host's time
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = whole(1..=86_400u64))]
    pub timeout_s: u64,

    /// Keep the record of the run there: run.json, timeline.svg, the plugin's
    /// record and the console
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,

    /// Folder of the machines [default: machine here or above the program]
    #[arg(long, value_name = "DIR")]
    pub machines: Option<PathBuf>,

    /// What scripts/machine has prepared [default: target/machine/ARCH/kit.toml
    /// beside the folder of the machines]
    #[arg(long, value_name = "FILE")]
    pub kit: Option<PathBuf>,

    /// The command, started in the guest's copy of the project
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Judge what scripts/measure has measured, which calls this
#[derive(Clone, Debug, clap::Args)]
pub struct PromisesArgs {
    /// The folder with the measurements
    pub results: PathBuf,

    /// Text or JSON.
    #[command(flatten)]
    pub format: Format,
}

/// Architecture of a simulated machine
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, clap::ValueEnum)]
pub enum Arch {
    /// 64-bit x86
    #[serde(rename = "x86_64")]
    #[value(name = "x86_64", help = None)]
    X86_64,
    /// 64-bit Arm
    #[serde(rename = "arm64")]
    #[value(name = "arm64", help = None)]
    Arm64,
}

impl Arch {
    /// As the command line and files have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Arm64 => "arm64",
        }
    }
}
