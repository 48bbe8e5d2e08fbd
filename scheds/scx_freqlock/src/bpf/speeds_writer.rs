// SPDX-License-Identifier: GPL-2.0-only
//! Has the BPF side say every period how fast the CPUs are, and writes the page of speeds.
//! Without a page scheduling goes on.

use super::answers::look_at_cpus;
use super::skel::BpfSkel;
use anyhow::Result;
use crossbeam::channel::{never, tick, Receiver};
use freqlock::speeds_page::{SpeedsPage, PATH};
use log::warn;
use std::path::Path;
use std::time::{Duration, Instant};

/// The page, if there is to be one.
pub struct Speeds {
    /// When it is to be written again.
    pub due: Receiver<Instant>,
    period: Duration,
    page: Option<SpeedsPage>,
}

impl Speeds {
    /// None yet; [`Speeds::follow`] says how often.
    pub fn none() -> Self {
        Self {
            due: never(),
            period: Duration::ZERO,
            page: None,
        }
    }

    /// Takes over what the knob says, if that has changed.
    pub fn follow(&mut self, skel: &BpfSkel, speeds_ms: u64) {
        let period = Duration::from_millis(speeds_ms);
        if period == self.period {
            return;
        }
        self.period = period;
        if period.is_zero() {
            return self.stop();
        }
        self.due = tick(period);
        self.publish(skel);
    }

    /// A period is over.
    pub fn publish(&mut self, skel: &BpfSkel) {
        if let Err(error) = self.try_publish(skel) {
            warn!("there is no page of speeds: {error:#}");
            self.stop();
        }
    }

    fn try_publish(&mut self, skel: &BpfSkel) -> Result<()> {
        if self.page.is_none() {
            self.page = Some(SpeedsPage::open(Path::new(PATH))?);
        }
        let cpus = look_at_cpus(skel)?;
        if let Some(page) = &mut self.page {
            page.write(
                cpus.map(|(cpu, (state, _))| (cpu, state.speed)),
                self.period,
            );
        }
        Ok(())
    }

    fn stop(&mut self) {
        self.due = never();
        self.page = None;
    }
}
