// SPDX-License-Identifier: GPL-2.0-only
//! Serves the scheduler that is attached: requests, changes of knobs, what comes from the
//! BPF side, and why it ended.

use super::hotplug::Change;
use super::load::{Learned, Scheduler};
use super::neighbours::CpusPage;
use super::rings::{self, Rings, Watch};
use super::speeds_writer::Speeds;
use super::{rules, trials};
use crate::opts::VERSION;
use crate::signals::Signals;
use anyhow::{Context, Result};
use crossbeam::channel::{at, never, select, tick, Receiver};
use freqlock::context::InForce;
use freqlock::control;
use freqlock::ending::ExitInfo;
use freqlock::freq::Source;
use freqlock::raw::text;
use freqlock::stats::{self, Request, Response};
use freqlock::telemetry::Collector;
use freqlock::{output, store_tunables, units};
use log::{info, warn};
use scx_stats::prelude::StatsServer;
use scx_utils::{uei_exited, SCX_ECODE_ACT_RESTART};
use std::cell::RefCell;
use std::ffi::CStr;
use std::time::Duration;

/// How often is looked whether the kernel ended it: there is nothing to wait on.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A server on the socket that scx_stats clients know.
pub fn stats_server() -> Result<StatsServer<Request, Response>> {
    StatsServer::new(stats::server_data())
        .launch()
        .context("cannot offer statistics")
}

impl Scheduler<'_> {
    /// Serves until it ends or is told to, and detaches.
    pub fn run(
        &mut self,
        server: &StatsServer<Request, Response>,
        learned: &mut Learned,
        asked: &Receiver<control::Asked>,
        signals: &Signals,
    ) -> Result<ExitInfo> {
        let (answers, requests) = server.channels();
        let rings = Rings::new(&self.skel.maps)?;
        let collector = RefCell::new(Collector::default());
        let reports = rings.read_into(&collector)?;
        let watch = Watch::start(&reports)?;
        let look = tick(LOOK_EVERY);
        let mut page = CpusPage::none();
        let mut speeds = Speeds::none();
        let policies = std::mem::take(&mut learned.policies);
        if let Some(settings) = &learned.settings {
            self.restore_policies(policies, settings.contexts());
        }
        let mut signalled = false;
        let mut reload = None;
        while !signalled && reload.is_none() && !self.exited() {
            if let Some(settings) = &learned.settings {
                page.follow(&mut self.skel, settings.tunables().cpus_ms);
                speeds.follow(&self.skel, settings.tunables().speeds_ms);
            }
            let next = learned.settings.as_ref().and_then(|s| s.next_trial());
            let trial = next.map_or_else(never, at);
            select! {
                recv(requests) -> request => {
                    rings::take_in(&reports)?;
                    let answer = self.answer(request?, &collector);
                    answers.send(answer).context("the statistics server is gone")?;
                }
                recv(watch.ready) -> _ => rings::take_in(&reports)?,
                recv(asked) -> asked => {
                    let asked = asked.context("nobody listens for changes of knobs")?;
                    // The client may be gone.
                    drop(asked.answer.send(self.answer_control(&asked, learned)?));
                }
                recv(signals.reload) -> _ => self.reload(learned)?,
                recv(signals.end) -> _ => signalled = true,
                recv(look) -> _ => {
                    rings::take_in(&reports)?;
                    self.rescue_starved()?;
                    self.judge_policies()?;
                    match self.cpus.follow(&mut self.skel)? {
                        Change::None => {}
                        Change::Told => page.renew(&mut self.skel),
                        Change::Reload(why) => reload = Some(why),
                    }
                }
                recv(page.due) -> _ => page.publish(&mut self.skel),
                recv(speeds.due) -> _ => speeds.publish(&self.skel),
                recv(trial) -> _ => {
                    let settings = learned.settings.as_mut().context("no settings")?;
                    trials::step(&mut self.skel, settings)?;
                }
            }
            self.upgrade_source();
        }
        learned.policies = self.policy_sources();
        drop(self.link.take());
        if let Some(why) = reload {
            return Ok(ExitInfo {
                reason: why.into(),
                restart: true,
                ..ExitInfo::default()
            });
        }
        Ok(self.exit_info(signalled))
    }

    /// Why the kernel ended it, if it did.
    pub fn exit_info(&self, signalled: bool) -> ExitInfo {
        let Some(data) = self.skel.maps.data_data.as_ref() else {
            return ExitInfo::default();
        };
        ExitInfo {
            kind: data.uei.kind as u64,
            reason: text(&data.uei.reason).raw().trim().into(),
            message: text(&data.uei.msg).raw().trim().into(),
            restart: data.uei.exit_code as u64 & *SCX_ECODE_ACT_RESTART != 0,
            signalled,
            partial: self.partial(),
        }
    }

    fn partial(&self) -> bool {
        (self.skel.maps.rodata_data.as_ref()).is_some_and(|rodata| rodata.partial)
    }

    /// Prints the kernel's dump of its state, if it made one.
    pub fn print_dump(&self) {
        // Not report(), which panics where it cannot write.
        let Ok(dump) = scx_utils::UEI_DUMP_PTR_MUTEX.lock() else {
            return;
        };
        if !dump.ptr.is_null() {
            // SAFETY: where the map begins that the kernel has filled with a string, which
            // lives as long as the skeleton.
            let text = unsafe { CStr::from_ptr(dump.ptr.cast()) }.to_string_lossy();
            match text.trim() {
                "" => output::say("the kernel made no dump of its state"),
                text => output::say(format_args!("the kernel's dump of its state:\n{text}\n")),
            }
        }
    }

    fn exited(&self) -> bool {
        uei_exited!(&self.skel, uei)
    }

    /// Changes knobs and contexts, or reports them.
    fn answer_control(
        &mut self,
        asked: &control::Asked,
        learned: &mut Learned,
    ) -> Result<control::Answer> {
        let settings = learned.settings.as_mut().context("no settings")?;
        if let Some(answer) = self.answer_policies(&asked.request, settings.contexts()) {
            return Ok(answer);
        }
        let look = |pid| rules::look(&mut self.skel, pid);
        let mut answer = settings.answer(&asked.request, asked.by, units::now(), look);
        match &mut answer {
            control::Answer::Status(running) => {
                running.version.clone_from(&VERSION);
                // The last line, of contexts, is as it was at start.
                running.about = self.about[..self.about.len() - 1].to_vec();
            }
            control::Answer::Changed(changes) => {
                self.store(settings)?;
                for change in changes.iter() {
                    info!("{change}");
                }
            }
            control::Answer::Reloaded(contexts) => {
                self.store(settings)?;
                self.follow_contexts(settings.contexts())?;
                info!("{contexts}");
            }
            _ => {}
        }
        Ok(answer)
    }

    /// Loads policies by users, takes them out or lists them, if that is asked for.
    fn answer_policies(
        &mut self,
        request: &control::Request,
        contexts: &InForce,
    ) -> Option<control::Answer> {
        let (done, answer) = match request {
            control::Request::LoadPolicy(wanted) => {
                let done = if wanted.check { None } else { Some("loaded") };
                (
                    done,
                    self.load_policy(wanted, contexts).map(|one| vec![one]),
                )
            }
            control::Request::UnloadPolicy(name) => (
                Some("unloaded"),
                self.unload_policy(name).map(|one| vec![one]),
            ),
            control::Request::Policies => (None, self.list_policies()),
            _ => return None,
        };
        Some(match answer {
            Ok(policies) => {
                if let Some(done) = done {
                    policies
                        .iter()
                        .for_each(|policy| info!("{done} policy {policy}"));
                }
                control::Answer::Policies(policies)
            }
            Err(why) => control::Answer::Error(format!("{why:#}")),
        })
    }

    /// Reads the file of contexts again, as a signal asks for.
    fn reload(&mut self, learned: &mut Learned) -> Result<()> {
        let settings = learned.settings.as_mut().context("no settings")?;
        match settings.reload() {
            Ok(contexts) => {
                self.store(settings)?;
                self.follow_contexts(settings.contexts())?;
                info!("{contexts}");
            }
            Err(error) => warn!("contexts stay as they are: {error:#}"),
        }
        Ok(())
    }

    /// Knobs are stored one after the other: a decision that the kernel takes within these
    /// nanoseconds may see some of several that change at once.
    fn store(&mut self, settings: &control::Settings) -> Result<()> {
        let bss = self.skel.maps.bss_data.as_mut().context("no .bss")?;
        store_tunables!(settings.tunables(), bss.tunables);
        rules::store(bss, settings.contexts(), settings.tunables());
        Ok(())
    }

    fn upgrade_source(&mut self) {
        let maps = &mut self.skel.maps;
        let varies = maps.bss_data.as_ref().is_some_and(|bss| bss.cpuperf_varies);
        if let (true, true, Some(data)) = (self.upgrade, varies, maps.data_data.as_mut()) {
            data.freq_source = Source::Cpuperf as u32;
            self.upgrade = false;
            info!("CPU speed: cpuperf from now on, since it was seen to vary");
        }
    }
}
