// SPDX-License-Identifier: GPL-2.0-only
//! Bindings of bpf/observe.h.
#![allow(non_camel_case_types, non_upper_case_globals, dead_code)]
#![allow(clippy::all)]
#![allow(missing_docs)] // generated: what they mean stands in the header

include!(concat!(env!("OUT_DIR"), "/observe.rs"));
