// SPDX-License-Identifier: MIT
//! What the environment says, read once: before the first lock is used, and before the program's first epoch.

use crate::environment;
use crate::kind::{Kind, EPOCH, EPOCH_SLO_NS, KINDS, LATENCIES, LIBCS, LOCK, SLO_NS};
use libfreqlock::latencies;
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
    if let Some(path) = environment::get(LATENCIES) {
        profile(&path);
    }
    KIND.store(index as u8 + 1, Relaxed);
    KINDS[index].1
}

fn profile(path: &environment::Value) {
    // Two threads that are here at once would count themselves as two processes; no harm is done.
    if !path.c_str().is_some_and(latencies::count_in) {
        return complain(b"libfreqlock_preload: nothing can be counted in FREQLOCK_LATENCIES\n");
    }
    let value = |name| number(environment::get(name)?.bytes());
    let id = value(EPOCH).and_then(|id| u32::try_from(id).ok());
    libfreqlock::profile_epochs(id, value(EPOCH_SLO_NS).unwrap_or(0));
}

/// Called as the library is loaded. A program may begin an epoch before it uses any of libc's locks.
extern "C" fn as_it_is_loaded() {
    kind();
    if latencies::are_counted() {
        // Reads what says so, once, for which memory is allocated: not while a lock is held that an allocator waits for.
        libfreqlock::on_big_cpu();
    }
}

#[used]
#[link_section = ".init_array"]
static AS_IT_IS_LOADED: extern "C" fn() = as_it_is_loaded;

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
