// SPDX-License-Identifier: MIT
//! A queue in which each waiter spins on a node of its own (Mellor-Crummey and Scott, ACM TOCS 9, 1991). The
//! first one waits for the lock's word and then leaves the queue, so that a node lives on a stack.

use super::tas;
use super::wait::Wait;
use crate::words::Words;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr};

#[repr(align(64))]
struct Node {
    is_first: AtomicBool,
    next: AtomicPtr<Node>,
}

pub fn acquire(lock: &Words) {
    if !try_acquire(lock) {
        queue_up(&lock.tail, || Wait::until(|| tas::try_acquire(lock)));
    }
}

pub fn try_acquire(lock: &Words) -> bool {
    lock.tail.load(Relaxed).is_null() && tas::try_acquire(lock)
}

/// Waits until the thread is the first in the queue of that tail, does `first`, and leaves it.
pub fn queue_up(tail: &AtomicPtr<()>, first: impl FnOnce()) {
    let node = Node {
        is_first: AtomicBool::new(false),
        next: AtomicPtr::new(ptr::null_mut()),
    };
    let this = ptr::from_ref(&node).cast_mut();
    let before: *mut Node = tail.swap(this.cast(), AcqRel).cast();
    // SAFETY: a node stays until it has seen which one is behind it.
    if let Some(before) = unsafe { before.as_ref() } {
        before.next.store(this, Release);
        Wait::until(|| node.is_first.load(Acquire));
    }
    first();
    if tail
        .compare_exchange(this.cast(), ptr::null_mut(), Release, Relaxed)
        .is_err()
    {
        Wait::until(|| !node.next.load(Acquire).is_null());
        // SAFETY: it waits for what is stored here.
        unsafe { &*node.next.load(Relaxed) }
            .is_first
            .store(true, Release);
    }
}
