// SPDX-License-Identifier: GPL-2.0-only
//! Scheduling policies. SCHED_EXT says that a normal task is to be
//! scheduled by a sched_ext scheduler also where that has not all of them.

use nix::errno::Errno;
use nix::libc;

/// linux/sched.h; libc has no name for it.
const SCHED_EXT: libc::c_int = 7;

/// Asks for a sched_ext scheduler, and keeps the nice value. Children inherit it.
///
/// # Errors
/// EINVAL where the kernel has no sched_ext, EPERM and EACCES where this is not allowed.
pub fn enter_ext() -> Result<(), Errno> {
    set(0, SCHED_EXT)
}

/// Has the kernel's own scheduler instead, if it was SCHED_EXT.
pub fn leave_ext() -> Result<(), Errno> {
    // SAFETY: it takes no pointer.
    let policy = Errno::result(unsafe { libc::sched_getscheduler(0) })?;
    match policy & !libc::SCHED_RESET_ON_FORK {
        SCHED_EXT => make_normal(0),
        _ => Ok(()),
    }
}

/// Makes a task, 0 for the calling one, a normal one that keeps its nice value.
pub fn make_normal(tid: i32) -> Result<(), Errno> {
    set(tid, libc::SCHED_OTHER)
}

fn set(tid: i32, policy: libc::c_int) -> Result<(), Errno> {
    // SAFETY: zero is a value of each of its fields, which are numbers.
    let normal: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid for the call, which reads from it alone.
    Errno::result(unsafe { libc::sched_setscheduler(tid, policy, &normal) }).map(drop)
}
