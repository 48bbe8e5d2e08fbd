// SPDX-License-Identifier: MIT
//! Rounds of waiting: spinning, then letting others have the CPU.

use std::hint::spin_loop;

/// Rounds before the CPU is given up, with pauses that double up to PAUSES_MOST: some 20 us.
const SPINS: u32 = 64;
const PAUSES_MOST: u32 = 16;

pub struct Wait {
    rounds: u32,
}

impl Wait {
    pub fn new() -> Self {
        Wait { rounds: 0 }
    }

    pub fn once(&mut self) {
        if self.rounds < SPINS {
            let pauses = (1 << self.rounds.min(8)).min(PAUSES_MOST);
            (0..pauses).for_each(|_| spin_loop());
            self.rounds += 1;
        } else {
            // SAFETY: no arguments.
            unsafe { libc::sched_yield() };
        }
    }

    pub fn until(mut is_over: impl FnMut() -> bool) {
        let mut wait = Wait::new();
        while !is_over() {
            wait.once();
        }
    }
}
