// SPDX-License-Identifier: GPL-2.0-only
//! Compiles and links bpf/*.bpf.c and generates the skeleton from them.

use std::error::Error;
use std::path::PathBuf;

/// Where the policy's sources are, seen from this package.
const BPF: &str = "../../bpf";

/// A BPF object of its own, which watches any scheduler.
const APART: &str = "observe.bpf.c";

fn main() -> Result<(), Box<dyn Error>> {
    let mut sources: Vec<PathBuf> = std::fs::read_dir(BPF)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    sources.retain(|p| {
        let name = p.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".bpf.c") && name != APART && name != "main.bpf.c"
    });
    sources.sort();

    let mut builder = scx_cargo::BpfBuilder::new()?;
    builder.enable_skel(&format!("{BPF}/main.bpf.c"), "bpf");
    for source in &sources {
        builder.add_source(&source.to_string_lossy());
    }
    builder.compile_link_gen()?;
    scx_cargo::BpfBuilder::new()?
        .enable_skel(&format!("{BPF}/{APART}"), "observe")
        .build()?;

    // A new file, and the headers below bpf/policy, are not seen by the builder.
    println!("cargo:rerun-if-changed={BPF}");
    Ok(())
}
