// SPDX-License-Identifier: GPL-2.0-only
//! --adapt on the BPF side: what was done in each context, and the modes in force.

use super::skel::BpfSkel;
use anyhow::{Context, Result};
use freqlock::adapt::Done;
use freqlock::control::Settings;
use freqlock::units;
use libbpf_rs::{MapCore, MapFlags};
use log::info;
use std::time::Instant;

/// Takes the step that is due, and says what it decided. Errors where the BPF side cannot
/// be read.
pub fn step(skel: &mut BpfSkel, settings: &mut Settings) -> Result<()> {
    let read = |place| done(skel, place);
    if let Some(decision) = settings.adapt(Instant::now(), units::now(), read)? {
        info!("{decision}");
    }
    // Modes are read where they stand, so that this counts in all decisions from now on.
    let bss = skel.maps.bss_data.as_mut().context("no .bss")?;
    for (at, policy) in settings.contexts().policies(settings.tunables()) {
        bss.policies[at].mode = policy.mode;
    }
    Ok(())
}

/// What the tasks of the policy at this place did.
fn done(skel: &BpfSkel, place: usize) -> Result<Done> {
    let key = (place as u32).to_ne_bytes();
    let cpus = (skel.maps.done_by_policy.lookup_percpu(&key, MapFlags::ANY))
        .context("cannot read what was done")?;
    Ok(Done::of_cpus(&cpus.unwrap_or_default()))
}
