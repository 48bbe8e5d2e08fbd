// SPDX-License-Identifier: MIT
//! A fork leaves a pool's workers behind. Alone in its program: a child may find what other threads
//! held locked for ever.
#![allow(clippy::unwrap_used)]

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
    // SAFETY: the child calls what follows and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        std::panic::set_hook(Box::new(|_| ()));
        let refused = catch_unwind(AssertUnwindSafe(|| pool.install(|| 1))).is_err()
            && catch_unwind(AssertUnwindSafe(|| pool.spawn(|| ()))).is_err();
        drop(pool);
        let anew = Pool::new().unwrap().install(|| fib(10)) == 55;
        // SAFETY: it ends the child at once.
        unsafe { libc::_exit(if refused && anew { 0 } else { 1 }) };
    }
    let mut status = -1;
    // SAFETY: status is ours.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
    assert_eq!(pool.install(|| fib(5)), 5);
}
