// SPDX-License-Identifier: MIT
//! freqlock-profile over a C program: what is measured, and what is refused.
#![allow(clippy::unwrap_used)]

use freqlock_c_tests::{compile, libraries, run, target};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// A folder with the program of `work.c`, and what it is profiled with.
struct Work {
    folder: tempfile::TempDir,
}

impl Work {
    fn compile() -> Work {
        libraries("libfreqlock_preload");
        let folder = tempfile::tempdir().unwrap();
        let source = format!("{HERE}/tests/c/work.c");
        compile(Path::new(&source), &folder.path().join("work"), []);
        Work { folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn profile(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(target().join("freqlock-profile"));
        command.args(arguments).current_dir(self.folder.path());
        command
    }

    /// The lines of out.csv after the first one, by field.
    fn csv(&self) -> Vec<Vec<String>> {
        let text = std::fs::read_to_string(self.at("out.csv")).unwrap();
        let mut lines = text.lines();
        let header = "run,lock,slo_ns,seconds,throughput,unit,latency,count,p99_all_ns,p99_big_ns,p99_little_ns";
        assert_eq!(lines.next(), Some(header));
        let fields = |line: &str| line.split(',').map(str::to_owned).collect();
        lines.map(fields).collect()
    }
}

const SHORT: [&str; 8] = [
    "--slo",
    "50us..5ms",
    "--points",
    "2",
    "--runs",
    "2",
    "--output",
    "out",
];

#[test]
fn each_setting_is_run_in_rounds_and_epochs_are_counted() {
    let work = Work::compile();
    let table = run(work.profile(&SHORT).args(["--", "./work", "epochs"])).out;
    assert!(
        table.contains("epochs/s") && table.contains("50us"),
        "{table}"
    );
    let csv = work.csv();
    let settings: Vec<[&str; 3]> = csv
        .iter()
        .map(|line| [&*line[0], &*line[1], &*line[2]])
        .collect();
    let round = |n| {
        [
            [n, "pthread", ""],
            [n, "freqlock", "50000"],
            [n, "freqlock", "5000000"],
            [n, "freqlock", ""],
        ]
    };
    assert_eq!(settings, [round("1"), round("2")].concat());
    for line in &csv {
        // Four threads, 500 turns each, and in each an epoch in another one.
        assert_eq!(line[5..8], ["epochs/s", "epoch", "4000"], "{line:?}");
        let seconds: f64 = line[3].parse().unwrap();
        let throughput: f64 = line[4].parse().unwrap();
        assert!(throughput >= 4000.0 / seconds, "{line:?}");
        assert!(line[8].parse::<u64>().unwrap() > 0, "{line:?}");
    }
    let picture = std::fs::read_to_string(work.at("out.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("p99 of epochs"));
    assert_eq!(std::fs::read_dir(work.folder.path()).unwrap().count(), 3);
}

#[test]
fn one_epoch_can_be_chosen_and_a_printed_throughput() {
    let work = Work::compile();
    let options = ["--epoch", "2", "--throughput", r"([0-9.]+) ops/sec"];
    run(work
        .profile(&SHORT)
        .args(options)
        .args(["--", "./work", "epochs"]));
    for line in work.csv() {
        assert_eq!(line[4..8], ["2000.500000", "as printed", "epoch", "2000"]);
    }
}

#[test]
fn waits_count_where_there_are_no_epochs_also_of_children_that_are_killed() {
    let work = Work::compile();
    for how in [&["./work"][..], &["./work", "killed"]] {
        run(work.profile(&SHORT).arg("--").args(how));
        for line in work.csv() {
            assert_eq!(line[5..7], ["runs/s", "wait"]);
            // 40 times all others wait for who sleeps with the mutex; now and then they come later.
            let count: u64 = line[7].parse().unwrap();
            assert!(count > 0, "{line:?}");
            // For a part of 100 us at least.
            assert!(line[8].parse::<u64>().unwrap() >= 50_000, "{line:?}");
        }
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_cannot_be_measured_is_said_and_leaves_no_files() {
    let work = Work::compile();
    let source = format!("{HERE}/tests/c/work.c");
    compile(Path::new(&source), &work.at("static"), ["-static"]);
    let before = std::fs::read_dir(work.folder.path()).unwrap().count();
    for (arguments, status, says) in [
        (&["--slo", "1ms..1us", "--", "./work"][..], 2, "less than"),
        (&["--slo", "1ms", "--", "./work"], 2, "two times"),
        (&["--slo", "0us..1ms", "--", "./work"], 2, "more than 0"),
        (&["--points", "1", "--", "./work"], 2, "2 to 100"),
        (&["--runs", "0", "--", "./work"], 2, "1..=1000"),
        (&["--throughput", "ops", "--", "./work"], 2, "parentheses"),
        (&["--throughput", "(", "--", "./work"], 2, "unclosed group"),
        (&["--output", "no/out", "--", "./work"], 2, "No such file"),
        (&["--library", "no.so", "--", "./work"], 2, "No such file"),
        (&["--"], 2, "PROGRAM"),
        (&["--", "./nothing"], 127, "No such file"),
        (&["--", "/etc/passwd"], 126, "denied"),
        (
            &["--", "./work", "failed"],
            1,
            "exit status: 3; it printed:\nno such table",
        ),
        (&["--", "sh", "-c", "kill -9 $$"], 1, "signal: 9"),
        (&["--", "./static"], 1, "not loaded"),
        (
            &["--runs", "1", "--points", "2", "--", "./work", "alone"],
            1,
            "no latency",
        ),
        (
            &[
                "--runs", "1", "--points", "2", "--epoch", "7", "--", "./work",
            ],
            1,
            "epoch 7",
        ),
        (
            &["--throughput", "(x) ops", "--", "./work"],
            1,
            "nothing that is like",
        ),
        (
            &["--throughput", "(.*) ops", "--", "./work"],
            1,
            "no number above 0",
        ),
    ] {
        let output = work.profile(arguments).output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
    let after = std::fs::read_dir(work.folder.path()).unwrap().count();
    assert_eq!(before, after);
}
