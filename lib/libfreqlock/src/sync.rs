// SPDX-License-Identifier: MIT
//! The atomics that the queue is made of. `tests/loom.rs` compiles the queue with loom's.

pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32};

/// A static lock needs constructors that are constant; loom's are not.
macro_rules! const_in_std {
    ($(#[$about:meta])* $vis:vis fn $($rest:tt)*) => { $(#[$about])* $vis const fn $($rest)* };
}
pub(crate) use const_in_std;

/// Rounds of a spinning loop between two looks at the clock.
pub(crate) const ROUNDS: u32 = 16;
