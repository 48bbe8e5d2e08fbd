// SPDX-License-Identifier: MIT
//! A fixed proportion: of threads that wait, those on big CPUs take the lock ten times for each time that one
//! on a little CPU does. That is the static policy which the reorderable lock's authors compare
//! with. Each class has a queue, and the first ones of both look at the lock's word.

use super::wait::Wait;
use super::{mcs, tas};
use crate::words::Words;
use libfreqlock::on_big_cpu;
use std::sync::atomic::Ordering::Relaxed;

/// How often big ones take it while a little one waits.
const PROPORTION: u32 = 10;

pub fn acquire(lock: &Words) {
    if try_acquire(lock) {
        return;
    }
    if on_big_cpu() {
        mcs::queue_up(&lock.tail, || {
            Wait::until(|| !is_turn_of_little(lock) && tas::try_acquire(lock));
        });
        if is_waited_for_by_little(lock) {
            lock.other.store(lock.other.load(Relaxed) + 1, Relaxed);
        }
    } else {
        mcs::queue_up(&lock.second_tail, || {
            Wait::until(|| {
                (is_turn_of_little(lock) || lock.tail.load(Relaxed).is_null())
                    && tas::try_acquire(lock)
            });
            lock.other.store(0, Relaxed);
        });
    }
}

pub fn try_acquire(lock: &Words) -> bool {
    lock.tail.load(Relaxed).is_null() && !is_waited_for_by_little(lock) && tas::try_acquire(lock)
}

/// `other`, which the holder writes, counts what big ones took since a little one did.
fn is_turn_of_little(lock: &Words) -> bool {
    lock.other.load(Relaxed) >= PROPORTION && is_waited_for_by_little(lock)
}

fn is_waited_for_by_little(lock: &Words) -> bool {
    !lock.second_tail.load(Relaxed).is_null()
}
