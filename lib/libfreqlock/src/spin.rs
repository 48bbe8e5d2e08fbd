// SPDX-License-Identifier: MIT
//! Spinning for a bounded time.

use crate::os;
use crate::sync::ROUNDS;

/// Spins until `is_over` says so, for `ns` at most; false if it did not.
pub(crate) fn spin_for(ns: u64, mut is_over: impl FnMut() -> bool) -> bool {
    let end = os::now() + ns;
    loop {
        for _ in 0..ROUNDS {
            if is_over() {
                return true;
            }
            os::pause();
        }
        if os::now() >= end {
            return false;
        }
    }
}
