// SPDX-License-Identifier: GPL-2.0-only
//! Each promise, by a folder in which it is met and one in which it is not.

use super::*;
use freqlock::observe::{Observer, Report};

/// A folder with one file; the verdicts and words for it.
fn judged(name: &str, content: &str) -> Vec<(String, Verdict, String)> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(name), content).unwrap();
    let lines = judge(folder.path()).unwrap().lines;
    lines
        .into_iter()
        .map(|l| (l.scheduler, l.verdict, l.got))
        .collect()
}

fn verdict_of(name: &str, content: &str) -> Verdict {
    let lines = judged(name, content);
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines[0].1
}

/// A report of nothing, with some figures put in.
fn report(change: impl FnOnce(&mut Report)) -> String {
    let mut report = Report::new(Observer::new(&[0, 1]), 0, false);
    change(&mut report);
    serde_json::to_string_pretty(&report).unwrap()
}

#[test]
fn sequential_work_on_two_cpus() {
    let with = |share| report(|r| r.started.busiest_two = share);
    assert_eq!(verdict_of("configure.auto", &with(0.9)), Verdict::Met);
    assert_eq!(verdict_of("configure.auto", &with(0.89)), Verdict::NotMet);
    assert_eq!(verdict_of("configure.eevdf", &with(0.5)), Verdict::Compare);
}

#[test]
fn figures_that_are_not_valid_are_no_figures() {
    let invalid = report(|r| {
        r.started.busiest_two = 1.0;
        r.valid = false;
    });
    assert_eq!(verdict_of("configure.auto", &invalid), Verdict::Unknown);
    assert_eq!(verdict_of("configure.eevdf", &invalid), Verdict::Unknown);
    assert_eq!(verdict_of("mix.auto", &invalid), Verdict::Unknown);
}

#[test]
fn parallel_work_reaches_every_cpu() {
    assert_eq!(
        verdict_of("spread.auto", "9.0 3\n4.9 3\n1.0 3\n"),
        Verdict::Met
    );
    assert_eq!(
        verdict_of("spread.auto", "9.0 3\n5.1 3\n1.0 3\n"),
        Verdict::NotMet
    );
    assert_eq!(
        verdict_of("spread.auto", "1.0 3\n-1.000 3\n1.0 3\n"),
        Verdict::NotMet
    );
    assert_eq!(verdict_of("spread.auto", ""), Verdict::Unknown);
}

#[test]
fn children_stay_with_a_lone_parent() {
    let with = |of, share| {
        report(|r| {
            r.forks.parent_alone = of;
            r.forks.parent_alone_on_parent_cpu = share;
        })
    };
    assert_eq!(
        verdict_of("children.fork-local", &with(300, 0.991)),
        Verdict::Met
    );
    assert_eq!(
        verdict_of("children.fork-local", &with(300, 0.98)),
        Verdict::NotMet
    );
    assert_eq!(
        verdict_of("children.fork-local", &with(0, 0.0)),
        Verdict::Unknown
    );
}

#[test]
fn children_that_wait_are_migrated_in_time() {
    let with = |count, p99| {
        report(|r| {
            r.forks.migrated_to_run_us.count = count;
            r.forks.migrated_to_run_us.p99 = p99;
        })
    };
    assert_eq!(
        verdict_of("migrated.smove", &with(100, 199.0)),
        Verdict::Met
    );
    assert_eq!(
        verdict_of("migrated.smove", &with(100, 201.0)),
        Verdict::NotMet
    );
    assert_eq!(
        verdict_of("migrated.smove", &with(0, 0.0)),
        Verdict::Unknown
    );
}

#[test]
fn shares_follow_weights() {
    assert_eq!(
        verdict_of("nice.auto", "0 1024\n5 335\n-5 3121\n"),
        Verdict::Met
    );
    assert_eq!(
        verdict_of("nice.auto", "0 1024\n5 350\n-5 3121\n"),
        Verdict::Met
    );
    assert_eq!(
        verdict_of("nice.auto", "0 1024\n5 360\n-5 3121\n"),
        Verdict::NotMet
    );
    assert_eq!(
        verdict_of("nice.auto", "0 100\n5 100\n-5 100\n"),
        Verdict::NotMet
    );
    assert_eq!(
        verdict_of("nice.auto", "0 0\n5 0\n-5 0\n"),
        Verdict::Unknown
    );
}

#[test]
fn equal_hogs_are_equal() {
    assert_eq!(
        verdict_of("hogs.auto", "0 1000\n0 990\n0 951\n"),
        Verdict::Met
    );
    assert_eq!(
        verdict_of("hogs.auto", "0 1000\n0 990\n0 949\n"),
        Verdict::NotMet
    );
}

#[test]
fn no_cpu_is_idle_while_a_task_waits() {
    let with = |share| report(|r| r.work_conservation.share_unplaced = share);
    assert_eq!(verdict_of("mix.auto", &with(0.0009)), Verdict::Met);
    assert_eq!(verdict_of("mix.auto", &with(0.001)), Verdict::NotMet);
}

#[test]
fn the_cost_is_held_against_the_peers() {
    let run = |ns: f64| {
        format!(
            r#"{{"scheduler":"x","elapsed_ms":1,"path_ns":{ns},"cpu_share":0.1,"programs":[]}}"#
        )
    };
    let verdict = |ours: &[f64], peer: &[f64]| {
        let folder = tempfile::tempdir().unwrap();
        for (name, runs) in [("cost.auto", ours), ("cost.scx_bpfland", peer)] {
            let lines: Vec<String> = runs.iter().map(|ns| run(*ns)).collect();
            fs::write(folder.path().join(name), lines.join("\n")).unwrap();
        }
        let lines = judge(folder.path()).unwrap().lines;
        assert_eq!(lines[0].scheduler, "scx_bpfland");
        assert_eq!(lines[0].verdict, Verdict::Compare);
        lines[1].verdict
    };
    assert_eq!(verdict(&[900.0, 100.0, 300.0], &[300.0]), Verdict::Met);
    assert_eq!(verdict(&[301.0], &[300.0]), Verdict::NotMet);
    assert_eq!(verdict_of("cost.auto", &run(1.0)), Verdict::Unknown);
}

#[test]
fn memory_and_load_time_have_limits() {
    let memory = |agent: u64| {
        let memory = Memory {
            cpus: 4,
            agent,
            ..Memory::default()
        };
        serde_json::to_string(&memory).unwrap()
    };
    let verdicts = |agent| -> Vec<Verdict> {
        judged("memory.auto", &memory(agent))
            .into_iter()
            .map(|l| l.1)
            .collect()
    };
    assert_eq!(
        verdicts(memory::AGENT_LIMIT - 1),
        [Verdict::Met, Verdict::Met]
    );
    assert_eq!(
        verdicts(memory::AGENT_LIMIT),
        [Verdict::Met, Verdict::NotMet]
    );
    assert_eq!(verdict_of("load.auto", "2999\n1000\n3500\n"), Verdict::Met);
    assert_eq!(verdict_of("load.auto", "3000\n"), Verdict::NotMet);
}

#[test]
fn what_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [
        ("spread.auto", "soon"),
        ("nice.auto", "7 1"),
        ("mix.auto", "{}"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let message = judge(folder.path()).unwrap_err().to_string();
        assert!(message.contains(name), "{message}");
        fs::remove_file(path).unwrap();
    }
    assert!(judge(Path::new("/nonexistent")).is_err());
}

#[test]
fn the_table_names_a_promise_once() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["spread.auto", "spread.eevdf"] {
        fs::write(folder.path().join(name), "6.0 4.0\n").unwrap();
    }
    fs::write(folder.path().join("machine"), "Linux 7 on 4 CPUs\n").unwrap();
    let text = judge(folder.path()).unwrap().to_string();
    assert!(text.starts_with("Linux 7 on 4 CPUs\n"), "{text}");
    assert_eq!(text.matches("reach every CPU").count(), 1, "{text}");
    assert!(text.contains("NOT MET"), "{text}");
}
