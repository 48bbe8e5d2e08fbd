// SPDX-License-Identifier: GPL-2.0-only
//! With --partial, where the kernel reserves no CPU time for tasks of SCHED_EXT: those that
//! starve behind others become normal tasks (bpf/late.bpf.c says why).

use super::load::Scheduler;
use crate::policy;
use anyhow::{Context, Result};
use libbpf_rs::Iter;
use log::warn;
use std::io::Read;

impl Scheduler<'_> {
    /// Makes normal tasks of those that starve; does nothing where that is not asked for.
    pub(super) fn rescue_starved(&self) -> Result<()> {
        let Some(link) = &self.skel.links.starved_tasks else {
            return Ok(());
        };
        let mut pids = Vec::new();
        Iter::new(link)
            .map_err(anyhow::Error::from)
            .and_then(|mut iter| Ok(iter.read_to_end(&mut pids)?))
            .context("cannot look for starving tasks")?;
        let (pids, _) = pids.as_chunks();
        for pid in pids.iter().map(|pid| i32::from_ne_bytes(*pid)) {
            match policy::make_normal(pid) {
                Ok(()) => warn!(
                    "task {pid} got no CPU beside tasks of the kernel's scheduler: it is one of \
                     them from now on"
                ),
                Err(error) => warn!(
                    "task {pid} gets no CPU beside tasks of the kernel's scheduler, and cannot \
                     be made one of them: {}",
                    error.desc()
                ),
            }
        }
        Ok(())
    }
}
