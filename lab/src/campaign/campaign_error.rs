// SPDX-License-Identifier: GPL-2.0-only
//! Why a campaign could not go on.

use std::path::PathBuf;

use super::{archive, campaign_file, publish, store};
use crate::compare::{plan, runs};
use crate::sim;
use freqlock::preflight;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    File(#[from] campaign_file::Wrong),
    #[error(transparent)]
    Plan(#[from] plan::Error),
    #[error("the schedulers {0} cannot be told apart as folders")]
    Alike(String),
    #[error("{0} is set: a campaign takes parameters from its file alone")]
    Environment(String),
    #[error("the workload {0} is gone")]
    Gone(String),
    #[error(transparent)]
    Preflight(#[from] preflight::Error),
    #[error(transparent)]
    Simulation(#[from] sim::error::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Engine(#[from] runs::Error),
    #[error("cannot catch Ctrl-C")]
    Signal(#[from] ctrlc::Error),
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Archive(#[from] archive::Error),
    #[error(transparent)]
    Report(#[from] publish::Error),
}

impl Error {
    /// Is it the command line or the campaign's file that is to be changed?
    pub fn is_usage(&self) -> bool {
        match self {
            Self::File(_) | Self::Plan(_) | Self::Alike(_) | Self::Environment(_) => true,
            Self::Simulation(error) => error.is_usage(),
            _ => false,
        }
    }
}
