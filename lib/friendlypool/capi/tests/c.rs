// SPDX-License-Identifier: MIT
//! A C program, compiled against the header, with the static and with the shared library.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{said}",
        output.status
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Where the library is. Cargo builds none for tests that cannot link it as Rust.
fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().nth(3).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--locked", "--offline"]);
    cargo.args(["--package", "friendlypool_c", "--target-dir"]);
    run(cargo.arg(target).current_dir(HERE));
    target.join("release")
}

fn compile(program: &Path, more: &[&str]) {
    let mut cc = Command::new("cc");
    cc.args([
        "-std=gnu11",
        "-O2",
        "-pthread",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]);
    cc.arg(format!("-I{HERE}/../..")).arg("-o").arg(program);
    run(cc.arg(format!("{HERE}/tests/pool.c")).args(more));
}

#[test]
fn each_function_returns_what_the_header_says() {
    let (folder, built) = (tempfile::tempdir().unwrap(), built());
    let at = |name: &str| built.join(name).to_string_lossy().into_owned();
    let program = folder.path().join("program");
    // Found by its soname, as once it is installed.
    let soname = folder.path().join("libfriendlypool.so.1");
    std::os::unix::fs::symlink(at("libfriendlypool.so"), soname).unwrap();
    compile(&program, &[&at("libfriendlypool.a"), "-lm", "-ldl"]);
    assert_eq!(run(&mut Command::new(&program)), "ok\n");
    for more in [&[][..], &["-fopenmp"]] {
        compile(
            &program,
            &[&[at("libfriendlypool.so").as_str()], more].concat(),
        );
        let mut shared = Command::new(&program);
        assert_eq!(run(shared.env("LD_LIBRARY_PATH", folder.path())), "ok\n");
    }
}
