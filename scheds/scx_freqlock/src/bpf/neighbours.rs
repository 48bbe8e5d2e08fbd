// SPDX-License-Identifier: GPL-2.0-only
//! Has the BPF side end a period now and then, and makes a page of CPUs to count on of
//! what it entered (bpf/neighbours.bpf.c). Without a page scheduling goes on.

use super::rings;
use super::skel::BpfSkel;
use anyhow::{Context, Result};
use crossbeam::channel::{never, tick, Receiver};
use freqlock::cpus::{Living, Publisher};
use libbpf_rs::ProgramInput;
use log::warn;
use std::time::{Duration, Instant};

/// The page, if there is to be one.
pub struct CpusPage {
    /// When the next period ends.
    pub due: Receiver<Instant>,
    period: Duration,
    publisher: Option<Publisher>,
}

impl CpusPage {
    /// None yet; [`CpusPage::follow`] says how often.
    pub fn none() -> Self {
        Self {
            due: never(),
            period: Duration::ZERO,
            publisher: None,
        }
    }

    /// Takes over what the knob says, if that has changed.
    pub fn follow(&mut self, skel: &mut BpfSkel, cpus_ms: u64) {
        let period = Duration::from_millis(cpus_ms);
        if period == self.period {
            return;
        }
        self.period = period;
        if period.is_zero() {
            self.stop(skel);
            return;
        }
        self.due = tick(period);
        if self.publisher.is_none() {
            match publisher(skel) {
                Ok(publisher) => self.publisher = Some(publisher),
                Err(error) => return self.give_up(skel, &error),
            }
        }
        // So that there are affinities and quotas at once.
        self.publish(skel);
    }

    /// CPUs came or went: a new page follows.
    pub fn renew(&mut self, skel: &mut BpfSkel) {
        self.stop(skel);
        self.period = Duration::ZERO;
    }

    /// A period is over.
    pub fn publish(&mut self, skel: &mut BpfSkel) {
        if let Err(error) = self.try_publish(skel) {
            self.give_up(skel, &error);
        }
    }

    fn try_publish(&mut self, skel: &mut BpfSkel) -> Result<()> {
        let Some(publisher) = &mut self.publisher else {
            return Ok(());
        };
        let look = &skel.progs.look_at_neighbours;
        look.test_run(ProgramInput::default())
            .context("cannot look at what runs")?;
        let over = &skel.maps.bss_data.as_ref().context("no .bss")?.period_over;
        publisher.publish((over.word, over.length), self.period, || living(skel))
    }

    fn stop(&mut self, skel: &mut BpfSkel) {
        self.due = never();
        self.publisher = None;
        if let Some(bss) = skel.maps.bss_data.as_mut() {
            bss.neighbours_period = 0;
        }
    }

    fn give_up(&mut self, skel: &mut BpfSkel, why: &anyhow::Error) {
        warn!("there is no page of CPUs: {why:#}");
        self.stop(skel);
    }
}

fn publisher(skel: &BpfSkel) -> Result<Publisher> {
    let bss = skel.maps.bss_data.as_ref().context("no .bss")?;
    let cpus = bss.cpu_topo.iter().enumerate();
    let present = cpus.filter(|(_, cpu)| cpu.present != 0).map(|(id, _)| id);
    Publisher::new(&skel.maps.ledgers, present)
}

fn living(skel: &BpfSkel) -> Result<Vec<Living>> {
    let link = skel.links.process_records.as_ref();
    let link = link.context("no iterator over processes")?;
    Ok(Living::from_records(&rings::records(link)?))
}
