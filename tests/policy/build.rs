// SPDX-License-Identifier: GPL-2.0-only
//! Compiles every bpf/policy/*.h for the host and makes bindings of it: the
//! tests run the same C as the kernel does. The C is compiled with traps on
//! undefined behaviour, so an overflow that the BPF compiler might exploit ends
//! the test.

use std::error::Error;
use std::path::{Path, PathBuf};

const BPF: &str = "../../bpf";

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let include = format!("-I{}", Path::new(BPF).canonicalize()?.display());
    let all = out.join("policy.h");
    std::fs::write(&all, umbrella()?)?;
    let all = all.to_string_lossy();

    let wrappers = out.join("wrappers.c");
    bindgen::Builder::default()
        .header(all.as_ref())
        .clang_arg(&include)
        .default_enum_style(bindgen::EnumVariation::Consts)
        .prepend_enum_name(false)
        .wrap_static_fns(true)
        .wrap_static_fns_path(&wrappers)
        .parse_callbacks(Box::new(bindgen::CargoCallbacks::new()))
        .generate()?
        .write_to_file(out.join("policy.rs"))?;
    cc::Build::new()
        .compiler(std::env::var("BPF_CLANG").unwrap_or_else(|_| "clang".into()))
        .file(&wrappers)
        .flag(&include)
        .include("/")
        .flag("-fsanitize=undefined")
        .flag("-fsanitize-trap=all")
        .try_compile("policy")?;

    println!("cargo:rerun-if-changed={BPF}");
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    Ok(())
}

/// A header that includes every header of the policy.
fn umbrella() -> Result<String, Box<dyn Error>> {
    let mut headers: Vec<_> = std::fs::read_dir(format!("{BPF}/policy"))?
        .map(|entry| entry.map(|e| e.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_, _>>()?;
    headers.retain(|name| name.ends_with(".h"));
    headers.sort();
    Ok(std::iter::once("#include <stdbool.h>\n".to_string())
        .chain(headers.iter().map(|h| format!("#include \"policy/{h}\"\n")))
        .collect())
}
