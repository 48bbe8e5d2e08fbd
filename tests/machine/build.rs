// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the machine's model, the reader of its flat file and what looks into
//! QEMU for the host, with traps on undefined behaviour, and makes bindings.

use std::error::Error;
use std::path::PathBuf;

const PLUGIN: &str = "../../machine/plugin";

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    bindgen::Builder::default()
        .header(format!("{PLUGIN}/config.h"))
        .header(format!("{PLUGIN}/qemu.h"))
        .allowlist_function("(model|config|accel)_.*")
        .allowlist_type("model_distance|qemu")
        .allowlist_var("(MODEL|CF)_.*|qemu")
        .default_enum_style(bindgen::EnumVariation::Consts)
        .prepend_enum_name(false)
        .parse_callbacks(Box::new(bindgen::CargoCallbacks::new()))
        .generate()?
        .write_to_file(out.join("model.rs"))?;
    cc::Build::new()
        .compiler(std::env::var("BPF_CLANG").unwrap_or_else(|_| "clang".into()))
        .files(["model.c", "config.c", "accel.c"].map(|file| format!("{PLUGIN}/{file}")))
        .file("src/qemu.c")
        .define("_GNU_SOURCE", None)
        .flag("-fsanitize=undefined")
        .flag("-fsanitize-trap=all")
        .warnings_into_errors(true)
        .try_compile("model")?;
    println!("cargo:rerun-if-changed={PLUGIN}");
    println!("cargo:rerun-if-changed=src/qemu.c");
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    Ok(())
}
