// SPDX-License-Identifier: MIT
//! What the library wants of the kernel: futexes, a clock, yielding, the CPU it is on.

use crate::sync::AtomicU32;
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub(crate) const NS_PER_SEC: u64 = 1_000_000_000;

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / NS_PER_SEC) as libc::time_t,
        tv_nsec: (ns % NS_PER_SEC) as libc::c_long,
    }
}

/// Nanoseconds of CLOCK_MONOTONIC.
pub(crate) fn now() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// The same as of the last tick: a few nanoseconds instead of twenty.
pub(crate) fn coarse_now() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC_COARSE)
}

fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut ts = timespec(0);
    // SAFETY: ts is ours; these clocks are always there.
    unsafe { libc::clock_gettime(clock, &mut ts) };
    ts.tv_sec as u64 * NS_PER_SEC + ts.tv_nsec as u64
}

/// Sleeps while `*word == value`, for `ns` at most; it may come back early.
pub(crate) fn futex_wait(word: &AtomicU32, value: u32, ns: Option<u64>) {
    let ts = ns.map(timespec);
    let timeout = ts
        .as_ref()
        .map_or(ptr::null(), |ts| ts as *const libc::timespec);
    keep_errno(|| {
        // SAFETY: the kernel reads one word, which the reference keeps alive, and ts, which is ours.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                value,
                timeout,
            )
        };
    });
}

/// A time by one of two clocks.
#[derive(Clone, Copy)]
pub struct Deadline {
    clock: libc::clockid_t,
    at: libc::timespec,
}

impl Deadline {
    /// At `at` by CLOCK_REALTIME or CLOCK_MONOTONIC; none for other clocks, and where the
    /// nanoseconds are not less than a second. Times before the clock's zero are over.
    pub fn new(clock: libc::clockid_t, at: &libc::timespec) -> Option<Self> {
        let known = clock == libc::CLOCK_REALTIME || clock == libc::CLOCK_MONOTONIC;
        let valid = (0..NS_PER_SEC as libc::c_long).contains(&at.tv_nsec);
        (known && valid).then_some(Deadline { clock, at: *at })
    }

    /// Whether it has come.
    pub fn is_over(&self) -> bool {
        let mut now = timespec(0);
        // SAFETY: now is ours; the clock is one of two that are always there.
        unsafe { libc::clock_gettime(self.clock, &mut now) };
        (now.tv_sec, now.tv_nsec) >= (self.at.tv_sec, self.at.tv_nsec)
    }
}

/// Sleeps while `*word == value`, at most until the deadline; it may come back early.
pub fn futex_wait_until(word: &AtomicU32, value: u32, deadline: Option<&Deadline>) {
    if deadline.is_some_and(|deadline| deadline.at.tv_sec < 0) {
        return;
    }
    let clock = match deadline {
        Some(deadline) if deadline.clock == libc::CLOCK_REALTIME => libc::FUTEX_CLOCK_REALTIME,
        _ => 0,
    };
    let timeout = deadline.map_or(ptr::null(), |deadline| ptr::from_ref(&deadline.at));
    keep_errno(|| {
        // SAFETY: the kernel reads one word and a time, which the references keep alive.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG | clock,
                value,
                timeout,
                ptr::null::<u32>(),
                libc::FUTEX_BITSET_MATCH_ANY,
            )
        };
    });
}

/// Memory from the kernel, since an allocator may wait for a lock itself. None: it has none.
pub(crate) fn allocate<T>(value: T) -> Option<*mut T> {
    let mut at = libc::MAP_FAILED;
    keep_errno(|| {
        // SAFETY: a new mapping.
        at = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size_of::<T>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
    });
    if at == libc::MAP_FAILED {
        return None;
    }
    let at = at.cast::<T>();
    // SAFETY: ours, large enough and at the beginning of a page.
    unsafe { at.write(value) };
    Some(at)
}

/// # Safety
///
/// `at` is from `allocate`, and nobody uses it any more.
pub(crate) unsafe fn free<T>(at: *mut T) {
    keep_errno(|| {
        // SAFETY: the caller's promise.
        unsafe { libc::munmap(at.cast(), size_of::<T>()) };
    });
}

/// What a file is mapped for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    ReadAndWrite,
}

/// The first `len` bytes of a file, shared with whoever else has them mapped. None: it cannot be opened for
/// that, or is shorter. Allocates nothing.
pub(crate) fn map_file(path: &CStr, len: usize, access: Access) -> Option<*mut u8> {
    let (flags, protection) = match access {
        Access::Read => (libc::O_RDONLY, libc::PROT_READ),
        Access::ReadAndWrite => (libc::O_RDWR, libc::PROT_READ | libc::PROT_WRITE),
    };
    let mut at = libc::MAP_FAILED;
    keep_errno(|| {
        // SAFETY: path ends with a zero.
        let fd = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) };
        if fd < 0 {
            return;
        }
        // SAFETY: lseek() touches no memory, and the descriptor is ours.
        let size = unsafe { libc::lseek(fd, 0, libc::SEEK_END) };
        if usize::try_from(size).is_ok_and(|size| size >= len) {
            // SAFETY: a new mapping.
            at = unsafe { libc::mmap(ptr::null_mut(), len, protection, libc::MAP_SHARED, fd, 0) };
        }
        // SAFETY: opened above.
        unsafe { libc::close(fd) };
    });
    (at != libc::MAP_FAILED).then_some(at.cast())
}

/// # Safety
///
/// `at` is of `len` bytes from `map_file`, and nobody uses it any more.
pub(crate) unsafe fn unmap(at: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    keep_errno(|| unsafe {
        libc::munmap(at.cast(), len);
    });
}

/// Wakes `count` sleepers. The word itself is not touched, so it may be gone by now.
#[allow(clippy::not_unsafe_ptr_arg_deref)] // An address for the kernel, no more.
pub fn futex_wake(word: *const AtomicU32, count: u32) {
    keep_errno(|| {
        // SAFETY: the kernel looks for sleepers by the address; it reads and writes nothing there.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word,
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                count,
            )
        };
    });
}

/// Sleeps for `ns`, and for the timer's slack.
pub(crate) fn sleep(ns: u64) {
    let ts = timespec(ns);
    keep_errno(|| {
        // SAFETY: ts is ours, and nothing is to be written.
        unsafe { libc::nanosleep(&ts, ptr::null_mut()) };
    });
}

/// Lets another thread have the CPU, if one waits for it.
pub(crate) fn yield_now() {
    // SAFETY: no arguments.
    unsafe { libc::sched_yield() };
}

/// One round of a spinning loop.
pub(crate) fn pause() {
    std::hint::spin_loop();
}

/// The thread's number, by the kernel.
pub(crate) fn gettid() -> u32 {
    // SAFETY: no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// The CPU that the thread is on, or was a moment ago; 0 where that is not known.
pub(crate) fn cpu() -> usize {
    // SAFETY: no arguments.
    usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

/// True if the file at `path` can be read and begins so. Allocates nothing.
pub(crate) fn starts_with(path: &CStr, prefix: &[u8]) -> bool {
    let mut got = [0u8; 64];
    let mut len = 0;
    keep_errno(|| {
        // SAFETY: path ends with a zero.
        let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        if fd >= 0 {
            // SAFETY: got is ours and as long as is said; the descriptor is ours.
            len = unsafe { libc::read(fd, got.as_mut_ptr().cast(), got.len()) };
            // SAFETY: opened above.
            unsafe { libc::close(fd) };
        }
    });
    got[..usize::try_from(len).unwrap_or(0)].starts_with(prefix)
}

/// Has `child` run in each child after a fork, from the first call with this `once` on. Not std's Once: what
/// the call below takes may call this again.
#[inline]
pub(crate) fn in_children(once: &'static AtomicBool, child: unsafe extern "C" fn()) {
    if !once.load(Relaxed) && !once.swap(true, Relaxed) {
        // SAFETY: handlers touch atomics and the calling thread's own memory alone.
        unsafe { libc::pthread_atfork(None, None, Some(child)) };
    }
}

/// A lock must not change what the program finds in errno.
fn keep_errno(call: impl FnOnce()) {
    // SAFETY: errno's place is the thread's own.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    call();
    // SAFETY: as above.
    unsafe { *errno = before };
}
