// SPDX-License-Identifier: MIT
//! OpenMP, of this process and of those that it starts.

use crate::available_parallelism;
use std::ffi::c_int;
use std::process::Command;

/// Sets `OMP_NUM_THREADS` for a command.
pub fn size_command(command: &mut Command) -> &mut Command {
    command.env("OMP_NUM_THREADS", available_parallelism().to_string())
}

/// Calls `omp_set_num_threads()`, which counts for the parallel regions that the calling thread
/// begins from now on. The threads; none if no OpenMP is loaded.
pub fn size_process() -> Option<usize> {
    // SAFETY: the name ends with 0.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"omp_set_num_threads".as_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: OpenMP's function of this name takes one int and returns nothing.
    let set: extern "C" fn(c_int) = unsafe { std::mem::transmute(found) };
    let threads = available_parallelism().get();
    set(c_int::try_from(threads).unwrap_or(c_int::MAX));
    Some(threads)
}
