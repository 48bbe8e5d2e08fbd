// SPDX-License-Identifier: GPL-2.0-only
//! Loads scx_floor, and ends when it is asked to or the kernel ends it.

mod skel {
    //! The skeleton of the BPF object.
    // What the generator writes is not ours to judge.
    #![allow(clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
    include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
}

use anyhow::{Context, Result};
use scx_utils::{scx_ops_attach, scx_ops_load, scx_ops_open, uei_exited, uei_report};
use std::mem::MaybeUninit;
use std::sync::mpsc;
use std::time::Duration;

/// How often it looks whether the kernel has ended it.
const LOOK: Duration = Duration::from_millis(500);

fn main() -> Result<()> {
    let (ask, asked) = mpsc::channel();
    ctrlc::set_handler(move || ask.send(()).unwrap_or_default())
        .context("signals cannot be handled")?;
    let mut storage = MaybeUninit::uninit();
    let builder = skel::BpfSkelBuilder::default();
    let mut skel = scx_ops_open!(builder, &mut storage, floor_ops, None)?;
    let mut skel = scx_ops_load!(skel, floor_ops, uei)?;
    let link = scx_ops_attach!(skel, floor_ops)?;
    while !uei_exited!(&skel, uei) {
        if asked.recv_timeout(LOOK) != Err(mpsc::RecvTimeoutError::Timeout) {
            break;
        }
    }
    drop(link);
    uei_report!(&skel, uei).map(drop)
}
