// SPDX-License-Identifier: GPL-2.0-only
//! The command line of `scx_freqlock compare`.

use std::path::PathBuf;
use std::time::Duration;

use crate::machine::Arch;
use crate::number::whole;

/// Compare schedulers on workloads, in interleaved runs
///
/// Every round runs every workload once under every scheduler, in an order that
/// rotates. Each run gets a scheduler that was just started; one that is not
/// loaded any more at the end of a run makes that run fail. Printed are medians
/// with 95% intervals, and the median ratio to the baseline of the same round.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Workloads, separated by commas; each is a folder of the bench folder
    /// [default: all but those that a file only-when-named says to be too much]
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

    /// Begin no round that would end later than this; one is made in any case
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
    /// its own kernel, and the schedulers that are in its image. Two more are
    /// there: limit (eevdf with every CPU always at its highest speed) and
    /// pinned (eevdf with the workload on one CPU)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["runs", "warmup", "minutes"])]
    pub machine: Option<String>,

    /// Architecture of the simulated machine
    #[arg(long, value_enum, requires = "machine", default_value_t = Arch::X86_64)]
    pub arch: Arch,

    /// Rounds on the simulated machine: each has a seed and a start time of its own
    #[arg(long, value_name = "N", requires = "machine", default_value_t = 10, value_parser = whole(1..=10_000u32))]
    pub seeds: u32,

    /// Simulated machines that run at a time [default: one to each CPU here]
    #[arg(long, value_name = "N", requires = "machine", value_parser = whole(1..=1_000usize))]
    pub jobs: Option<usize>,

    /// Take only so many CPUs of the simulated machine
    #[arg(long, value_name = "N", requires = "machine", value_parser = whole(1..=u32::MAX))]
    pub cpus: Option<u32>,

    /// Moves of tasks cost what the simulated machine's file says
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

    /// A run that takes longer has failed
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = whole(1..=86_400u64))]
    pub timeout_s: u64,
}

impl Args {
    pub(super) fn with_seeds_as_rounds(&self) -> Self {
        Self {
            runs: self.seeds,
            warmup: 0,
            ..self.clone()
        }
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_s)
    }

    pub(super) fn budget(&self) -> Option<Duration> {
        self.minutes
            .map(|minutes| Duration::from_secs(60 * minutes))
    }
}
