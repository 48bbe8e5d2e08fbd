// SPDX-License-Identifier: MIT
//! libc's own functions, for what stays libc's.

use libc::c_void;
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// Where condition variables got the layout that they have, on x86. On other machines they never had
/// another one, and this version does not exist.
const CONDITION: &CStr = c"GLIBC_2.3.2";

/// A function of libc's, found at its first use.
pub struct Real {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Real {
    pub const fn new(name: &'static CStr) -> Self {
        Real {
            name,
            found: AtomicPtr::new(ptr::null_mut()),
        }
    }

    #[inline]
    pub fn get(&self) -> *mut c_void {
        let found = self.found.load(Relaxed);
        if found.is_null() {
            self.find()
        } else {
            found
        }
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        let mut found = ptr::null_mut();
        if self.name.to_bytes().starts_with(b"pthread_cond_") {
            // SAFETY: two strings that end with a zero.
            found =
                unsafe { libc::dlvsym(libc::RTLD_NEXT, self.name.as_ptr(), CONDITION.as_ptr()) };
        }
        if found.is_null() {
            // SAFETY: as above.
            found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        }
        if found.is_null() {
            // A libc without a function that the program was linked with: it would not have started.
            std::process::abort();
        }
        self.found.store(found, Relaxed);
        found
    }
}

/// Calls libc's function of that name: `real!(name(argument: type, ...))`, which returns a `c_int`.
macro_rules! real {
    ($name:ident($($argument:expr => $type:ty),*)) => {{
        static REAL: $crate::real::Real = $crate::real::Real::new(
            match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name has no zero"),
            },
        );
        // SAFETY: libc's function of that name has these arguments.
        let function = unsafe {
            std::mem::transmute::<*mut libc::c_void, unsafe extern "C-unwind" fn($($type),*) -> libc::c_int>(REAL.get())
        };
        // SAFETY: what the program passed, to the function that it called.
        unsafe { function($($argument),*) }
    }};
}
pub(crate) use real;
