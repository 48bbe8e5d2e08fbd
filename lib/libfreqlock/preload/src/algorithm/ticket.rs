// SPDX-License-Identifier: MIT
//! Tickets: first come, first served, all spinning on one word.

use super::wait::Wait;
use crate::words::Words;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// `other` is the next ticket, `word` the one that is served.
pub fn acquire(lock: &Words) {
    let ticket = lock.other.fetch_add(1, Relaxed);
    Wait::until(|| lock.word.load(Acquire) == ticket);
}

pub fn try_acquire(lock: &Words) -> bool {
    let served = lock.word.load(Acquire);
    lock.other
        .compare_exchange(served, served.wrapping_add(1), Acquire, Relaxed)
        .is_ok()
}

/// A lock that nobody has stays as it is.
pub fn release(lock: &Words) {
    if is_busy(lock) {
        lock.word.fetch_add(1, Release);
    }
}

pub fn is_busy(lock: &Words) -> bool {
    lock.word.load(Relaxed) != lock.other.load(Relaxed)
}
