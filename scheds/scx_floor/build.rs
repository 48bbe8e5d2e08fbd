// SPDX-License-Identifier: GPL-2.0-only
//! Compiles src/main.bpf.c and generates the skeleton from it.

fn main() -> anyhow::Result<()> {
    scx_cargo::BpfBuilder::new()?
        .enable_skel("src/main.bpf.c", "bpf")
        .build()
}
