// SPDX-License-Identifier: MIT
//! The workloads of bench/ that compare kinds of locks: short runs of them print what they promise, and find nobody
//! in a critical section with another.
#![allow(clippy::unwrap_used)]

use freqlock_c_tests::{libraries, run, target};
use std::path::Path;
use std::process::Command;

const BENCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../bench");

/// Names of what is measured, of which each value is more than 0.
fn metrics(workload: &str, parameters: &[(&str, &str)]) -> Vec<String> {
    let cache = tempfile::tempdir().unwrap();
    libraries("libfreqlock_preload");
    let call = |program: &str| {
        let mut command = Command::new(Path::new(BENCH).join(workload).join(program));
        command.env("XDG_CACHE_HOME", cache.path());
        command.env("FREQLOCK_RUN", target().join("freqlock-run"));
        run(command.envs(parameters.iter().copied())).out
    };
    call("prepare");
    let measured = call("run");
    let metric = |line: &str| {
        let fields: Vec<_> = line.split(' ').collect();
        assert_eq!(fields.len(), 4, "{line}");
        assert!(fields[1].parse::<f64>().unwrap() > 0.0, "{line}");
        fields[0].to_owned()
    };
    measured.lines().map(metric).collect()
}

#[test]
fn epochs_measures_each_kind_and_each_bound() {
    let parameters = [
        ("EPOCHS_MS", "50"),
        ("EPOCHS_THREADS", "2"),
        ("EPOCHS_UNIT", "2"),
    ];
    for (case, value) in [
        ("plain", "0"),
        ("variable", "4"),
        ("mixed", "50"),
        ("pause", "100"),
    ] {
        let case = [
            ("EPOCHS_CASE", case),
            ("EPOCHS_VALUE", value),
            ("EPOCHS_SLOS", "0 none"),
        ];
        let found = metrics("epochs", &[&parameters[..], &case[..]].concat());
        for kind in [
            "pthread",
            "tas",
            "ticket",
            "mcs",
            "proportional",
            "freqlock_0",
            "freqlock_none",
        ] {
            for name in ["throughput", "p99"] {
                let name = format!("{name}_{kind}");
                assert!(found.contains(&name), "no {name} in {found:?}");
            }
        }
    }
}

#[test]
fn contended_measures_each_case() {
    let parameters = [("CONTENDED_MS", "200"), ("CONTENDED_THREADS", "2")];
    let found = metrics("contended", &parameters);
    let wanted = ["mutex", "barrier", "fill", "queue"]
        .map(|case| ["pthread", "freqlock"].map(|kind| format!("{case}_2x_{kind}")));
    assert_eq!(found, wanted.concat());
}
