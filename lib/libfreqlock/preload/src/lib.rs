// SPDX-License-Identifier: MIT
//! Loaded by LD_PRELOAD, this library is in a program's way to the locks of libc: mutexes, spin locks,
//! reader-writer locks and condition variables of one process are libfreqlock's then, or those of a
//! simpler algorithm to compare with. It also has what `lib/freqlock.h` declares, so that epochs of
//! a program count for these locks, too.
//!
//! - What a program declares and initialises as libc's has libc's size and initialisers, so each lock
//!   lives in that memory (`words.rs`), and nothing is allocated for it.
//! - What is shared between processes, robust, or inherits priorities, stays libc's, and is known by marks
//!   that libc itself leaves in it. So does everything with `FREQLOCK_LOCK=pthread`.
//! - A lock may be used before any constructor ran, also by an allocator: so nothing here allocates or
//!   waits for anything but that lock, and settings are read at the first use.
#![allow(missing_docs, clippy::missing_safety_doc)]

mod algorithm;
#[path = "../../capi/src/lib.rs"]
mod capi;
mod cond;
mod cond_calls;
mod environment;
mod fork;
mod kind;
mod mutex;
mod real;
mod rwlock;
mod rwlock_calls;
mod settings;
mod spin;
mod words;
