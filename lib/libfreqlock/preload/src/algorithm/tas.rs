// SPDX-License-Identifier: MIT
//! Test-and-set: whoever comes at the right moment.

use super::wait::Wait;
use crate::words::Words;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

pub fn acquire(lock: &Words) {
    Wait::until(|| try_acquire(lock));
}

pub fn try_acquire(lock: &Words) -> bool {
    lock.word.load(Relaxed) == 0 && lock.word.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
}

pub fn release(lock: &Words) {
    lock.word.store(0, Release);
}
