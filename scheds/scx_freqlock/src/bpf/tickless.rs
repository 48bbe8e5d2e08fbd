// SPDX-License-Identifier: GPL-2.0-only
//! CPUs without ticks, those of nohz_full (bpf/alone.bpf.c).

use super::skel::OpenBpfSkel;
use anyhow::{Context, Result};
use freqlock::apart::{self, Cpus};
use scx_utils::compat::SCX_OPS_ENQ_EXITING;

/// Tells the object of them; without any, it is as it is elsewhere.
pub fn choose(skel: &mut OpenBpfSkel, cpus: &Cpus) -> Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    // The kernel would put a task that exits behind one whose slice never ends.
    skel.struct_ops.freqlock_ops_mut().flags |= *SCX_OPS_ENQ_EXITING;
    let rodata = skel.maps.rodata_data.as_mut().context("no .rodata")?;
    rodata.tickless = true;
    for &cpu in cpus {
        if let Some(tickless) = rodata.tickless_cpus.get_mut(cpu) {
            *tickless = true;
        }
    }
    Ok(())
}

/// What is to be said of them at start.
pub fn describe(cpus: &Cpus) -> String {
    let cpus = apart::list(cpus);
    format!("without ticks (nohz_full): CPUs {cpus}; a task alone there runs until another comes")
}
