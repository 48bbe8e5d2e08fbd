// SPDX-License-Identifier: GPL-2.0-only
//! Why nothing was made of a trace.

use super::reader::Error;
use std::io;

/// What was in the way.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// What was read.
    #[error(transparent)]
    Read(#[from] Error),
    /// What was to be written.
    #[error("cannot write")]
    Write(#[from] io::Error),
    /// With how many events there are, and how many there may be.
    #[error("it has {0} events, and a page holds {1} at most: `view --serve` shows any number")]
    TooMany(u64, u64),
}
