// SPDX-License-Identifier: GPL-2.0-only
//! The skeleton of the BPF object, generated from bpf/*.bpf.c.

include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
