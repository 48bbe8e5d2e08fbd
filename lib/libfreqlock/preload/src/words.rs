// SPDX-License-Identifier: MIT
//! The memory of a mutex, as libc and each algorithm share it.

use libfreqlock::RawLock;
use std::sync::atomic::{AtomicPtr, AtomicU32};

/// 40 bytes. `owner`, `count` and `kind` are those of glibc's `struct __pthread_mutex_s`: `kind` is where static
/// initialisers put a mutex's type, and libc what makes it its own.
#[repr(C)]
pub struct Words {
    pub word: AtomicU32,
    pub count: AtomicU32,
    pub owner: AtomicU32,
    pub other: AtomicU32,
    pub kind: AtomicU32,
    pub more: AtomicU32,
    pub tail: AtomicPtr<()>,
    pub second_tail: AtomicPtr<()>,
}

// Of some architectures libc has more, which nobody uses: arm64's are of 48 bytes.
const _: () = assert!(size_of::<Words>() <= size_of::<libc::pthread_mutex_t>());
const _: () = assert!(size_of::<Words>() == size_of::<RawLock>());

impl Words {
    /// The same memory as a lock of the library.
    #[inline]
    pub fn raw(&self) -> &RawLock {
        // SAFETY: as large, all of it may change behind a reference in both, and any bytes are either.
        unsafe { &*std::ptr::from_ref(self).cast() }
    }
}
