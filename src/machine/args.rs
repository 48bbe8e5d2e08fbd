// SPDX-License-Identifier: GPL-2.0-only
//! The command line of `scx_freqlock machine`.

use std::path::{Path, PathBuf};

use super::kit::Arch;
use super::Error;
use crate::number::whole;
use crate::output::Format;

/// Run commands on a simulated machine, whose speeds change
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Args {
    /// List the machines
    List {
        /// Folder of the machines [default: machine here or above the program]
        #[arg(long, value_name = "DIR")]
        machines: Option<PathBuf>,

        #[command(flatten)]
        format: Format,
    },
    Run(RunArgs),
    Check(CheckArgs),
}

/// Hold the times of a set of runs against the recorded ones
///
/// Fails if one is another by a nanosecond, unless it is a kernel, a QEMU, a
/// package of the guest or the agent that is another: then by what each
/// scheduler takes beside the kernel's own.
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

    /// Kill a machine after so many seconds of the host's time
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

    /// Take only so many of the machine's CPUs
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

    /// A task that moves runs slower at first, as the machine's file says
    #[arg(long)]
    pub migration_cost: bool,

    /// Start the command so much later
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0, value_parser = whole(0..=1_000_000_000u64))]
    pub shift_us: u64,

    /// Give up when the command takes longer by the machine's own time, which
    /// passes quickly where the machine is idle
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400, value_parser = whole(1..=10_000_000u64))]
    pub limit_s: u64,

    /// Kill the machine after so many seconds of the host's time
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

impl RunArgs {
    pub(super) fn kit_path(&self, machines: &Path) -> PathBuf {
        self.kit
            .clone()
            .unwrap_or_else(|| default_kit(machines, self.arch))
    }
}

pub(super) fn default_kit(machines: &Path, arch: Arch) -> PathBuf {
    machines
        .with_file_name("target")
        .join("machine")
        .join(arch.name())
        .join("kit.toml")
}

/// The folder with the machines' descriptions.
pub(super) fn machines_dir(wanted: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(dir) = wanted {
        return Ok(dir.into());
    }
    // Not there only without /proc; then only the current folder is looked at.
    let program = std::env::current_exe().unwrap_or_default();
    let here = std::env::current_dir().unwrap_or_default();
    std::iter::once(here.as_path())
        .chain(program.ancestors().skip(1))
        .map(|dir| dir.join("machine"))
        .find(|dir| dir.join("guest/init").is_file())
        .ok_or_else(|| {
            Error::Usage(
                "no folder machine/ here or above the program: name it with --machines".into(),
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kit_lies_in_target_beside_the_machines() {
        assert_eq!(
            default_kit(Path::new("/project/machine"), Arch::X86_64),
            Path::new("/project/target/machine/x86_64/kit.toml")
        );
    }
}
