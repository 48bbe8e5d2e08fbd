// SPDX-License-Identifier: GPL-2.0-only
//! In which order tasks run that wait for one CPU: by virtual time, which weighs the time that they
//! ran. Placement is what the lab is for; this is no more than fair.

/// Weight of nice 0, as the kernel tells it.
const USUAL: u64 = 100;

/// The virtual clock.
#[derive(Default)]
pub struct Clock {
    now: u64,
}

impl Clock {
    /// The virtual time at which a task is queued that has `had`, and then ran for `ran` ns. One
    /// that slept gets no more than `credit` ns for that.
    pub fn place(&mut self, had: u64, ran: u64, weight: u64, credit: u64) -> u64 {
        let least = self.now.saturating_sub(credit);
        let time = had.max(least) + ran.saturating_mul(USUAL) / weight.max(1);
        self.now = self.now.max(time.min(self.now + credit));
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heavier_task_comes_back_sooner_and_sleep_is_not_saved_up() {
        let mut clock = Clock::default();
        let light = clock.place(0, 1000, 100, 500);
        let heavy = clock.place(0, 1000, 200, 500);
        assert!(heavy < light);
        for _ in 0..100 {
            clock.place(clock.now, 1000, 100, 500);
        }
        assert_eq!(clock.place(0, 0, 100, 500), clock.now - 500);
    }
}
