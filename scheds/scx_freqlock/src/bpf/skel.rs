// SPDX-License-Identifier: GPL-2.0-only
//! The skeleton of the BPF object, generated from bpf/*.bpf.c.
// What the generator writes is not ours to judge.
#![allow(clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]

include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
