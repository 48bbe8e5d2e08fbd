// SPDX-License-Identifier: MIT
//! A fork leaves a pool's workers behind. Alone in its program: a child may find what other threads
//! held locked for ever.
#![allow(clippy::unwrap_used)]

mod child;

use child::in_child;
use friendlypool::Pool;
use std::panic::{catch_unwind, AssertUnwindSafe};

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = friendlypool::join(|| fib(n - 1), || fib(n - 2));
    a + b
}

#[test]
fn after_a_fork_calls_panic_and_nothing_hangs() {
    let pool = Pool::new().unwrap();
    assert_eq!(pool.install(|| fib(5)), 5);
    let mut pool = Some(pool);
    let is_well = in_child(60, || {
        let pool = pool.take().unwrap();
        std::panic::set_hook(Box::new(|_| ()));
        let refused = catch_unwind(AssertUnwindSafe(|| pool.install(|| 1))).is_err()
            && catch_unwind(AssertUnwindSafe(|| pool.spawn(|| ()))).is_err();
        drop(pool);
        refused && Pool::new().unwrap().install(|| fib(10)) == 55
    });
    assert!(is_well);
    assert_eq!(pool.unwrap().install(|| fib(5)), 5);
}
