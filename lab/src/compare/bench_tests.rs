// SPDX-License-Identifier: GPL-2.0-only
//! The workloads of bench/ that need nothing fetched, small ones of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::figures::{parse_metrics, Metric};

fn bench_dir() -> PathBuf {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR"));
    lab.with_file_name("bench")
}

/// Prepares and runs a workload of bench/, with its cache in a folder of its own.
fn bench(name: &str, small: &[(&str, &str)]) -> Vec<Metric> {
    let cache = tempfile::tempdir().unwrap();
    let dir = bench_dir().join(name);
    let call = |program: &str| {
        let output = Command::new(dir.join(program))
            .env("XDG_CACHE_HOME", cache.path())
            .envs(small.iter().copied())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}/{program}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    };
    call("prepare");
    call("prepare");
    let metrics = parse_metrics(&call("run")).unwrap();
    call("cleanup");
    assert!(!cache.path().join("scx_freqlock/bench").join(name).exists());
    metrics
}

/// Reads nanoseconds, adds them to two histograms in turn, and prints the number,
/// the mean and three percentiles of both merged, and the longest.
const HISTOGRAM: &str = r#"
#define _GNU_SOURCE
#include "histogram.h"
int main(void)
{
    static struct histogram parts[2], all;
    unsigned long ns, i = 0;
    while (scanf("%lu", &ns) == 1)
        histogram_add(&parts[i++ % 2], ns);
    histogram_merge(&all, &parts[0]);
    histogram_merge(&all, &parts[1]);
    printf("%lu %f %f %f %f %lu\n", all.nr, mean_ns(&all), percentile_ns(&all, 0.5),
           percentile_ns(&all, 0.99), percentile_ns(&all, 0.999), all.longest_ns);
    return 0;
}
"#;

/// From 1 ns to half a minute, as the programs see them.
#[test]
fn histograms_are_off_by_little() {
    let dir = tempfile::tempdir().unwrap();
    let (source, program) = (dir.path().join("h.c"), dir.path().join("h"));
    std::fs::write(&source, HISTOGRAM).unwrap();
    let status = Command::new("gcc")
        .arg("-I")
        .arg(bench_dir())
        .arg("-o")
        .args([&program, &source])
        .status()
        .unwrap();
    assert!(status.success());
    for factor in [1.01, 1.1, 2.0] {
        let mut values: Vec<u64> = (0..2500)
            .map(|i| f64::powi(factor, i % 2489) as u64)
            .filter(|ns| (1..30_000_000_000).contains(ns))
            .collect();
        let text: String = values.iter().map(|ns| format!("{ns} ")).collect();
        let input = dir.path().join("input");
        std::fs::write(&input, text).unwrap();
        let output = Command::new(&program)
            .stdin(std::fs::File::open(&input).unwrap())
            .output()
            .unwrap();
        let got: Vec<f64> = String::from_utf8(output.stdout)
            .unwrap()
            .split_whitespace()
            .map(|word| word.parse().unwrap())
            .collect();
        values.sort();
        let exact = |share: f64| values[(values.len() as f64 * share) as usize] as f64;
        let wanted = [
            values.len() as f64,
            values.iter().sum::<u64>() as f64 / values.len() as f64,
            exact(0.5),
            exact(0.99),
            exact(0.999),
            values[values.len() - 1] as f64,
        ];
        for (got, wanted) in got.iter().zip(wanted) {
            assert!(
                (got - wanted).abs() <= 0.002 * wanted,
                "{got} for {wanted}, factor {factor}"
            );
        }
        assert_eq!(got.len(), wanted.len());
    }
}

fn names(metrics: &[Metric]) -> Vec<&str> {
    metrics.iter().map(|metric| metric.name.as_str()).collect()
}

#[test]
fn forkwait_measures() {
    let metrics = bench(
        "forkwait",
        &[("FORKWAIT_SECONDS", "1"), ("FORKWAIT_CHAINS", "2")],
    );
    assert_eq!(names(&metrics), ["mean", "p99"]);
    assert!(
        metrics[0].value > 10.0,
        "no process takes less than 10 us: {metrics:?}"
    );
    assert!(metrics[1].value >= metrics[0].value / 2.0, "{metrics:?}");
}

/// Where all CPUs are busy, a link of the chain has to wait.
#[test]
fn forkwait_measures_beside_hogs() {
    let mean = |hogs| {
        let small = [("FORKWAIT_SECONDS", "1"), ("FORKWAIT_HOGS", hogs)];
        let metrics = bench("forkwait", &small);
        assert_eq!(names(&metrics), ["mean", "p99"]);
        metrics[0].value
    };
    assert!(mean("2") > mean("0"));
}

#[test]
fn hackbench_has_four_forms() {
    for form in [
        "process-socket",
        "process-pipe",
        "thread-socket",
        "thread-pipe",
    ] {
        let small = [
            ("HACKBENCH_GROUPS", "1"),
            ("HACKBENCH_LOOPS", "2"),
            ("HACKBENCH_FORM", form),
        ];
        assert_eq!(names(&bench("hackbench", &small)), ["time"], "{form}");
    }
    let run = bench_dir().join("hackbench/run");
    let output = Command::new(run)
        .env("HACKBENCH_FORM", "fiber")
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "bench/hackbench/run: HACKBENCH_FORM=fiber is none of process-socket, process-pipe, thread-socket, thread-pipe\n"
    );
}

/// Frames that take many refreshes miss most of them, and short ones are done sooner.
#[test]
fn frames_measure() {
    let run = |rate, steps| {
        let small = [
            ("FRAMES_SECONDS", "1"),
            ("FRAMES_RATE", rate),
            ("FRAMES_JOBS", "8"),
            ("FRAMES_STEPS", steps),
            ("FRAMES_JOB_STEPS", steps),
        ];
        let metrics = bench("frames", &small);
        assert_eq!(names(&metrics), ["missed", "p50", "p99"]);
        let [missed, p50, p99] = [0, 1, 2].map(|i| metrics[i].value);
        assert!((0.0..100.0).contains(&missed), "{metrics:?}");
        assert!(0.0 < p50 && p50 <= p99, "{metrics:?}");
        (missed, p50)
    };
    let (long, short) = (run("2000", "10000000"), run("10", "1000"));
    assert!(long.0 > 50.0 && long.1 > short.1, "{long:?} {short:?}");
}

/// Frames that wait for long reads miss their times, and those that wait for short ones are done
/// sooner.
#[test]
fn filegate_measures() {
    let run = |rate, kib, hogs| {
        let small = [
            ("FILEGATE_SECONDS", "1"),
            ("FILEGATE_RATE", rate),
            ("FILEGATE_KIB", kib),
            ("FILEGATE_HOGS", hogs),
        ];
        let metrics = bench("filegate", &small);
        assert_eq!(names(&metrics), ["missed", "p50", "p99", "reads"]);
        let [missed, p50, p99, reads] = [0, 1, 2, 3].map(|i| metrics[i].value);
        assert!((0.0..100.0).contains(&missed), "{metrics:?}");
        assert!(0.0 < p50 && p50 <= p99 && reads > 0.0, "{metrics:?}");
        (missed, p50)
    };
    let (long, short) = (run("2000", "65536", "1"), run("10", "1", "0"));
    assert!(long.0 > 50.0 && long.1 > short.1, "{long:?} {short:?}");
}

#[test]
fn schbench_measures() {
    let metrics = bench(
        "schbench",
        &[("SCHBENCH_SECONDS", "1"), ("SCHBENCH_STEPS", "1000")],
    );
    assert_eq!(
        names(&metrics),
        ["wakeup_p50", "wakeup_p99", "wakeup_p99.9", "requests"]
    );
    let [p50, p99, p999, requests] = [0, 1, 2, 3].map(|i| metrics[i].value);
    assert!(0.0 < p50 && p50 <= p99 && p99 <= p999, "{metrics:?}");
    assert!(requests > 100.0, "{metrics:?}");
}

#[test]
fn configure_measures() {
    let metrics = bench("configure", &[("CONFIGURE_CHECKS", "2")]);
    assert_eq!(names(&metrics), ["time"]);
    assert!(metrics[0].value > 1.0, "{metrics:?}");
}

#[test]
fn loads_of_short_processes_measure() {
    for (name, variable) in [
        ("pipelines", "PIPELINES_COUNT"),
        ("testrun", "TESTRUN_TESTS"),
        ("smallbuild", "SMALLBUILD_FILES"),
        ("jobs", "JOBS_ROUNDS"),
        ("gitops", "GITOPS_COMMITS"),
    ] {
        let metrics = bench(name, &[(variable, "2")]);
        assert_eq!(names(&metrics), ["time"], "{name}");
        assert!(metrics[0].value > 1.0, "{name}: {metrics:?}");
    }
}

#[test]
fn forkserver_measures() {
    let small = [
        ("FORKSERVER_REQUESTS", "40"),
        ("FORKSERVER_CLIENTS", "2"),
        ("FORKSERVER_STEPS", "30000"),
    ];
    let metrics = bench("forkserver", &small);
    assert_eq!(names(&metrics), ["time", "p50", "p99"]);
    let [ms, p50, p99] = [0, 1, 2].map(|i| metrics[i].value);
    // Each client asks 20 times, and half of its answers take the median or longer.
    assert!(0.0 < p50 && p50 <= p99, "{metrics:?}");
    assert!(ms * 1e3 > 9.0 * p50, "{metrics:?}");
}

/// Of waits for a lock: the named figures, in this order.
fn waits(name: &str, small: &[(&str, &str)], wanted: &[&str]) -> Vec<f64> {
    let metrics = bench(name, small);
    assert_eq!(names(&metrics), wanted);
    assert!(
        metrics.iter().all(|metric| metric.value > 0.0),
        "{metrics:?}"
    );
    metrics.iter().map(|metric| metric.value).collect()
}

/// Every wait is at least as long as the critical section in its way, and the
/// ratio is that of the two figures.
fn check_inversion(name: &str, small: &[(&str, &str)]) {
    let figures = waits(
        name,
        small,
        &[
            "wait_mean",
            "wait_p50",
            "wait_p99",
            "wait_longest",
            "section_p50",
            "section_longest",
            "p99_in_sections",
            "waits",
        ],
    );
    let [mean, p50, p99, longest, usual, section, ratio, waits] = figures[..] else {
        panic!("{figures:?}");
    };
    assert!(p50 <= p99 && p99 <= longest, "{figures:?}");
    assert!(mean <= longest && section <= longest, "{figures:?}");
    assert!(usual <= section && usual <= p50, "{figures:?}");
    assert!((ratio - p99 / section).abs() < 0.01 * ratio, "{figures:?}");
    // One after the other; the last one may end later than the second does.
    assert!(waits * mean <= 1.01e6 + longest, "{figures:?}");
}

#[test]
fn inversion_measures() {
    check_inversion(
        "inversion",
        &[
            ("INVERSION_SECONDS", "1"),
            ("INVERSION_HOGS", "1"),
            ("INVERSION_STEPS", "100000"),
        ],
    );
}

#[test]
fn chain_measures() {
    check_inversion(
        "chain",
        &[
            ("CHAIN_SECONDS", "1"),
            ("CHAIN_HOGS", "1"),
            ("CHAIN_STEPS", "30000"),
        ],
    );
}

#[test]
fn oversubscribed_measures() {
    let figures = waits(
        "oversubscribed",
        &[("OVERSUBSCRIBED_SECONDS", "1")],
        &["throughput", "wait_p99", "wait_longest"],
    );
    assert!(figures[1] <= figures[2], "{figures:?}");
}

#[test]
fn lockshare_measures() {
    let figures = waits(
        "lockshare",
        &[("LOCKSHARE_SECONDS", "1"), ("LOCKSHARE_PAUSE", "75000")],
        &["long_share", "held", "short_sections", "long_sections"],
    );
    assert!(figures[0] <= 100.0 && figures[1] > 0.0, "{figures:?}");
}

#[test]
fn critical_measures() {
    let figures = waits(
        "critical",
        &[("CRITICAL_SECONDS", "1"), ("CRITICAL_LENGTHS", "5 500")],
        &[
            "throughput_5us",
            "wait_longest_5us",
            "throughput_500us",
            "wait_longest_500us",
        ],
    );
    assert!(figures[0] > figures[2], "{figures:?}");
}

#[test]
fn nice_values_are_checked() {
    for (value, complaint) in [
        ("0 0", "3 nice values are wanted"),
        ("0 0 99", "a nice value is in -20..19"),
    ] {
        let run = bench_dir().join("inversion/run");
        let output = Command::new(run)
            .env("INVERSION_NICE", value)
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            format!("bench/inversion/run: INVERSION_NICE={value}: {complaint}\n")
        );
    }
}

#[test]
fn losers_measures() {
    let small = [("LOSERS_SECONDS", "1"), ("LOSERS_THREADS", "3")];
    waits("losers", &small, &["barriers", "jobs", "holds"]);
}

#[test]
fn periodic_measures() {
    let small = [
        ("PERIODIC_MS", "200"),
        ("PERIODIC_PERIODS", "2000"),
        ("PERIODIC_SHARES", "5"),
        ("PERIODIC_LOOPS", "0x0 1xmix"),
    ];
    let metrics = bench("periodic", &small);
    let wanted = ["0x0", "1xmix"].iter().flat_map(|kind| {
        ["late_p50", "late_p99", "late_longest", "missed"]
            .map(|name| format!("{name}_nice0_{kind}_5pc_2000us"))
    });
    assert_eq!(names(&metrics), wanted.collect::<Vec<_>>());
    for case in metrics.chunks(4) {
        let [p50, p99, longest, missed] = [0, 1, 2, 3].map(|i| case[i].value);
        assert!(
            0.0 < p50 && p50 <= p99 && p99 <= longest && missed <= 100.0,
            "{metrics:?}"
        );
    }
}

#[test]
fn service_measures() {
    let small = [("SERVICE_MS", "100"), ("SERVICE_HOGS", "1")];
    let nice = ("SERVICE_NICE", "0 0 0 0");
    let metrics = bench("service", &[small[0], small[1], nice]);
    let mut wanted = Vec::new();
    for channel in ["pipe", "socket", "eventfd", "broker"] {
        for metric in ["requests", "p50", "p99", "longest", "p99_by_hogs"] {
            wanted.push(format!("{channel}_{metric}"));
        }
    }
    assert_eq!(names(&metrics), wanted);
    assert!(metrics.iter().all(|metric| metric.value > 0.0));
}

#[test]
fn rpc_measures() {
    let metrics = bench("rpc", &[("RPC_PAIRS", "2")]);
    let wanted = ["pipe", "socket", "futex"]
        .iter()
        .flat_map(|way| ["requests", "p50", "p99", "p99.9"].map(|name| format!("{way}_{name}")));
    assert_eq!(names(&metrics), wanted.collect::<Vec<_>>());
    for way in metrics.chunks(4) {
        let [requests, p50, p99, p999] = [0, 1, 2, 3].map(|i| way[i].value);
        assert!(0.0 < p50 && p50 <= p99 && p99 <= p999, "{metrics:?}");
        // Two pairs, each with one request at a time.
        assert!(requests > 10.0 && requests * p50 < 4e6, "{metrics:?}");
    }
}

/// One loop has its CPU to itself; of four on one, pinned or not, each has a quarter.
#[test]
fn turns_measures() {
    let small = [("TURNS_SECONDS", "1"), ("TURNS_CASES", "1@1 2,2x0p@1")];
    let metrics = bench("turns", &small);
    assert_eq!(names(&metrics), ["unfair_1@1", "unfair_2,2x0p@1"]);
    assert!(
        metrics.iter().all(|metric| metric.value < 100.0),
        "{metrics:?}"
    );
}

#[test]
fn trees_of_cgroups_are_checked() {
    let run = bench_dir().join("cgroups/run");
    let output = Command::new(run)
        .env("CGROUPS_TREES", "100[1]")
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "bench/cgroups/run: CGROUPS_TREES=100[1] is not TREE@CPUS, such as 100[1],200[2]@1\n"
    );
}

#[test]
fn cases_of_turns_are_checked() {
    let run = bench_dir().join("turns/run");
    let output = Command::new(run).env("TURNS_CASES", "3").output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "bench/turns/run: TURNS_CASES=3 is not LOOPS@CPUS, such as 3@2 or 2,1x5p@2\n"
    );
}

#[test]
fn workloads_refuse_nonsense_in_one_line() {
    for (name, variable) in [
        ("forkwait", "FORKWAIT_CHAINS"),
        ("schbench", "SCHBENCH_WORKERS"),
        ("configure", "CONFIGURE_CHECKS"),
        ("hackbench", "HACKBENCH_LOOPS"),
        ("inversion", "INVERSION_HOGS"),
        ("chain", "CHAIN_DEPTH"),
        ("oversubscribed", "OVERSUBSCRIBED_THREADS"),
        ("critical", "CRITICAL_LENGTHS"),
        ("losers", "LOSERS_SECONDS"),
        ("lockshare", "LOCKSHARE_PAUSE"),
        ("periodic", "PERIODIC_MS"),
        ("rpc", "RPC_PAIRS"),
        ("turns", "TURNS_SECONDS"),
        ("cgroups", "CGROUPS_SECONDS"),
        ("kbuild", "KBUILD_JOBS"),
        ("pipelines", "PIPELINES_LINES"),
        ("testrun", "TESTRUN_JOBS"),
        ("smallbuild", "SMALLBUILD_JOBS"),
        ("jobs", "JOBS_AT_ONCE"),
        ("gitops", "GITOPS_COMMITS"),
        ("forkserver", "FORKSERVER_CLIENTS"),
        ("forkwait", "FORKWAIT_HOGS"),
        ("frames", "FRAMES_JOBS"),
        ("filegate", "FILEGATE_KIB"),
        ("perfbench", "PERFBENCH_THREADS"),
        ("redis", "REDIS_HOGS"),
    ] {
        let run = bench_dir().join(name).join("run");
        let output = Command::new(run).env(variable, "many").output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            format!("bench/{name}/run: {variable}=many is not a whole number above 0\n")
        );
        assert!(output.stdout.is_empty());
    }
}
