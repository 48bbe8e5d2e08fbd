// SPDX-License-Identifier: MIT
//! A fork while a pool's workers begin. Alone in its program, as in fork.rs.
#![allow(clippy::unwrap_used)]

use friendlypool::Pool;

/// Calls it in a child, which has so many seconds; whether it said that all is well.
fn in_child(seconds: u32, call: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child calls that and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: no memory is concerned.
        unsafe { libc::alarm(seconds) };
        let is_well = call();
        // SAFETY: it ends the child at once.
        unsafe { libc::_exit(if is_well { 0 } else { 1 }) };
    }
    let mut status = -1;
    // SAFETY: status is ours.
    unsafe { libc::waitpid(child, &mut status, 0) };
    status == 0
}

#[test]
fn a_child_has_a_pool_of_its_own_however_early_it_was_made() {
    for round in 0..300 {
        // In a process that has had no pool, whose workers have all before them.
        let is_well = in_child(60, || {
            let _pool = Pool::new().unwrap();
            in_child(20, || Pool::new().unwrap().install(|| 7) == 7)
        });
        assert!(is_well, "round {round}");
    }
}
