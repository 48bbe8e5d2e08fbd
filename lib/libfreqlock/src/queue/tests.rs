// SPDX-License-Identifier: MIT
//! Who may take the lock before the head. All orders of steps: `loom/orders.rs`.

use super::*;
use std::thread;
use std::time::Duration;

fn queue(word: u32, users: u32) -> Queue {
    let queue = Queue::new();
    queue.word.store(word, Relaxed);
    queue.users.store(users, Relaxed);
    // Somebody waits; what it points to is not looked at.
    queue.tail.store(ptr::dangling_mut(), Relaxed);
    queue
}

fn word(queue: &Queue) -> u32 {
    queue.word.load(Relaxed)
}

#[test]
fn others_go_first_while_the_head_sleeps_until_it_is_up() {
    let queue = queue(HELD_ASLEEP, PATIENT);
    queue.release();
    assert!(!queue.try_acquire_idle());
    assert!(queue.try_acquire());
    assert!(!queue.try_acquire());
    queue.release();
    assert!(queue.try_acquire());
    // It is up, but the lock is held; then nobody goes first.
    assert!(!queue.try_acquire_as_head());
    queue.release();
    assert!(!queue.try_acquire() && !queue.try_acquire_idle());
    assert!(queue.try_acquire_as_head());
}

#[test]
fn nobody_goes_before_an_impatient_or_a_waking_head() {
    for queue in [queue(HELD_ASLEEP, IMPATIENT), queue(HELD, PATIENT)] {
        queue.release();
        assert_eq!(word(&queue), FREE);
        assert!(!queue.try_acquire() && !queue.try_acquire_idle());
        assert!(queue.try_acquire_as_head());
    }
}

#[test]
fn a_head_gets_impatient() {
    let queue = Queue::new();
    queue.acquire();
    let becomes = |users| {
        let looks = || {
            thread::sleep(Duration::from_micros(100));
            (word(&queue), queue.users.load(Relaxed)) == (HELD_ASLEEP, users)
        };
        (0..50_000).any(|_| looks())
    };
    let mut became = (false, false);
    thread::scope(|scope| {
        scope.spawn(|| {
            queue.acquire();
            queue.release();
        });
        became.0 = becomes(PATIENT);
        thread::sleep(Duration::from_nanos(2 * PATIENCE));
        // As if others had gone first.
        os::futex_wake(&queue.word, 1);
        became.1 = becomes(IMPATIENT);
        queue.release();
    });
    assert_eq!((became, queue.is_busy()), ((true, true), false));
}
