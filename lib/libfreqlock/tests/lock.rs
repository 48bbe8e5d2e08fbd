// SPDX-License-Identifier: MIT
//! Promises of the lock, on threads.
#![allow(clippy::unwrap_used)]

use libfreqlock::{Lock, LockError, WINDOW_MOST};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{mpsc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

struct Guarded {
    lock: Lock,
    sum: UnsafeCell<u64>,
}

// SAFETY: that the lock keeps threads apart is what is tested.
unsafe impl Sync for Guarded {}

fn clock(which: libc::clockid_t) -> Duration {
    let mut ts = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: ts is ours.
    unsafe { libc::clock_gettime(which, &mut ts) };
    Duration::new(ts.tv_sec as u64, ts.tv_nsec as u32)
}

fn gettid() -> i64 {
    // SAFETY: no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) }
}

/// Waits until a thread of this process sleeps.
fn until_it_sleeps(tid: i64) {
    let mut seen = 0;
    while seen < 3 {
        thread::sleep(Duration::from_millis(1));
        let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap();
        let sleeps = stat.rsplit_once(')').unwrap().1.starts_with(" S");
        seen = if sleeps { seen + 1 } else { 0 };
    }
}

#[test]
fn one_at_a_time_of_24_threads_by_any_way_in() {
    const ROUNDS: u64 = 2_000;
    let shared = Guarded {
        lock: Lock::new(),
        sum: UnsafeCell::new(0),
    };
    thread::scope(|scope| {
        for way in 0..24 {
            let shared = &shared;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    match way % 4 {
                        0 => shared.lock.lock().unwrap(),
                        1 => shared.lock.lock_immediately().unwrap(),
                        2 => shared.lock.lock_reorder(round * 100).unwrap(),
                        _ => {
                            while shared.lock.try_lock().is_err() {
                                thread::yield_now();
                            }
                        }
                    }
                    // SAFETY: with the lock held.
                    unsafe { *shared.sum.get() += 1 };
                    shared.lock.unlock().unwrap();
                }
            });
        }
    });
    assert_eq!(shared.sum.into_inner(), 24 * ROUNDS);
    assert_eq!(shared.lock.check_unused(), Ok(()));
}

#[test]
fn first_come_first_served() {
    let (lock, order) = (Lock::new(), Mutex::new(Vec::new()));
    lock.lock_immediately().unwrap();
    thread::scope(|scope| {
        for number in 0..12 {
            let (send, receive) = mpsc::channel();
            let (lock, order) = (&lock, &order);
            scope.spawn(move || {
                send.send(gettid()).unwrap();
                lock.lock_immediately().unwrap();
                order.lock().unwrap().push(number);
                lock.unlock().unwrap();
            });
            until_it_sleeps(receive.recv().unwrap());
        }
        assert!(lock.has_waiters());
        lock.unlock().unwrap();
    });
    assert_eq!(*order.lock().unwrap(), (0..12).collect::<Vec<_>>());
}

#[test]
fn who_stands_by_queues_up_when_the_window_is_over() {
    let lock = Lock::new();
    let window = Duration::from_millis(60);
    lock.lock_immediately().unwrap();
    let began = Instant::now();
    thread::scope(|scope| {
        let little = scope.spawn(|| {
            lock.lock_reorder(window.as_nanos() as u64).unwrap();
            lock.unlock().unwrap();
            began.elapsed()
        });
        while !lock.has_waiters() {
            thread::sleep(Duration::from_micros(100));
        }
        let queued = began.elapsed();
        assert!(
            (window..window + Duration::from_secs(1)).contains(&queued),
            "{queued:?}"
        );
        lock.unlock().unwrap();
        assert!(little.join().unwrap() >= window);
    });
}

#[test]
fn who_stands_by_takes_a_lock_that_gets_free() {
    let lock = Lock::new();
    lock.lock_immediately().unwrap();
    thread::scope(|scope| {
        let little = scope.spawn(|| {
            lock.lock_reorder(WINDOW_MOST).unwrap();
            let now = Instant::now();
            lock.unlock().unwrap();
            now
        });
        thread::sleep(Duration::from_millis(20));
        assert!(!lock.has_waiters());
        let freed = Instant::now();
        lock.unlock().unwrap();
        // An eighth of 20 ms, and what the host adds; the window has 80 left.
        assert!(little.join().unwrap() - freed < Duration::from_millis(60));
    });
}

#[test]
fn nobody_stands_by_for_ever() {
    let (lock, stop) = (Lock::new(), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    lock.lock_immediately().unwrap();
                    // Never free: the next one is there before this one goes.
                    while !lock.has_waiters() && !stop.load(Relaxed) {
                        thread::yield_now();
                    }
                    lock.unlock().unwrap();
                }
            });
        }
        // So that a failure ends, too.
        let timer = scope.spawn(|| {
            thread::park_timeout(Duration::from_secs(5));
            stop.store(true, Relaxed);
        });
        thread::sleep(Duration::from_millis(10));
        let began = Instant::now();
        // More than the longest window counts as that.
        lock.lock_reorder(u64::MAX).unwrap();
        let waited = began.elapsed();
        lock.unlock().unwrap();
        timer.thread().unpark();
        assert!(
            waited < Duration::from_nanos(WINDOW_MOST) + Duration::from_secs(2),
            "{waited:?}"
        );
    });
}

#[test]
fn waiters_sleep_while_the_holder_does_not_run() {
    type Way = fn(&Lock) -> Result<(), LockError>;
    let lock = Lock::new();
    lock.lock_immediately().unwrap();
    thread::scope(|scope| {
        let ways: [Way; 3] = [Lock::lock, Lock::lock_immediately, |lock| {
            lock.lock_reorder(WINDOW_MOST)
        }];
        let waiters = ways.map(|way| {
            let lock = &lock;
            scope.spawn(move || {
                way(lock).unwrap();
                lock.unlock().unwrap();
                clock(libc::CLOCK_THREAD_CPUTIME_ID)
            })
        });
        thread::sleep(Duration::from_millis(400));
        lock.unlock().unwrap();
        for waiter in waiters {
            let burnt = waiter.join().unwrap();
            assert!(burnt < Duration::from_millis(20), "{burnt:?}");
        }
    });
}

#[test]
fn misuse_is_refused_and_changes_nothing() {
    let lock = Lock::new();
    assert_eq!(lock.unlock(), Err(LockError::NotOwner));
    lock.lock().unwrap();
    assert_eq!(lock.lock(), Err(LockError::WouldDeadlock));
    assert_eq!(lock.lock_reorder(1_000), Err(LockError::WouldDeadlock));
    assert_eq!(lock.try_lock(), Err(LockError::Busy));
    assert_eq!(lock.check_unused(), Err(LockError::Busy));
    thread::scope(|scope| {
        let other = scope.spawn(|| (lock.unlock(), lock.try_lock()));
        assert_eq!(
            other.join().unwrap(),
            (Err(LockError::NotOwner), Err(LockError::Busy))
        );
        // Also by one that has held a lock.
        let other = scope.spawn(|| {
            let own = Lock::new();
            own.lock().unwrap();
            own.unlock().unwrap();
            (lock.unlock(), own.unlock())
        });
        assert_eq!(
            other.join().unwrap(),
            (Err(LockError::NotOwner), Err(LockError::NotOwner))
        );
    });
    lock.unlock().unwrap();
    assert_eq!(lock.check_unused(), Ok(()));
}

/// In the child after a fork: what the thread held it can release and take again, though another waited.
#[test]
fn a_child_holds_what_the_thread_held_that_forked() {
    let (one, other) = (Lock::new(), Lock::new());
    one.lock().unwrap();
    other.lock().unwrap();
    thread::scope(|scope| {
        let (send, receive) = mpsc::channel();
        let lock = &other;
        scope.spawn(move || {
            send.send(gettid()).unwrap();
            lock.lock_immediately().unwrap();
            lock.unlock().unwrap();
        });
        until_it_sleeps(receive.recv().unwrap());
        // SAFETY: the child touches two locks and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends it if it hangs.
            unsafe { libc::alarm(5) };
            let works = |lock: &Lock| {
                let twice = [
                    lock.unlock(),
                    lock.lock(),
                    lock.unlock(),
                    lock.lock_reorder(1_000),
                    lock.unlock(),
                ];
                twice.iter().all(Result::is_ok) && lock.check_unused().is_ok()
            };
            let is_well = works(&one) && works(&other);
            // SAFETY: without what the test's process does at its end.
            unsafe { libc::_exit(i32::from(!is_well)) };
        }
        let mut status = -1;
        // SAFETY: our child, and a place for its status.
        unsafe { libc::waitpid(child, &mut status, 0) };
        // Here the waiter is still one.
        assert!(other.has_waiters());
        other.unlock().unwrap();
        assert_eq!(status, 0);
    });
    one.unlock().unwrap();
}
