// SPDX-License-Identifier: MIT
//! C programs with libc's own locks and with each kind of ours: what they print must be the same.
#![allow(clippy::unwrap_used)]

use freqlock_c_tests::{compile, libraries, run, target};
use std::path::{Path, PathBuf};
use std::process::Command;
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
    target().join("freqlock-run")
}

/// Beside `freqlock-run`, where that looks for it.
fn library() -> PathBuf {
    libraries("libfreqlock_preload").join("libfreqlock_preload.so")
}

struct Program {
    folder: tempfile::TempDir,
}

impl Program {
    fn compile(name: &str) -> Program {
        let program = Program {
            folder: tempfile::tempdir().unwrap(),
        };
        let source = format!("{HERE}/tests/c/{name}.c");
        compile(Path::new(&source), &program.path(), []);
        program
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("program")
    }

    fn plain(&self) -> String {
        run(&mut Command::new(self.path())).out
    }

    fn run(&self, kind: &str, options: &[&str]) -> String {
        library();
        let mut command = Command::new(freqlock_run());
        // A hang is a failure, not the end of all tests.
        command
            .args(["--lock", kind])
            .args(options)
            .args(["--", "timeout", "120"])
            .arg(self.path());
        run(&mut command).out
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

/// A signal that is lost only where whoever cancels a thread loses its CPU between two instructions.
#[test]
fn condition_variables_on_busy_cpus_are_as_libcs() {
    const COPIES: usize = 6;
    let program = Program::compile("cond");
    let plain = program.plain();
    for kind in KINDS {
        std::thread::scope(|scope| {
            let copies: Vec<_> = (0..COPIES)
                .map(|_| scope.spawn(|| program.run(kind, &[])))
                .collect();
            for copy in copies {
                assert_eq!(copy.join().unwrap(), plain, "{kind}");
            }
        });
    }
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
    let with = |lock: &str, slo: &str| {
        let mut command = Command::new(program.path());
        command
            .env("LD_PRELOAD", library())
            .env("FREQLOCK_LOCK", lock)
            .env("FREQLOCK_SLO_NS", slo);
        run(&mut command)
    };
    assert_eq!(with("", "500000").err, "");
    let printed = with("mcs2", "1ms");
    assert!(
        printed
            .out
            .ends_with("early 1 0 mine 1 0\nlate 1 2 mine 1 1\n"),
        "{printed:?}"
    );
    assert!(
        printed.err.contains("FREQLOCK_LOCK") && printed.err.contains("FREQLOCK_SLO_NS"),
        "{printed:?}"
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
