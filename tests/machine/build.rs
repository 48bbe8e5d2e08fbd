// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the machine's model and the reader of its flat file for the host,
//! with traps on undefined behaviour, and makes bindings of both.

use std::error::Error;
use std::path::PathBuf;

const PLUGIN: &str = "../../machine/plugin";

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    bindgen::Builder::default()
        .header(format!("{PLUGIN}/config.h"))
        .allowlist_function("(model|config)_.*")
        .allowlist_type("model_distance")
        .allowlist_var("MODEL_.*")
        .default_enum_style(bindgen::EnumVariation::Consts)
        .prepend_enum_name(false)
        .parse_callbacks(Box::new(bindgen::CargoCallbacks::new()))
        .generate()?
        .write_to_file(out.join("model.rs"))?;
    cc::Build::new()
        .compiler(std::env::var("BPF_CLANG").unwrap_or_else(|_| "clang".into()))
        .files([format!("{PLUGIN}/model.c"), format!("{PLUGIN}/config.c")])
        .define("_GNU_SOURCE", None)
        .flag("-fsanitize=undefined")
        .flag("-fsanitize-trap=all")
        .warnings_into_errors(true)
        .try_compile("model")?;
    println!("cargo:rerun-if-changed={PLUGIN}");
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    Ok(())
}
