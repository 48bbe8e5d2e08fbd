// SPDX-License-Identifier: GPL-2.0-only
//! What becomes of policies by users while the scheduler runs: they are loaded, swapped, listed
//! and taken out.

use super::load::Scheduler;
use super::user_policies::{targets, Active, Source};
use anyhow::{bail, ensure, Context, Result};
use freqlock::context::InForce;
use freqlock::intf;
use freqlock::user_policy::{Error, Hook, Loaded, Wanted};
use libbpf_rs::Program;
use log::{info, warn};
use std::os::fd::AsFd;
use std::time::Instant;

impl Scheduler<'_> {
    /// Loads a policy, or has it verified alone.
    pub(super) fn load_policy(&mut self, wanted: &Wanted, contexts: &InForce) -> Result<Loaded> {
        let source = Source::read(wanted)?;
        self.take_policy(source, wanted.check, contexts)
    }

    fn take_policy(&mut self, source: Source, check: bool, contexts: &InForce) -> Result<Loaded> {
        let hooks = source.hooks()?;
        let whose = source.whose(contexts)?;
        let sees_locks = self.sees_locks();
        for hook in &hooks {
            ensure!(
                sees_locks || !hook.needs_locks(),
                Error::NoLocks(hook.name())
            );
            let others = self
                .policies
                .0
                .iter()
                .filter(|other| other.source.name != source.name);
            if let Some(other) = others.into_iter().find(|other| other.hooks.contains(hook)) {
                let (hook, by) = (hook.name(), other.source.name.clone());
                bail!(Error::Taken { hook, by });
            }
        }
        let sign = Program::id_from_fd(self.skel.progs.freqlock_tick.as_fd())?;
        let calls = self.skel.maps.bss_policy.as_fd();
        let verified = source.verify(&hooks, &targets(sign)?, calls)?;
        let programs = verified.objects.len();
        if check {
            return Ok(Loaded {
                name: source.name,
                context: source.context,
                hooks: hooks.iter().map(|hook| hook.name().into()).collect(),
                programs,
                ..Loaded::default()
            });
        }
        let begin = Instant::now();
        // For a moment both answer, and one of them is heard.
        let links = verified.attach()?;
        self.drop_policy(&source.name)?;
        for hook in &verified.hooks {
            self.ask(*hook, whose)?;
        }
        self.policies.0.push(Active {
            source,
            hooks: verified.hooks,
            programs,
            swap_us: begin.elapsed().as_micros() as u64,
            links,
            _objects: verified.objects,
        });
        let all = self.list_policies()?;
        all.into_iter().next_back().context("a policy is gone")
    }

    /// The policies that are asked, and what they took.
    pub(super) fn list_policies(&self) -> Result<Vec<Loaded>> {
        let bss = self.skel.maps.bss_data.as_ref().context("no .bss")?;
        let loaded = |active: &Active| {
            let hooks = active.hooks.iter().map(|hook| &bss.hooks[*hook as usize]);
            let (timed, ns) = hooks.fold((0, 0), |(timed, ns), hook| {
                (timed + hook.timed, ns + hook.ns)
            });
            Loaded {
                name: active.source.name.clone(),
                context: active.source.context.clone(),
                hooks: active.hooks.iter().map(|hook| hook.name().into()).collect(),
                programs: active.programs,
                swap_us: Some(active.swap_us),
                timed,
                mean_ns: ns.checked_div(timed).unwrap_or_default(),
            }
        };
        Ok(self.policies.0.iter().map(loaded).collect())
    }

    /// Takes a policy out, and says what it was.
    pub(super) fn unload_policy(&mut self, name: &str) -> Result<Loaded> {
        let all = self.list_policies()?;
        let found = all.into_iter().find(|loaded| loaded.name == name);
        let found = found.ok_or_else(|| Error::NoPolicy(name.into()))?;
        self.drop_policy(name)?;
        Ok(found)
    }

    /// Policies that were loaded before the scheduler was loaded again.
    pub(super) fn restore_policies(&mut self, sources: Vec<Source>, contexts: &InForce) {
        for source in sources {
            let name = source.name.clone();
            match self.take_policy(source, false, contexts) {
                Ok(loaded) => info!("policy {loaded}"),
                Err(why) => warn!("policy {name} is not loaded again: {why:#}"),
            }
        }
    }

    /// What is to be loaded again after this one.
    pub(super) fn policy_sources(&self) -> Vec<Source> {
        self.policies
            .0
            .iter()
            .map(|active| active.source.clone())
            .collect()
    }

    /// Contexts changed: those of policies may have other numbers, or be gone.
    pub(super) fn follow_contexts(&mut self, contexts: &InForce) -> Result<()> {
        let mut gone = Vec::new();
        let whose = |active: &Active| (active.hooks.clone(), active.source.whose(contexts));
        let all: Vec<_> = self.policies.0.iter().map(whose).collect();
        for (place, (hooks, whose)) in all.into_iter().enumerate() {
            match whose {
                Ok(whose) => (hooks.into_iter()).try_for_each(|hook| self.ask(hook, whose))?,
                Err(why) => {
                    let name = self.policies.0[place].source.name.clone();
                    warn!("policy {name} is taken out: {why}");
                    gone.push(name);
                }
            }
        }
        gone.iter().try_for_each(|name| self.drop_policy(name))
    }

    /// Takes out those that took too long, about which nobody is asked any more.
    pub(super) fn judge_policies(&mut self) -> Result<()> {
        let bss = self.skel.maps.bss_data.as_ref().context("no .bss")?;
        let slow = |hook: &Hook| {
            let hook = &bss.hooks[*hook as usize];
            (hook.slow != 0).then(|| hook.ns.checked_div(hook.timed).unwrap_or_default())
        };
        let mut out = Vec::new();
        for active in &self.policies.0 {
            let found = active
                .hooks
                .iter()
                .find_map(|hook| Some((hook.name(), slow(hook)?)));
            if let Some((hook, ns)) = found {
                let name = active.source.name.clone();
                warn!("policy {name} is taken out: {hook} took {ns} ns a call, more than policy_max_ns");
                out.push(name);
            }
        }
        out.iter().try_for_each(|name| self.drop_policy(name))
    }

    fn drop_policy(&mut self, name: &str) -> Result<()> {
        let all = &mut self.policies.0;
        let Some(place) = all.iter().position(|active| active.source.name == name) else {
            return Ok(());
        };
        let active = all.remove(place);
        for hook in &active.hooks {
            self.ask(*hook, intf::fl_hook_whose_FL_HOOK_OFF)?;
        }
        drop(active.links);
        Ok(())
    }

    /// About whom the policy for a decision is asked; what it takes is counted anew.
    fn ask(&mut self, hook: Hook, whose: u32) -> Result<()> {
        let bss = self.skel.maps.bss_data.as_mut().context("no .bss")?;
        let hook = &mut bss.hooks[hook as usize];
        (hook.timed, hook.ns, hook.slow) = (0, 0, 0);
        hook.whose = whose;
        Ok(())
    }

    fn sees_locks(&self) -> bool {
        let rodata = self.skel.maps.rodata_data.as_ref();
        rodata.is_some_and(|rodata| rodata.sees_locks)
    }
}
