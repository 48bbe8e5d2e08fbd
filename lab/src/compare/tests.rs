// SPDX-License-Identifier: GPL-2.0-only
//! What comparisons print and write, and what tests of the parts need.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use clap::Parser;

use super::host_tests::{Fake, Silent, LOOK};
use super::plan::{beside, Plan, Workload};
use super::results::Record;
use super::runs::{Outcome, Results, Run, Watch};
use super::testbed::{Kind, Machine};
use crate::figures::{Better, Metric};
use crate::process::Event;
use crate::schedulers::{scheduler, Programs};
use freqlock::lab_args::CompareArgs;

/// Arguments as from the command line.
pub fn args(line: &[&str]) -> CompareArgs {
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: CompareArgs,
    }
    Line::parse_from(std::iter::once(&"compare").chain(line)).args
}

/// A counted run with one metric, time in ms, or one that failed.
pub fn run(workload: &str, scheduler: &str, round: u32, time: Option<f64>) -> Run {
    Run {
        workload: workload.into(),
        scheduler: scheduler.into(),
        round,
        warmup: false,
        ops: None,
        start_s: 0.0,
        took_s: 1.0,
        outcome: match time {
            None => Outcome::Failed("broken".into()),
            Some(value) => Outcome::Metrics(vec![Metric {
                name: "time".into(),
                value,
                unit: "ms".into(),
                better: Better::Lower,
            }]),
        },
    }
}

/// Six rounds of forkwait on a simulated machine of 12 CPUs, with the first of these
/// schedulers as the baseline.
pub fn plan(schedulers: &[&str]) -> Plan {
    let programs = Programs {
        ours: Path::new("scx_freqlock"),
        find: &|_| None,
        simulated: Some(12),
    };
    let schedulers: Vec<_> = schedulers
        .iter()
        .map(|spec| scheduler(spec, &programs).unwrap().unwrap())
        .collect();
    Plan {
        workloads: vec![workload("forkwait", "/nowhere".into())],
        pinned: beside(&schedulers, programs.simulated),
        schedulers,
        baseline: 0,
        warmup: 1,
        runs: 6,
        budget: None,
        made: Default::default(),
    }
}

pub fn record(schedulers: &[&str], runs: Vec<Run>) -> Record {
    let plan = plan(schedulers);
    let machine = Machine {
        kernel: "7.2.0".into(),
        cpus: 4,
        model: "TCG".into(),
        kind: Kind::Emulated,
        cpufreq: false,
    };
    let results = Results {
        runs,
        interrupted: false,
        broken: None,
    };
    Record::new(&plan, machine, results)
}

pub fn workload(name: &str, run: PathBuf) -> Workload {
    Workload {
        name: name.into(),
        run,
        parameters: Vec::new(),
    }
}

/// What the sub-command prints, and the status that it exits with.
fn compare(fake: &Fake, line: &[&str], interrupt: bool) -> (String, Result<String, String>) {
    let (sender, events) = mpsc::channel();
    if interrupt {
        sender.send(Event::Interrupted).unwrap();
    }
    let mut engine = fake.engine(sender, events);
    let mut out = Vec::new();
    let machine = Machine::look(fake.dir.path());
    let run = |watch: &mut dyn Watch| engine.run(&fake.plan, watch);
    let status = super::Files::create(&args(line))
        .and_then(|files| super::compare(&fake.plan, files, machine, run, &mut Silent, &mut out));
    (
        String::from_utf8(out).unwrap(),
        status
            .map(|status| format!("{status:?}"))
            .map_err(|error| error.to_string()),
    )
}

#[test]
fn the_status_says_whether_all_was_measured() {
    use std::process::ExitCode;
    let status = |code: ExitCode| Ok(format!("{code:?}"));

    let good = Fake::new().kernel().workload("look", LOOK);
    let json = good.dir.path().join("out.json");
    let (text, exit) = compare(&good, &["--json", json.to_str().unwrap()], false);
    assert_eq!(exit, status(ExitCode::SUCCESS));
    assert!(text.contains("\nlook\n| metric "), "{text}");
    let written: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(written["runs"][0]["workload"], "look");

    let bad = Fake::new().kernel().workload("bad", "exit 3");
    let (text, exit) = compare(&bad, &[], false);
    assert_eq!(exit, status(ExitCode::FAILURE));
    assert!(
        text.contains("Failed: bad under eevdf, once: exit status 3, without a word\n"),
        "{text}"
    );

    let (text, exit) = compare(&good, &[], true);
    assert_eq!(exit, status(ExitCode::from(130)));
    assert!(
        text.contains("\nInterrupted before the end of round 1"),
        "{text}"
    );
}

#[test]
fn a_file_that_cannot_be_written_is_found_before_the_runs() {
    let fake = Fake::new().kernel().workload("look", LOOK);
    // A folder cannot be made below a file, whoever asks.
    for (option, path) in [
        ("--json", "/nowhere/out.json"),
        ("--curves", "/dev/null/out"),
    ] {
        let (text, exit) = compare(&fake, &[option, path], false);
        assert_eq!(
            (text.as_str(), exit),
            ("", Err(format!("cannot write {path}")))
        );
    }
    assert_eq!(fake.sys("log"), "", "the workload has run");
}

/// What critical prints, of two lengths.
const CURVE: &str = "echo rate_5us 8 1/s higher; echo rate_50us 2 1/s higher";

#[test]
fn curves_are_drawn_of_metrics_with_numbers() {
    let fake = Fake::new().kernel().workload("steps", CURVE);
    let dir = fake.dir.path().join("new/curves");
    let (_, exit) = compare(&fake, &["--curves", dir.to_str().unwrap()], false);
    assert!(exit.is_ok(), "{exit:?}");
    let picture = fs::read_to_string(dir.join("steps-rate.svg")).unwrap();
    assert!(picture.contains("steps, rate. "), "{picture}");
}

#[test]
fn the_table_is_not_lost_where_curves_cannot_be_written() {
    let fake = Fake::new().kernel().workload("steps", CURVE);
    let dir = fake.dir.path().join("curves");
    fs::create_dir_all(dir.join("steps-rate.svg")).unwrap();
    let (text, exit) = compare(&fake, &["--curves", dir.to_str().unwrap()], false);
    assert!(text.contains("| rate_5us, 1/s"), "{text}");
    assert!(exit.unwrap_err().starts_with("cannot write "));
}

#[test]
fn json_holds_every_run_and_the_summary() {
    let mut runs: Vec<_> = (1..=6)
        .map(|round| run("forkwait", "eevdf", round, Some(100.0)))
        .collect();
    runs.extend((1..=5).map(|round| run("forkwait", "auto", round, Some(50.0))));
    runs.push(run("forkwait", "auto", 6, None));
    let record = record(&["eevdf", "auto"], runs);
    assert!(record.failed());
    let json = serde_json::to_value(&record).unwrap();
    assert_eq!(json["machine"]["kind"], "emulated");
    assert_eq!(json["runs"].as_array().unwrap().len(), 12);
    assert_eq!(json["runs"][6]["metrics"][0]["value"], 50.0);
    assert_eq!(json["runs"][11]["failed"], "broken");
    assert_eq!(json["summary"][1]["ratio"]["median"], 0.5);
    assert_eq!(json["summary"][1]["verdict"], "unknown");
}
