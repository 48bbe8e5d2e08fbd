// SPDX-License-Identifier: MIT
//! A C program, compiled against the header, with the static and with the shared library.
#![allow(clippy::unwrap_used)]

use freqlock_c_tests::{compile, install, libraries, run};
use std::path::Path;
use std::process::Command;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn each_function_returns_what_the_header_says() {
    let (folder, built) = (tempfile::tempdir().unwrap(), libraries("friendlypool_c"));
    let at = |name: &str| built.join(name).to_string_lossy().into_owned();
    let program = folder.path().join("program");
    let include = format!("-I{HERE}/../..");
    let compile = |more: &[&str]| {
        let source = Path::new(HERE).join("tests/pool.c");
        let more = std::iter::once(include.as_str()).chain(more.iter().copied());
        compile(&source, &program, more);
    };
    compile(&[&at("libfriendlypool.a"), "-lm", "-ldl"]);
    assert_eq!(run(&mut Command::new(&program)).out, "ok\n");
    install(
        &built.join("libfriendlypool.so"),
        "libfriendlypool.so.1",
        folder.path(),
    );
    for more in [&[][..], &["-fopenmp"]] {
        compile(&[&[at("libfriendlypool.so").as_str()], more].concat());
        let mut shared = Command::new(&program);
        shared.env("LD_LIBRARY_PATH", folder.path());
        assert_eq!(run(&mut shared).out, "ok\n");
    }
}
