// SPDX-License-Identifier: GPL-2.0-only
//! All that is known of the running scheduler at one moment.

use crate::locks::LockProfiles;
use crate::metrics::Metrics;
use crate::stats::{self, target};
use crate::telemetry::{Cpus, Telemetry};

/// Answers of the statistics socket, asked for one after the other.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Tasks, those that exited, and inversions.
    pub telemetry: Telemetry,
    /// CPUs as they are now.
    pub cpus: Cpus,
    /// Counters since the scheduler started.
    pub metrics: Metrics,
    /// None where they were not asked for; or why there are none.
    pub locks: Option<Result<LockProfiles, String>>,
}

impl Look {
    /// Asks over the statistics socket; of locks, which may be many, only if they are wanted.
    /// Errors where there is no scheduler or it does not count for each task.
    pub fn take(locks: bool) -> Result<Self, stats::Error> {
        let locks = locks.then(|| stats::fetch(target::LOCKS).map_err(|error| error.to_string()));
        Ok(Self {
            locks,
            telemetry: stats::fetch(target::TASKS)?,
            cpus: stats::fetch(target::CPUS)?,
            metrics: stats::fetch(target::TOTAL)?,
        })
    }
}
