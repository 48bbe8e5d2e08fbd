// SPDX-License-Identifier: GPL-2.0-only
//! scx_freqlock: the scheduler's command.

mod bpf_skel;

fn main() {
    let _ = bpf_skel::BpfSkelBuilder::default();
}
