// SPDX-License-Identifier: MIT
//! Forks: handlers run in children in the order of their registration, and those of the program may
//! use locks. So the library's own is there before any other.

use crate::real::real;
use crate::settings;
use libc::{c_int, c_void};

/// What pthread_atfork() calls, in each library that has it.
#[no_mangle]
pub unsafe extern "C" fn __register_atfork(
    prepare: *const c_void,
    parent: *const c_void,
    child: *const c_void,
    library: *const c_void,
) -> c_int {
    // This comes back here for the library's own handlers, which it does only once.
    libfreqlock::count_forks();
    real!(__register_atfork(
        prepare => *const c_void, parent => *const c_void, child => *const c_void, library => *const c_void))
}

/// As the library is loaded, if no lock was used before.
extern "C" fn begin() {
    libfreqlock::count_forks();
    settings::kind();
}

#[used]
#[link_section = ".init_array"]
static BEGIN: extern "C" fn() = begin;
