// SPDX-License-Identifier: MIT
//! What a pool promises, whatever number of its workers is active.
#![allow(clippy::unwrap_used)]

use friendlypool::{join, scope, Pool, PoolBuilder};
use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

fn add_one(count: &AtomicUsize) {
    count.fetch_add(1, Ordering::Relaxed);
}

/// Pools of which all, some and one of the workers are active: so little that it is one.
fn pools() -> Vec<Pool> {
    let of = |workers, overcommit| {
        let builder = PoolBuilder::default().workers(workers);
        builder.overcommit(overcommit).build().unwrap()
    };
    let ignorant = PoolBuilder::default().workers(8).ignorant();
    vec![
        of(1, 1.0),
        of(8, 1e-6),
        of(8, 1.0),
        of(70, 9.0),
        ignorant.build().unwrap(),
    ]
}

#[test]
fn joins_within_joins_and_scopes_within_scopes_end() {
    for pool in pools() {
        for _ in 0..5 {
            assert_eq!(pool.install(|| fib(18)), 2584);
        }
        let count = AtomicUsize::new(0);
        pool.scope(|outer| {
            for _ in 0..20 {
                outer.spawn(|outer| {
                    scope(|inner| {
                        for _ in 0..10 {
                            inner.spawn(|_| {
                                join(|| fib(5), || count.fetch_add(1, Ordering::Relaxed));
                            });
                        }
                    });
                    outer.spawn(|_| {
                        count.fetch_add(1, Ordering::Relaxed);
                    });
                });
            }
        });
        assert_eq!(count.into_inner(), 220);
    }
}

#[test]
fn install_runs_in_the_pool_and_returns_what_borrows() {
    for pool in pools() {
        let text = String::from("borrowed");
        let (name, found) =
            pool.install(|| (std::thread::current().name().map(String::from), &text[..3]));
        assert!(name.unwrap().starts_with("friendly-"));
        assert_eq!(found, "bor");
        assert_eq!(pool.join(|| 1, || text.len()), (1, 8));
        assert!((1..=pool.workers()).contains(&pool.active_workers()));
    }
}

#[test]
fn panics_go_on_where_somebody_waits_and_when_all_ended() {
    let says = |result: std::thread::Result<()>, text: &str| {
        assert_eq!(*result.unwrap_err().downcast_ref::<&str>().unwrap(), text);
    };
    let caught = |op: &dyn Fn()| catch_unwind(AssertUnwindSafe(op));
    for pool in pools() {
        let ended = AtomicUsize::new(0);
        let end = || {
            ended.fetch_add(1, Ordering::Relaxed);
        };
        says(caught(&|| pool.install(|| panic!("install"))), "install");
        says(
            caught(&|| {
                pool.join(end, || panic!("second"));
            }),
            "second",
        );
        says(
            caught(&|| {
                pool.join(|| panic!("first"), || ());
            }),
            "first",
        );
        assert_eq!(ended.swap(0, Ordering::Relaxed), 1);
        let scoped = || {
            pool.scope(|scope| {
                scope.spawn(|_| panic!("task"));
                (0..10).for_each(|_| scope.spawn(|_| end()));
            });
        };
        says(caught(&scoped), "task");
        assert_eq!(ended.into_inner(), 10);
        assert_eq!(pool.install(|| fib(10)), 55, "the pool goes on");
    }
}

#[test]
fn a_panic_of_a_task_that_nobody_waits_for_goes_to_the_handler() {
    let (says, said) = channel();
    let builder = PoolBuilder::default().panic_handler(move |panic| {
        says.send(*panic.downcast_ref::<&str>().unwrap()).unwrap();
    });
    let pool = builder.build().unwrap();
    pool.spawn(|| panic!("alone"));
    assert_eq!(said.recv().unwrap(), "alone");
}

#[test]
fn dropping_a_pool_ends_all_its_tasks() {
    for pool in pools() {
        let count = Arc::new(AtomicUsize::new(0));
        for _ in 0..100 {
            let count = Arc::clone(&count);
            pool.spawn(move || {
                fib(8);
                scope(|scope| scope.spawn(|_| add_one(&count)));
            });
        }
        drop(pool);
        assert_eq!(count.load(Ordering::Relaxed), 100);
    }
}

#[test]
fn a_task_may_drop_its_pool() {
    for pool in pools() {
        let (says, said) = channel();
        let pool = Arc::new(pool);
        let last = Arc::clone(&pool);
        let (go, gone) = channel::<()>();
        pool.spawn(move || {
            gone.recv().unwrap();
            drop(last);
            says.send(fib(10)).unwrap();
        });
        drop(pool);
        go.send(()).unwrap();
        assert_eq!(said.recv().unwrap(), 55);
    }
}

#[test]
fn pools_that_wait_for_each_other_end() {
    let (a, b) = (
        PoolBuilder::default().workers(1),
        PoolBuilder::default().workers(2),
    );
    let (a, b) = (a.build().unwrap(), b.build().unwrap());
    let deep = a.install(|| b.install(|| a.install(|| b.install(|| a.join(|| fib(9), || fib(8))))));
    assert_eq!(deep, (34, 21));
    let count = AtomicUsize::new(0);
    a.scope(|of_a| {
        for _ in 0..50 {
            // From a worker of the other pool, too.
            b.install(|| {
                of_a.spawn(|_| {
                    b.install(|| count.fetch_add(1, Ordering::Relaxed));
                });
            });
        }
    });
    assert_eq!(count.into_inner(), 50);
}

#[test]
fn threads_that_are_no_workers_may_spawn_into_a_scope() {
    for pool in pools() {
        let count = AtomicUsize::new(0);
        pool.scope(|scope| {
            std::thread::scope(|threads| {
                for _ in 0..4 {
                    threads.spawn(|| scope.spawn(|_| add_one(&count)));
                }
            });
        });
        assert_eq!(count.into_inner(), 4);
    }
}

#[test]
fn settings_that_are_none_are_errors() {
    for bad in [0, 5000] {
        assert!(PoolBuilder::default().workers(bad).build().is_err());
    }
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(PoolBuilder::default().overcommit(bad).build().is_err());
    }
}

#[test]
fn inactive_workers_take_nothing() {
    let builder = PoolBuilder::default().workers(8).overcommit(1e-6);
    let pool = builder.build().unwrap();
    while pool.active_workers() > 1 {
        pool.install(std::thread::yield_now);
    }
    // From outside, so that no worker holds what it spawned.
    let taken = Mutex::new(HashMap::new());
    pool.scope(|scope| {
        let task = |_: &_| {
            *taken
                .lock()
                .unwrap()
                .entry(std::thread::current().id())
                .or_insert(0) += 1;
            std::thread::yield_now();
        };
        let spawn = || (0..200).for_each(|_| scope.spawn(task));
        std::thread::scope(|threads| threads.spawn(spawn).join().unwrap());
    });
    // One that was past its look at the count as it fell takes the task that it was about to.
    let mut taken: Vec<usize> = taken.into_inner().unwrap().into_values().collect();
    taken.sort_unstable();
    taken.pop();
    assert!(taken.iter().all(|&tasks| tasks == 1), "{taken:?}");
}
