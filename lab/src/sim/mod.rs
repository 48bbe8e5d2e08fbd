// SPDX-License-Identifier: GPL-2.0-only
//! Simulated machines: real kernels in QEMU whose CPUs have the speeds of a model
//! (machine/README.md).
//!
//! [`description`] reads machine/*.toml, [`flat`] writes it for the plugin,
//! [`devicetree`] and [`cpufreq`] for an arm64 guest, [`kit`] and [`image`] make what is
//! booted, [`qemu`] runs it with [`guest`] on the other side, [`record`] and [`timeline`]
//! are what it leaves. [`job`] is all of that for one command, [`batch`] several side by
//! side, [`workload`] what runs of bench/ have in common, and [`run`] the commands
//! `machine list` and `machine run`.

mod arch;
pub mod batch;
mod cpufreq;
pub mod description;
mod devicetree;
pub mod error;
pub mod flat;
pub mod folders;
pub mod guest;
pub mod image;
pub mod job;
pub mod kit;
mod qemu;
pub mod record;
pub mod run;
mod timeline;
pub mod workload;
