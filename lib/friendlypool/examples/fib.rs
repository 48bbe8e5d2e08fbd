// SPDX-License-Identifier: MIT
//! Latency and throughput of pools side by side: several processes, each of which computes fib(30)
//! again and again, in ignorant pools, in friendly ones, and in pools of the best fixed size.
//!
//! `fib [PROCESSES [ROUNDS [SECONDS]]]` runs the kinds in turn in each round and prints medians.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use friendlypool::PoolBuilder;
use std::hint::black_box;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const KINDS: [&str; 3] = ["ignorant", "friendly", "fixed"];
/// Tasks that wait at most, for each worker.
const QUEUE: usize = 4;

fn fib(n: u32) -> u64 {
    if n < 2 {
        u64::from(n)
    } else {
        fib(black_box(n - 1)) + fib(n - 2)
    }
}

/// One process: prints tasks a second, and the longest and the 99th percentile's ns of a task.
fn serve(kind: &str, processes: usize, seconds: f64) {
    let cpus = freqlock_cpus::affinity();
    let builder = match kind {
        "friendly" => PoolBuilder::default(),
        "ignorant" => PoolBuilder::default().ignorant(),
        _ => PoolBuilder::default()
            .workers((cpus / processes).max(1))
            .ignorant(),
    };
    let pool = builder.build().unwrap();
    let (waiting, times) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(Mutex::new(Vec::new())),
    );
    let begin = Instant::now();
    // The number of workers settles first.
    let warm = Duration::from_millis(300);
    let end = warm + Duration::from_secs_f64(seconds);
    while begin.elapsed() < end {
        while waiting.load(Ordering::Relaxed) < QUEUE * cpus {
            waiting.fetch_add(1, Ordering::Relaxed);
            let (waiting, times) = (Arc::clone(&waiting), Arc::clone(&times));
            pool.spawn(move || {
                let start = Instant::now();
                black_box(fib(30));
                let stop = begin.elapsed();
                if stop > warm && stop < end {
                    times
                        .lock()
                        .unwrap()
                        .push(start.elapsed().as_nanos() as u64);
                }
                waiting.fetch_sub(1, Ordering::Relaxed);
            });
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(pool);
    let mut times = times.lock().unwrap();
    times.sort_unstable();
    let (count, longest) = (times.len(), times.last().unwrap());
    println!(
        "{} {longest} {}",
        count as f64 / seconds,
        times[count * 99 / 100]
    );
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Of so many processes at a time: tasks a second of all, the longest task and the worst p99, ms.
fn run(kind: &str, processes: usize, seconds: f64) -> [f64; 3] {
    let (me, processes_word) = (std::env::current_exe().unwrap(), processes.to_string());
    let start = |_| {
        let arguments = ["serve", kind, &processes_word, &seconds.to_string()];
        let mut command = Command::new(&me);
        command
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..processes).map(start).collect();
    let mut all = [0.0, 0.0f64, 0.0f64];
    for child in children {
        let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        let figures: Vec<f64> = said
            .split_whitespace()
            .map(|word| word.parse().unwrap())
            .collect();
        all[0] += figures[0];
        all[1] = all[1].max(figures[1] / 1e6);
        all[2] = all[2].max(figures[2] / 1e6);
    }
    all
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [serve_word, kind, processes, seconds] = &arguments[..] {
        assert_eq!(serve_word, "serve");
        return serve(kind, processes.parse().unwrap(), seconds.parse().unwrap());
    }
    let number = |index: usize, usual: f64| {
        let word = arguments.get(index);
        word.map_or(usual, |word| word.parse().unwrap())
    };
    let (processes, rounds, seconds) = (
        number(0, 2.0) as usize,
        number(1, 5.0) as usize,
        number(2, 2.0),
    );
    let mut runs = [const { Vec::new() }; KINDS.len()];
    for _ in 0..rounds {
        for (kind, runs) in KINDS.iter().zip(&mut runs) {
            runs.push(run(kind, processes, seconds));
        }
    }
    println!(
        "{processes} processes on {} CPUs, medians of {rounds} rounds",
        freqlock_cpus::affinity()
    );
    let medians = runs
        .map(|runs| [0, 1, 2].map(|figure| median(runs.iter().map(|run| run[figure]).collect())));
    for (kind, [rate, longest, p99]) in KINDS.iter().zip(medians) {
        println!("{kind:9} {rate:7.1} tasks/s  longest {longest:6.1} ms  p99 {p99:6.1} ms");
    }
    let [ignorant, friendly, _] = medians;
    let [loss, latency, p99] = [
        ignorant[0] / friendly[0],
        ignorant[1] / friendly[1],
        ignorant[2] / friendly[2],
    ];
    println!("friendly: longest latency {latency:.2} x lower, p99 {p99:.2} x lower, throughput {loss:.3} x lower");
}
