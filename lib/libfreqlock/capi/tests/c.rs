// SPDX-License-Identifier: MIT
//! C programs, compiled against the header, with the static and with the shared library.
#![allow(clippy::unwrap_used)]

use freqlock_c_tests::{compile, install, libraries, run};
use std::path::Path;
use std::process::Command;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Compiles `source` with each of the libraries and runs it; what it printed.
fn run_with_both(source: &Path, include: &Path) -> [String; 2] {
    let (folder, built) = (tempfile::tempdir().unwrap(), libraries("libfreqlock_c"));
    let at = |name: &str| built.join(name).to_string_lossy().into_owned();
    let program = folder.path().join("program");
    let includes = [
        format!("-I{}", include.display()),
        format!("-I{HERE}/../../../bpf"),
    ];
    let compile = |library: &[&str]| {
        let includes = includes.iter().map(String::as_str);
        compile(source, &program, includes.chain(library.iter().copied()));
    };
    compile(&[&at("libfreqlock.a"), "-lm", "-ldl"]);
    let with_static = run(&mut Command::new(&program)).out;
    install(
        &built.join("libfreqlock.so"),
        "libfreqlock.so.1",
        folder.path(),
    );
    compile(&[&at("libfreqlock.so")]);
    let with_shared = run(Command::new(&program).env("LD_LIBRARY_PATH", folder.path())).out;
    [with_static, with_shared]
}

fn passes(name: &str) {
    run_with_both(
        &Path::new(HERE).join("tests").join(name),
        &Path::new(HERE).join("../.."),
    );
}

#[test]
fn each_function_returns_what_the_header_says() {
    passes("misuse.c");
}

#[test]
fn holders_ask_for_more_time_where_the_kernel_has_it() {
    passes("slice.c");
}

#[test]
fn the_scheduler_finds_the_holder() {
    passes("abi.c");
}

#[test]
fn the_example_of_the_documentation_runs() {
    let readme = std::fs::read_to_string(format!("{HERE}/../../README.md")).unwrap();
    let example = readme
        .split("```c\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("example.c");
    std::fs::write(&source, example).unwrap();
    std::os::unix::fs::symlink(format!("{HERE}/../.."), folder.path().join("scx_freqlock"))
        .unwrap();
    assert_eq!(
        run_with_both(&source, folder.path()),
        ["400000 requests served\n"; 2]
    );
}
