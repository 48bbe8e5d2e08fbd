// SPDX-License-Identifier: MIT
//! A child of a test's process.

/// Calls it in a child, which has so many seconds; whether it said that all is well.
pub fn in_child(seconds: u32, call: impl FnOnce() -> bool) -> bool {
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
