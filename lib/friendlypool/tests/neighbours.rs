// SPDX-License-Identifier: MIT
//! The number of active workers follows the page and real neighbours.
#![allow(clippy::unwrap_used)]

use friendlypool::{available_parallelism, Pool, PoolBuilder};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};

/// A page as lib/cpus_page.h has it, with this process alone, which can count on so many CPUs.
fn publish(at: &Path, thousandths: u32) -> File {
    let file = File::create(at).unwrap();
    file.set_len(64 + 48 * 4096 + 40 * 1024).unwrap();
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: now is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    let updated = now.tv_sec as u64 * 1_000_000_000;
    let start = freqlock_cpus::Process::own().unwrap().start;
    let word = |at, value: u32| file.write_all_at(&value.to_ne_bytes(), at).unwrap();
    let long = |at, value: u64| file.write_all_at(&value.to_ne_bytes(), at).unwrap();
    long(16, updated);
    long(24, 1_000_000);
    word(44, 1);
    long(64, start);
    word(64 + 16, std::process::id());
    word(64 + 20 + 12, thousandths);
    word(4, 2);
    word(0, 0x7375_7063);
    file
}

/// Keeps the pool busy until it has as many active workers, and false if that does not come.
fn becomes(pool: &Pool, wanted: impl Fn(usize) -> bool) -> bool {
    let busy = AtomicBool::new(true);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while busy.load(Ordering::Relaxed) {
                pool.join(work, work);
            }
        });
        let found = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            wanted(pool.active_workers())
        });
        busy.store(false, Ordering::Relaxed);
        found
    })
}

fn work() -> u64 {
    std::hint::black_box((0..200_000u64).fold(1, |a, b| std::hint::black_box(a ^ b)))
}

fn affinity() -> usize {
    freqlock_cpus::affinity()
}

#[test]
fn the_page_is_followed_up_and_down_and_a_stale_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("cpus");
    if affinity() < 2 {
        return;
    }
    let page = publish(&at, 1000);
    let pool = PoolBuilder::default().workers(2).page(&at).build().unwrap();
    assert!(becomes(&pool, |active| active == 1));
    page.write_all_at(&2000u32.to_ne_bytes(), 64 + 20 + 12)
        .unwrap();
    assert!(becomes(&pool, |active| active == 2));
    // Of so little that whatever /proc says is more.
    page.write_all_at(&1u32.to_ne_bytes(), 64 + 20 + 12)
        .unwrap();
    assert!(becomes(&pool, |active| active == 1));
    // By /proc, the overcommit makes 2 workers of what there is.
    let start = || {
        let pool = PoolBuilder::default().workers(2).overcommit(50.0);
        pool.page(&at).build().unwrap()
    };
    for bad in [0, 8] {
        // Of another kind, then stale.
        let pool = start();
        let before = publish(&at, 1);
        assert!(becomes(&pool, |active| active == 1), "a good page");
        before
            .write_all_at(&[0; 8], if bad == 0 { 0 } else { 16 })
            .unwrap();
        drop(pool);
        let pool = start();
        assert!(!becomes_within_looks(&pool), "a page that is none");
    }
}

/// True if in some looks the pool had but one active worker.
fn becomes_within_looks(pool: &Pool) -> bool {
    (0..20).any(|_| {
        pool.install(work);
        std::thread::sleep(std::time::Duration::from_millis(2));
        pool.active_workers() == 1
    })
}

/// Ends them, whatever happens.
struct Neighbours(Vec<Child>);

impl Neighbours {
    fn start(count: usize) -> Self {
        let start = |_| {
            Command::new("sh")
                .args(["-c", "while :; do :; done"])
                .spawn()
                .unwrap()
        };
        Self((0..count).map(start).collect())
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn busy_neighbours_get_their_cpus() {
    if affinity() < 2 {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let pool = PoolBuilder::default()
        .page(folder.path().join("none"))
        .build()
        .unwrap();
    let neighbours = Neighbours::start(2 * affinity());
    assert!(becomes(&pool, |active| active < affinity()));
    let beside = available_parallelism().get();
    assert!(
        beside <= affinity().div_ceil(2),
        "{beside} beside neighbours"
    );
    drop(neighbours);
}

#[test]
fn available_parallelism_follows_the_affinity() {
    // A thread of its own, whose affinity may change. The first answer may be another thread's.
    let found = std::thread::spawn(|| {
        // SAFETY: a set of CPUs is plain memory, all zero is none of them, and the set is ours.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            let cpu = libc::sched_getcpu();
            libc::CPU_SET(usize::try_from(cpu).unwrap(), &mut set);
            assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &set), 0);
        }
        std::thread::sleep(std::time::Duration::from_millis(120));
        available_parallelism().get()
    });
    assert_eq!(found.join().unwrap(), 1);
}

#[test]
fn a_worker_that_becomes_active_takes_what_waits() {
    if affinity() < 2 {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("cpus");
    let page = publish(&at, 1000);
    let builder = PoolBuilder::default().workers(2).page(&at);
    let pool = builder.build().unwrap();
    assert!(becomes(&pool, |active| active == 1));
    // The only active worker waits for a task that nobody else may take as yet.
    let (started, start) = std::sync::mpsc::channel();
    let (go, gone) = std::sync::mpsc::channel();
    let (ended, end) = std::sync::mpsc::channel();
    pool.spawn(move || {
        started.send(()).unwrap();
        let waited = gone.recv_timeout(std::time::Duration::from_secs(10));
        ended.send(waited.is_ok()).unwrap();
    });
    start.recv().unwrap();
    pool.spawn(move || go.send(()).unwrap());
    page.write_all_at(&2000u32.to_ne_bytes(), 64 + 20 + 12)
        .unwrap();
    assert!(end.recv().unwrap(), "it slept on");
}
