// SPDX-License-Identifier: GPL-2.0-only
//! Bindings of lib/speeds_page.h.
#![allow(non_camel_case_types, non_upper_case_globals, dead_code)]
#![allow(clippy::all)]

include!(concat!(env!("OUT_DIR"), "/speeds_page.rs"));
