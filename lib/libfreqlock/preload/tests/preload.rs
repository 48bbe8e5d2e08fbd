// SPDX-License-Identifier: MIT
//! C programs with libc's own locks and with each kind of ours: what they print must be the same.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Those that a program may be run with for good, and those to compare with.
const KINDS: [&str; 6] = [
    "freqlock",
    "pthread",
    "tas",
    "ticket",
    "mcs",
    "proportional",
];
/// A fork leaves waiters behind in queues that the others have.
const AFTER_FORKS: [&str; 3] = ["freqlock", "pthread", "tas"];

/// Cargo builds it before the tests, and it builds them into a folder beside it.
fn freqlock_run() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().join("freqlock-run")
}

/// Beside `freqlock-run`, where that looks for it. Cargo builds none for tests, which cannot link it.
fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let run = freqlock_run();
        let release = run.parent().unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--release", "--locked", "--offline", "--lib"]);
        cargo.args(["--package", "libfreqlock_preload", "--target-dir"]);
        let output = cargo
            .arg(release.parent().unwrap())
            .current_dir(HERE)
            .output()
            .unwrap();
        succeeded("cargo", &output);
        release.join("libfreqlock_preload.so")
    })
}

fn succeeded(what: &str, output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{what}: {}\n{stdout}{stderr}",
        output.status
    );
    stdout
}

struct Program {
    folder: tempfile::TempDir,
}

impl Program {
    fn compile(name: &str) -> Program {
        let program = Program {
            folder: tempfile::tempdir().unwrap(),
        };
        let mut cc = Command::new("cc");
        cc.args([
            "-std=gnu11",
            "-O2",
            "-pthread",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-o",
        ]);
        cc.arg(program.path())
            .arg(format!("{HERE}/tests/c/{name}.c"));
        succeeded(name, &cc.output().unwrap());
        program
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("program")
    }

    fn plain(&self) -> String {
        succeeded(
            "with libc's own",
            &Command::new(self.path()).output().unwrap(),
        )
    }

    fn run(&self, kind: &str, options: &[&str]) -> String {
        library();
        let mut run = Command::new(freqlock_run());
        // A hang is a failure, not the end of all tests.
        run.args(["--lock", kind])
            .args(options)
            .args(["--", "timeout", "120"])
            .arg(self.path());
        succeeded(kind, &run.output().unwrap())
    }
}

fn same(name: &str, kinds: &[&str]) {
    let program = Program::compile(name);
    let plain = program.plain();
    for kind in kinds {
        assert_eq!(
            program.run(kind, &["--slo", "500us"]),
            plain,
            "{name} with {kind}"
        );
    }
}

#[test]
fn mutexes_are_as_libcs() {
    same("mutex", &KINDS);
}

#[test]
fn condition_variables_are_as_libcs() {
    same("cond", &KINDS);
}

#[test]
fn reader_writer_and_spin_locks_are_as_libcs() {
    same("rwlock", &KINDS);
}

#[test]
fn what_is_special_stays_libcs() {
    same("shared", &KINDS);
}

#[test]
fn children_of_forks_can_use_locks() {
    same("fork", &AFTER_FORKS);
}

#[test]
fn each_function_is_replaced_and_the_kind_is_the_one_asked_for() {
    let program = Program::compile("who");
    let plain = program.plain();
    // Word, count, owner, another word of the kind's, type; after one lock, and after two of a recursive one.
    let libcs = "early 1 0 mine 1 0\nlate 1 2 mine 1 1\n";
    assert!(plain.ends_with(libcs), "{plain}");
    for (kind, words) in [
        ("freqlock", "early 1 0 mine 0 0\nlate 1 2 mine 0 1\n"),
        ("pthread", libcs),
        ("null", libcs),
        ("tas", "early 1 0 mine 0 0\nlate 1 2 mine 0 1\n"),
        ("ticket", "early 0 0 mine 1 0\nlate 0 2 mine 1 1\n"),
    ] {
        let printed = program.run(kind, &[]);
        let functions = printed
            .strip_suffix(words)
            .unwrap_or_else(|| panic!("{kind}: {printed}"));
        for line in functions.lines() {
            assert!(line.ends_with(" libfreqlock_preload.so"), "{kind}: {line}");
        }
    }
}

#[test]
fn the_environment_alone_is_enough_and_a_wrong_one_changes_nothing() {
    let program = Program::compile("who");
    let run = |lock: &str, slo: &str| {
        let mut command = Command::new(program.path());
        command
            .env("LD_PRELOAD", library())
            .env("FREQLOCK_LOCK", lock)
            .env("FREQLOCK_SLO_NS", slo);
        let output = command.output().unwrap();
        (
            succeeded(lock, &output),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    assert_eq!(run("", "500000").1, "");
    let (printed, said) = run("mcs2", "1ms");
    assert!(
        printed.ends_with("early 1 0 mine 1 0\nlate 1 2 mine 1 1\n"),
        "{printed}"
    );
    assert!(
        said.contains("FREQLOCK_LOCK") && said.contains("FREQLOCK_SLO_NS"),
        "{said}"
    );
}

#[test]
fn wrong_use_of_freqlock_run_is_refused() {
    library();
    for (arguments, status, says) in [
        (&["--slo", "500", "--", "true"][..], 2, "500us"),
        (&["--slo", "0us", "--", "true"], 2, "more than 0"),
        (
            &["--slo", "99999999999999s", "--", "true"],
            2,
            "whole number",
        ),
        (&["--lock", "clh", "--", "true"], 2, "possible values"),
        (
            &["--library", "/nonexistent.so", "--", "true"],
            2,
            "No such file",
        ),
        (&["--"], 2, "PROGRAM"),
        (&["--", "/nonexistent"], 127, "No such file"),
        (&["--", "/etc/passwd"], 126, "denied"),
        (&["--", "sh", "-c", "exit 7"], 7, ""),
    ] {
        let output = Command::new(freqlock_run())
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
}

/// What a call costs in nanoseconds where nobody waits, beside libc's own by the same way. A figure of
/// this host, so it is looked at by hand: `cargo test --release -p libfreqlock_preload -- --ignored`.
#[test]
#[ignore = "measures time"]
fn an_uncontended_mutex_costs_little() {
    let program = Program::compile("cost");
    let cost = |kind: &str| -> f64 {
        program
            .run(kind, &["--slo", "500us"])
            .trim()
            .parse()
            .unwrap()
    };
    let began = Instant::now();
    let (mut own, mut libcs) = (f64::MAX, f64::MAX);
    // The least of some, in turn: the machine may be busy.
    while began.elapsed() < Duration::from_secs(2) {
        own = own.min(cost("freqlock"));
        libcs = libcs.min(cost("pthread"));
    }
    assert!(own <= libcs + 5.0, "{own} ns, libc's {libcs} ns");
}
