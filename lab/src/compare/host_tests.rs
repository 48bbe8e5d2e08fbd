// SPDX-License-Identifier: GPL-2.0-only
//! The engine with schedulers and workloads that are shell scripts and a sysfs
//! that is a folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use super::host::{Engine, Limits};
use super::plan::Plan;
use super::runs::{Error, Outcome, Results, Run, Watch};
use super::tests::workload;
use crate::process::Event;
use crate::schedulers::{Loader, Scheduler};

/// Loads itself into the pretended sysfs and unloads at SIGTERM.
pub const GOOD: &str = r#"
trap 'rm -r "$sys/root"; echo disabled >"$sys/state"; exit 0' TERM
mkdir "$sys/root"
echo "${1}_1.0" >"$sys/root/ops"
echo $(($(cat "$sys/enable_seq") + 1)) >"$sys/enable_seq"
echo enabled >"$sys/state"
sleep 1000 & wait
"#;

/// Which scheduler it ran under, as a metric; and a line in the log.
pub const LOOK: &str = r#"
ops=$(cat "$sys/root/ops" 2>/dev/null || echo none)
echo "$ops" >>"$sys/log"
echo "noise" >&2
echo "loads $(cat "$sys/enable_seq") loads lower"
"#;

pub struct Fake {
    pub dir: tempfile::TempDir,
    pub plan: Plan,
    pub limits: Limits,
}

impl Fake {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let sys = dir.path().join("sched_ext");
        fs::create_dir(&sys).unwrap();
        fs::write(sys.join("state"), "disabled\n").unwrap();
        fs::write(sys.join("enable_seq"), "0\n").unwrap();
        let plan = Plan {
            workloads: Vec::new(),
            schedulers: Vec::new(),
            pinned: Vec::new(),
            baseline: 0,
            warmup: 0,
            runs: 1,
            budget: None,
            made: Default::default(),
        };
        let limits = Limits {
            workload: Duration::from_secs(20),
            enable: Duration::from_secs(20),
            end: Duration::from_secs(20),
        };
        Self { dir, plan, limits }
    }

    pub fn script(&self, name: &str, body: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        let sys = self.dir.path().join("sched_ext");
        fs::write(
            &path,
            format!("#!/bin/sh\nset -e\nsys='{}'\n{body}", sys.display()),
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub fn kernel(mut self) -> Self {
        self.plan.schedulers.push(Scheduler {
            label: "eevdf".into(),
            ..Scheduler::default()
        });
        self
    }

    pub fn scheduler(mut self, name: &str, body: &str) -> Self {
        let loader = Loader {
            program: self.script(name, body),
            arguments: vec![name.into()],
            ops: name.into(),
        };
        self.plan.schedulers.push(Scheduler {
            label: name.into(),
            loader: Some(loader),
            ..Scheduler::default()
        });
        self
    }

    pub fn workload(mut self, name: &str, body: &str) -> Self {
        let run = self.script(name, body);
        self.plan.workloads.push(workload(name, run));
        self
    }

    pub fn sys(&self, name: &str) -> String {
        let path = self.dir.path().join("sched_ext").join(name);
        fs::read_to_string(path)
            .unwrap_or_default()
            .trim()
            .to_string()
    }

    pub fn run(&self) -> Results {
        self.run_watched(&mut Silent)
    }

    pub fn run_watched(&self, watch: &mut dyn Watch) -> Results {
        let (sender, events) = mpsc::channel();
        self.engine(sender, events).run(&self.plan, watch)
    }

    pub fn engine(&self, sender: Sender<Event>, events: mpsc::Receiver<Event>) -> Engine {
        Engine::new(
            self.dir.path().join("sched_ext"),
            Duration::ZERO,
            sender,
            events,
        )
        .with_limits(self.limits)
    }

    /// Why the only run failed; with the pretended kernel back on its own.
    pub fn failure(&self) -> String {
        let results = self.run();
        assert_eq!((results.runs.len(), &results.broken), (1, &None));
        assert_eq!(self.sys("state"), "disabled");
        match &results.runs[0].outcome {
            Outcome::Failed(reason) => reason.clone(),
            Outcome::Metrics(metrics) => panic!("measured {metrics:?}"),
        }
    }
}

pub struct Silent;

impl Watch for Silent {
    fn begin(&mut self, _: u32, _: u32, _: &str, _: &str) {}
    fn end(&mut self, _: &Run) {}
    fn finish(&mut self) {}
}

pub fn value(run: &Run) -> f64 {
    match &run.outcome {
        Outcome::Metrics(metrics) => metrics[0].value,
        Outcome::Failed(reason) => panic!("{} under {}: {reason}", run.workload, run.scheduler),
    }
}

#[test]
fn every_run_has_a_scheduler_of_its_own_in_rotated_order() {
    let mut fake = Fake::new()
        .kernel()
        .scheduler("freqlock", GOOD)
        .workload("first", LOOK)
        .workload("second", LOOK);
    fake.plan.warmup = 1;
    fake.plan.runs = 1;
    let results = fake.run();
    assert_eq!((results.interrupted, results.broken), (false, None));
    let runs: Vec<_> = results
        .runs
        .iter()
        .map(|run| {
            (
                run.round,
                run.warmup,
                run.workload.as_str(),
                run.ops.as_deref(),
            )
        })
        .collect();
    let ours = Some("freqlock_1.0");
    assert_eq!(
        runs,
        [
            (0, true, "first", None),
            (0, true, "first", ours),
            (0, true, "second", None),
            (0, true, "second", ours),
            (1, false, "first", ours),
            (1, false, "first", None),
            (1, false, "second", ours),
            (1, false, "second", None),
        ]
    );
    assert_eq!(
        fake.sys("log").lines().collect::<Vec<_>>(),
        [
            "none",
            "freqlock_1.0",
            "none",
            "freqlock_1.0",
            "freqlock_1.0",
            "none",
            "freqlock_1.0",
            "none"
        ]
    );
    let loads: Vec<_> = results.runs.iter().map(value).collect();
    assert_eq!(loads, [0.0, 1.0, 1.0, 2.0, 3.0, 3.0, 4.0, 4.0]);
    assert!(results
        .runs
        .windows(2)
        .all(|pair| pair[0].start_s < pair[1].start_s));
    assert_eq!(fake.sys("state"), "disabled");
}

#[test]
fn a_scheduler_that_ends_meanwhile_is_no_measurement() {
    let fake = Fake::new()
        .scheduler(
            "freqlock",
            &GOOD.replace(
                "sleep 1000 & wait",
                "sleep 0.3; rm -r $sys/root; echo disabled >$sys/state; echo stalled >&2; exit 2",
            ),
        )
        .workload("long", "sleep 1000");
    let begin = Instant::now();
    assert_eq!(
        fake.failure(),
        "the scheduler ended by itself (exit status 2: stalled)"
    );
    assert!(
        begin.elapsed() < Duration::from_secs(10),
        "waited for the workload"
    );
}

#[test]
fn a_scheduler_that_fell_out_is_no_measurement() {
    // Its program still runs, as after an error that it has not seen yet.
    let fake = Fake::new()
        .scheduler("freqlock", &GOOD.replace("rm -r", "rm -rf"))
        .workload(
            "eject",
            "rm -r $sys/root; echo disabled >$sys/state; echo time 1 ms lower",
        );
    assert_eq!(
        fake.failure(),
        "the scheduler did not stay: sched_ext is disabled"
    );
}

#[test]
fn a_scheduler_that_was_loaded_anew_is_no_measurement() {
    let fake = Fake::new()
        .scheduler("freqlock", GOOD)
        .workload("restart", "echo 7 >$sys/enable_seq; echo time 1 ms lower");
    assert_eq!(
        fake.failure(),
        "the scheduler did not stay: freqlock_1.0 is enabled"
    );
}

#[test]
fn a_scheduler_is_waited_for_until_the_kernel_has_counted_it() {
    let count = "echo $(($(cat \"$sys/enable_seq\") + 1)) >\"$sys/enable_seq\"\n";
    let late = format!("echo enabled >\"$sys/state\"\nsleep 0.3\n{count}");
    let body = GOOD
        .replace(count, "")
        .replace("echo enabled >\"$sys/state\"\n", &late);
    assert!(body.contains(&late));
    let fake = Fake::new()
        .scheduler("freqlock", &body)
        .workload("slow", &format!("sleep 0.5\n{LOOK}"));
    assert_eq!(value(&fake.run().runs[0]), 1.0);
}

#[test]
fn time_that_is_up_ends_it_between_rounds() {
    let mut fake = Fake::new().kernel().workload("look", LOOK);
    fake.plan.warmup = 1;
    fake.plan.runs = 1000;
    fake.plan.budget = Some(Duration::from_millis(1));
    let results = fake.run();
    assert_eq!((results.runs.len(), results.interrupted), (2, false));
}

#[test]
fn a_scheduler_that_does_not_start_says_why() {
    let fake = Fake::new()
        .scheduler("freqlock", "echo 'no BTF here' >&2; exit 1")
        .workload("look", LOOK);
    assert_eq!(
        fake.failure(),
        "the scheduler ended by itself (exit status 1: no BTF here)"
    );
    assert_eq!(fake.sys("log"), "", "the workload has run");
}

#[test]
fn a_scheduler_that_is_another_one_is_not_taken() {
    let mut fake = Fake::new()
        .scheduler("freqlock", &GOOD.replace("${1}_1.0", "impostor"))
        .workload("look", LOOK);
    fake.limits.enable = Duration::from_secs(1);
    assert_eq!(
        fake.failure(),
        "the scheduler was not enabled within 1 s: impostor is enabled"
    );
}

#[test]
fn another_scheduler_that_is_loaded_is_left_alone() {
    let fake = Fake::new().kernel().workload("look", LOOK);
    let sys = fake.dir.path().join("sched_ext");
    fs::create_dir(sys.join("root")).unwrap();
    fs::write(sys.join("root/ops"), "lavd\n").unwrap();
    fs::write(sys.join("state"), "enabled\n").unwrap();
    let results = fake.run();
    assert_eq!(
        results.runs[0].outcome,
        Outcome::Failed("another scheduler is loaded: lavd is enabled".into())
    );
    assert_eq!(fake.sys("root/ops"), "lavd");
}

#[test]
fn a_scheduler_that_stays_ends_everything() {
    let mut fake = Fake::new()
        .scheduler(
            "freqlock",
            &GOOD.replace("rm -r \"$sys/root\"; echo disabled >\"$sys/state\"; ", ""),
        )
        .workload("look", LOOK);
    fake.plan.runs = 5;
    fake.limits.end = Duration::from_secs(1);
    let results = fake.run();
    assert_eq!(results.runs.len(), 1);
    let error = results.broken.unwrap();
    assert!(matches!(&error, Error::StillLoaded { ops, .. } if ops == "freqlock_1.0"));
}

#[test]
fn workloads_that_fail_do_not_stop_the_others() {
    let mut fake = Fake::new()
        .kernel()
        .scheduler("freqlock", GOOD)
        .workload(
            "bad",
            "echo time 1 ms lower; echo 'gcc is missing' >&2; exit 3",
        )
        .workload("good", LOOK)
        .workload("slow", "sleep 1000")
        .workload("strange", "echo hello");
    fake.limits.workload = Duration::from_millis(1500);
    let results = fake.run();
    let reasons: Vec<_> = results
        .runs
        .iter()
        .filter_map(|run| match &run.outcome {
            Outcome::Failed(reason) => Some((run.workload.as_str(), reason.as_str())),
            Outcome::Metrics(_) => None,
        })
        .collect();
    let strange = "printed \"hello\" instead of METRIC VALUE UNIT lower|higher";
    assert_eq!(
        reasons,
        [
            ("bad", "exit status 3: gcc is missing"),
            ("bad", "exit status 3: gcc is missing"),
            ("slow", "took longer than 1.5 s"),
            ("slow", "took longer than 1.5 s"),
            ("strange", strange),
            ("strange", strange),
        ]
    );
    assert_eq!(results.runs.len(), 8);
    assert_eq!(fake.sys("state"), "disabled");
}

#[test]
fn a_metric_keeps_its_unit() {
    let mut fake = Fake::new()
        .kernel()
        .workload("moody", "if [ -e $sys/again ]; then echo time 1 s lower; else echo time 1 ms lower; touch $sys/again; fi");
    fake.plan.runs = 2;
    let results = fake.run();
    assert_eq!(value(&results.runs[0]), 1.0);
    assert_eq!(
        results.runs[1].outcome,
        Outcome::Failed("the metric time has changed its unit".into())
    );
}

/// Interrupts at the beginning of a run.
struct Interrupter {
    sender: Sender<Event>,
    runs_before: u32,
}

impl Watch for Interrupter {
    fn begin(&mut self, _: u32, _: u32, _: &str, _: &str) {
        match self.runs_before.checked_sub(1) {
            Some(left) => self.runs_before = left,
            None => self.sender.send(Event::Interrupted).unwrap(),
        }
    }
    fn end(&mut self, _: &Run) {}
    fn finish(&mut self) {}
}

#[test]
fn an_interrupt_ends_the_scheduler_and_keeps_what_is_complete() {
    let mut fake = Fake::new()
        .scheduler("freqlock", GOOD)
        .workload("look", LOOK);
    fake.plan.runs = 10;
    let (sender, events) = mpsc::channel();
    let mut watch = Interrupter {
        sender: sender.clone(),
        runs_before: 2,
    };
    let results = fake.engine(sender, events).run(&fake.plan, &mut watch);
    assert_eq!(
        (results.interrupted, results.runs.len(), results.broken),
        (true, 2, None)
    );
    assert_eq!(fake.sys("state"), "disabled");
}

#[test]
fn an_interrupt_ends_a_workload_at_once() {
    let fake = Fake::new()
        .kernel()
        .workload("long", "touch $sys/begun; sleep 1000");
    let (sender, events) = mpsc::channel();
    let begun = fake.dir.path().join("sched_ext/begun");
    let interrupt = sender.clone();
    let user = std::thread::spawn(move || {
        while !begun.exists() {
            std::thread::yield_now();
        }
        interrupt.send(Event::Interrupted).unwrap();
    });
    let begin = Instant::now();
    let results = fake.engine(sender, events).run(&fake.plan, &mut Silent);
    user.join().unwrap();
    assert!(results.interrupted && results.runs.is_empty());
    assert!(begin.elapsed() < Duration::from_secs(10));
}
