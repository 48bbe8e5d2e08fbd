// SPDX-License-Identifier: GPL-2.0-only
//! Compiles and links bpf/*.bpf.c and generates the skeleton from them.

use std::error::Error;
use std::path::PathBuf;

/// Where the policy's sources are, seen from this package.
const BPF: &str = "../../bpf";

/// BPF objects of their own, which watch any scheduler.
const APART: [&str; 3] = ["decisions", "observe", "record"];

fn main() -> Result<(), Box<dyn Error>> {
    let mut sources: Vec<PathBuf> = std::fs::read_dir(BPF)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    sources.retain(|p| {
        let name = p.file_name().unwrap_or_default().to_string_lossy();
        let is_apart = APART.iter().any(|object| name == format!("{object}.bpf.c"));
        name.ends_with(".bpf.c") && name != "main.bpf.c" && !is_apart
    });
    sources.sort();

    let mut builder = scx_cargo::BpfBuilder::new()?;
    builder.enable_skel(&format!("{BPF}/main.bpf.c"), "bpf");
    for source in &sources {
        builder.add_source(&source.to_string_lossy());
    }
    builder.compile_link_gen()?;
    for object in APART {
        scx_cargo::BpfBuilder::new()?
            .enable_skel(&format!("{BPF}/{object}.bpf.c"), object)
            .build()?;
    }

    // A new file, and the headers below bpf/policy, are not seen by the builder.
    println!("cargo:rerun-if-changed={BPF}");
    Ok(())
}
