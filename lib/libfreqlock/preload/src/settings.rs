// SPDX-License-Identifier: MIT
//! What the environment says, read once: before the first lock is used.

use crate::environment;
use crate::kind::{Kind, KINDS, LIBCS, LOCK, SLO_NS};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Of KINDS, which one, counted from 1; 0: not known yet.
static KIND: AtomicU8 = AtomicU8::new(0);

/// The kind of all locks of the process.
#[inline]
pub fn kind() -> Kind {
    match KIND.load(Relaxed) {
        0 => read(),
        number => KINDS[usize::from(number) - 1].1,
    }
}

/// Two threads may do this at once, and find the same.
#[cold]
fn read() -> Kind {
    // SAFETY: errno's place is the thread's own.
    let errno = unsafe { *libc::__errno_location() };
    let kind = read_environment();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    kind
}

fn read_environment() -> Kind {
    let index = match environment::get(LOCK) {
        None => 0,
        Some(name) if name.bytes().is_empty() => 0,
        Some(name) => named(name.bytes()).unwrap_or_else(|| {
            complain(b"libfreqlock_preload: FREQLOCK_LOCK is no kind of lock: libc's are used\n");
            LIBCS
        }),
    };
    match environment::get(SLO_NS).map(|text| number(text.bytes())) {
        None => (),
        Some(Some(slo_ns)) => libfreqlock::set_wait_slo(slo_ns),
        Some(None) => complain(b"libfreqlock_preload: FREQLOCK_SLO_NS is no number: not used\n"),
    }
    KIND.store(index as u8 + 1, Relaxed);
    KINDS[index].1
}

fn named(name: &[u8]) -> Option<usize> {
    KINDS.iter().position(|(known, _)| known.as_bytes() == name)
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn complain(line: &[u8]) {
    // SAFETY: the line is as long as is said. There is nobody to tell that it could not be written.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}
