// SPDX-License-Identifier: MIT
//! C programs, compiled against the header, with the static and with the shared library.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Where the library is. Cargo builds none for tests that cannot link it as Rust.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let target = test.ancestors().nth(3).unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([
            "build",
            "--release",
            "--locked",
            "--offline",
            "--package",
            "libfreqlock_c",
        ]);
        run(cargo.arg("--target-dir").arg(target).current_dir(HERE));
        target.join("release")
    })
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        output.status.success(),
        "{command:?}: {}\n{said}",
        output.status
    );
    said
}

fn compile(source: &Path, include: &Path, program: &Path, library: &[&str]) {
    let flags = [
        "-std=gnu11",
        "-O2",
        "-pthread",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-UNDEBUG",
    ];
    let mut cc = Command::new("cc");
    cc.args(flags)
        .arg("-I")
        .arg(include)
        .args(["-I", &format!("{HERE}/../../../bpf")]);
    run(cc.arg("-o").args([program, source]).args(library));
}

/// Compiles `source` with each of the libraries and runs it; what it printed.
fn run_with_both(source: &Path, include: &Path) -> [String; 2] {
    let (folder, built) = (tempfile::tempdir().unwrap(), built());
    let at = |name: &str| built.join(name).to_string_lossy().into_owned();
    let program = folder.path().join("program");
    compile(
        source,
        include,
        &program,
        &[&at("libfreqlock.a"), "-lm", "-ldl"],
    );
    let with_static = run(&mut Command::new(&program));
    // Found by its soname, as once it is installed.
    std::os::unix::fs::symlink(at("libfreqlock.so"), folder.path().join("libfreqlock.so.1"))
        .unwrap();
    compile(source, include, &program, &[&at("libfreqlock.so")]);
    let with_shared = run(Command::new(&program).env("LD_LIBRARY_PATH", folder.path()));
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

/// Beside a mutex of glibc.
#[test]
fn an_uncontended_lock_costs_at_most_five_nanoseconds_more() {
    let cost = |printed: &str, name: &str| -> f64 {
        let word = printed
            .split_whitespace()
            .find_map(|word| word.strip_prefix(name));
        word.unwrap().parse().unwrap()
    };
    let source = Path::new(HERE).join("tests/cost.c");
    for printed in run_with_both(&source, &Path::new(HERE).join("../..")) {
        print!("{printed}");
        assert!(
            cost(&printed, "lock_ns=") <= cost(&printed, "mutex_ns=") + 5.0,
            "{printed}"
        );
    }
}
