// SPDX-License-Identifier: MIT
//! What the environment says, read once: before the first lock is used.

use crate::environment;
use crate::kind::{Kind, KINDS, LOCK, SLO_NS};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

static KIND: AtomicU8 = AtomicU8::new(0);

/// By number.
const ALL: [Kind; 6] = [
    Kind::Pthread,
    Kind::Freqlock,
    Kind::Tas,
    Kind::Ticket,
    Kind::Mcs,
    Kind::Proportional,
];

/// The kind of all locks of the process.
#[inline]
pub fn kind() -> Kind {
    match KIND.load(Relaxed) {
        0 => read(),
        number => ALL[usize::from(number) - 1],
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
    let kind = match environment::get(LOCK) {
        None => KINDS[0].1,
        Some(name) if name.bytes().is_empty() => KINDS[0].1,
        Some(name) => named(name.bytes()).unwrap_or_else(|| {
            complain(b"libfreqlock_preload: FREQLOCK_LOCK is no kind of lock: libc's are used\n");
            Kind::Pthread
        }),
    };
    match environment::get(SLO_NS).map(|text| number(text.bytes())) {
        None => (),
        Some(Some(slo_ns)) => libfreqlock::set_wait_slo(slo_ns),
        Some(None) => complain(b"libfreqlock_preload: FREQLOCK_SLO_NS is no number: not used\n"),
    }
    KIND.store(kind as u8, Relaxed);
    kind
}

fn named(name: &[u8]) -> Option<Kind> {
    let known = KINDS.iter().find(|(known, _)| known.as_bytes() == name)?;
    Some(known.1)
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn complain(line: &[u8]) {
    // SAFETY: the line is as long as is said. There is nobody to tell that it could not be written.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}
