// SPDX-License-Identifier: GPL-2.0-only
//! Whether the kernel or the scheduler re-enqueues what real-time and deadline
//! tasks displace (bpf/rt.bpf.c).

use super::skel::OpenBpfSkel;
use anyhow::Result;
use scx_utils::compat::SCX_OPS_ALWAYS_ENQ_IMMED;
use scx_utils::ksym_exists;

/// By what the running kernel has.
pub enum Displaced {
    /// The kernel itself, asked by a flag of the scheduler: from 7.1.
    Kernel,
    /// A hook of each switch: 6.19 and 7.0, which warn of ops.cpu_release.
    Hook,
    /// ops.stopping and ops.cpu_release: up to 6.18.
    Release,
}

impl Displaced {
    /// # Errors
    /// If the kernel's symbols cannot be read.
    pub fn probe() -> Result<Self> {
        Ok(if *SCX_OPS_ALWAYS_ENQ_IMMED != 0 {
            Self::Kernel
        } else if ksym_exists("scx_bpf_reenqueue_local___v2")? {
            Self::Hook
        } else {
            Self::Release
        })
    }

    /// Leaves in the object what is needed here, and nothing else.
    ///
    /// The kernel's flag counts from a task's next enqueue on: not for one that came to
    /// the scheduler while it ran, as a loop does that asks for SCHED_EXT. With `partial` it is to
    /// leave its CPU all the same, so the hook is there as well.
    pub fn choose(&self, skel: &mut OpenBpfSkel, partial: bool) {
        let ops = skel.struct_ops.freqlock_ops_mut();
        if !matches!(self, Self::Release) {
            ops.cpu_release = std::ptr::null_mut();
        }
        if matches!(self, Self::Kernel) {
            ops.flags |= *SCX_OPS_ALWAYS_ENQ_IMMED;
        }
        let hook = match self {
            Self::Kernel => partial,
            Self::Hook => true,
            Self::Release => false,
        };
        skel.progs.rt_takes_cpu.set_autoload(hook);
    }

    pub fn describe(&self) -> &'static str {
        match self {
            Self::Kernel => "by the kernel",
            Self::Hook => "by tracepoint sched_switch",
            Self::Release => "by ops.stopping and ops.cpu_release",
        }
    }
}
