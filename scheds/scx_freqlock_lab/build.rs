// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the BPF side of scx_rustland_core, which passes tasks to user space and takes
//! decisions back, and src/watch.bpf.c.

use anyhow::{ensure, Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set for the process that makes the first of them.
const INSIDE: &str = "LAB_BUILDS_RUSTLAND";

fn main() -> Result<()> {
    if std::env::var_os(INSIDE).is_some() {
        return scx_rustland_core::RustLandBuilder::new()?.build();
    }
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    build_rustland(&out)?;
    scx_cargo::BpfBuilder::new()?
        .add_include_path("../../bpf")
        .enable_intf("src/watch.h", "watch.rs")
        .enable_skel("src/watch.bpf.c", "watch")
        .build()?;
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    Ok(())
}

/// Its builder writes sources into the present folder, and takes them for the package's. So it
/// works elsewhere, in a process of its own, and what it tells cargo of those files is dropped.
fn build_rustland(out: &Path) -> Result<()> {
    std::fs::create_dir_all(out.join("src"))?;
    let output = Command::new(std::env::current_exe()?)
        .env(INSIDE, "1")
        .current_dir(out)
        .output()
        .context("cannot start the builder of scx_rustland_core")?;
    ensure!(
        output.status.success(),
        "scx_rustland_core does not build: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
