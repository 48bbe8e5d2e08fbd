// SPDX-License-Identifier: GPL-2.0-only
//! Why a command did not run on a simulated machine, and the exit status for that.

use std::path::PathBuf;

use super::{description, image, kit, qemu, record, timeline};
use crate::schedulers;
use freqlock::output;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Description(#[from] description::Error),
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Scheduler(#[from] schedulers::Error),
    #[error(transparent)]
    Kit(#[from] kit::Error),
    #[error(transparent)]
    Image(#[from] image::Error),
    #[error("{command} is not in the machine's image: scripts/machine prepare --package NAME adds a package of Debian to it")]
    NoCommand { command: String },
    #[error("{machine} cannot have arm64 guests: {reason}")]
    NoArm64 { machine: String, reason: String },
    #[error("cannot describe the machine to its guest")]
    DeviceTree(#[from] vm_fdt::Error),
    #[error(transparent)]
    Qemu(#[from] qemu::Error),
    #[error(transparent)]
    Record(#[from] record::Error),
    #[error(transparent)]
    Timeline(#[from] timeline::Error),
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Output(#[from] output::Error),
    #[error("the guest made no trace: {0}")]
    NoTrace(String),
    #[error("cannot catch Ctrl-C")]
    Signal(#[from] ctrlc::Error),
}

impl Error {
    /// Is it the command line that is to be changed?
    pub fn is_usage(&self) -> bool {
        self.status() == 2
    }

    /// Does it say nothing about what ran in the guest, as a full disk does not?
    pub fn is_hosts(&self) -> bool {
        use qemu::Error as Qemu;
        match self {
            Self::Read { .. } | Self::Write { .. } | Self::Record(_) => true,
            Self::Qemu(error) => matches!(
                error,
                Qemu::HostMemory { .. } | Qemu::Start { .. } | Qemu::Wait(_) | Qemu::Died { .. }
            ),
            _ => false,
        }
    }

    /// The exit status; those of a shell and of `timeout`, where they fit.
    pub fn status(&self) -> u8 {
        match self {
            Self::Description(_) | Self::Usage(_) | Self::Scheduler(_) | Self::NoArm64 { .. } => 2,
            Self::NoCommand { .. } => 127,
            Self::Qemu(qemu::Error::Timeout { .. } | qemu::Error::Stalled { .. }) => 124,
            Self::Qemu(qemu::Error::Interrupted) => 130,
            _ => 125,
        }
    }
}
