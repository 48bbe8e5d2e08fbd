// SPDX-License-Identifier: GPL-2.0-only
//! All that is known of the running scheduler at one moment.

use super::{Cpus, Telemetry};
use crate::metrics::Metrics;
use crate::stats::{self, target};

#[derive(Clone, Debug, Default)]
pub struct Look {
    pub telemetry: Telemetry,
    pub cpus: Cpus,
    pub metrics: Metrics,
}

impl Look {
    /// Asks over the statistics socket.
    pub fn take() -> Result<Self, stats::Error> {
        Ok(Self {
            telemetry: stats::fetch(target::TASKS)?,
            cpus: stats::fetch(target::CPUS)?,
            metrics: stats::fetch(target::TOTAL)?,
        })
    }
}
