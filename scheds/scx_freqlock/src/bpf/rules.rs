// SPDX-License-Identifier: GPL-2.0-only
//! Contexts on the BPF side: how they get there, and what it has of a task.

use super::skel::{types, BpfSkel};
use anyhow::{Context, Result};
use freqlock::context::{InForce, Seen};
use freqlock::knobs::Tunables;
use freqlock::raw::text;
use freqlock::store_policy;
use libbpf_rs::ProgramInput;
use std::sync::atomic::{AtomicU32, Ordering};

/// Writes rules and policies, then the version by which they count. Decisions that go
/// on meanwhile have what was there before, in the other bank.
pub fn store(bss: &mut types::bss, contexts: &InForce, tunables: Tunables) {
    for (at, rule) in contexts.rules() {
        let to = &mut bss.rules[at];
        to.asks = rule.asks;
        to.uid = rule.uid;
        for (to, glob) in to.glob.iter_mut().zip(rule.glob) {
            to.pattern = glob.pattern;
        }
    }
    for (at, policy) in contexts.policies(tunables) {
        store_policy!(policy, bss.policies[at]);
    }
    // SAFETY: aligned, valid for as long as the reference, and written by nobody else.
    let version = unsafe { AtomicU32::from_ptr(&mut bss.contexts_version) };
    version.store(contexts.version(), Ordering::Release);
}

/// What the BPF side has of a task; none if it has no such task.
pub fn look(skel: &mut BpfSkel, pid: u32) -> Result<Option<Seen>> {
    let bss = skel.maps.bss_data.as_mut().context("no .bss")?;
    bss.explained.pid = pid;
    (skel.progs.context_explain)
        .test_run(ProgramInput::default())
        .context("cannot look at a task")?;
    let bss = skel.maps.bss_data.as_ref().context("no .bss")?;
    let explained = &bss.explained;
    if explained.found == 0 {
        return Ok(None);
    }
    let comm = explained.traits.comm.map(u64::to_ne_bytes).concat();
    Ok(Some(Seen {
        tgid: explained.tgid,
        context: explained.context,
        policy: explained.policy,
        weight: explained.weight,
        // Users have 32 bits; the word is longer to be compared with others of its size.
        uid: explained.traits.uid as u32,
        command: text(&comm),
        cgroup: text(&explained.path),
    }))
}
