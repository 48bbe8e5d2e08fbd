// SPDX-License-Identifier: MIT
//! Which workers sleep. Nobody sleeps on with something to do: a worker announces that it will
//! sleep and then looks for work; who makes work looks for sleepers after that.

use crossbeam::sync::{Parker, Unparker};
use std::sync::atomic::{fence, AtomicU64, Ordering};

pub(crate) struct Sleepers {
    /// A bit for each worker.
    words: Box<[AtomicU64]>,
    unparkers: Box<[Unparker]>,
}

impl Sleepers {
    pub(crate) fn new(parkers: &[Parker]) -> Self {
        let words = parkers.len().div_ceil(64);
        Self {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            unparkers: parkers.iter().map(|one| one.unparker().clone()).collect(),
        }
    }

    /// The worker will park. What it looks at after this, and finds unchanged, wakes it when it changes.
    pub(crate) fn announce(&self, worker: usize) {
        self.words[worker / 64].fetch_or(1 << (worker % 64), Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// The worker is awake. True if another thread saw to that.
    pub(crate) fn retract(&self, worker: usize) -> bool {
        let bit = 1 << (worker % 64);
        self.words[worker / 64].fetch_and(!bit, Ordering::SeqCst) & bit == 0
    }

    /// Wakes this worker if it sleeps; true if it did.
    pub(crate) fn wake(&self, worker: usize) -> bool {
        fence(Ordering::SeqCst);
        let bit = 1 << (worker % 64);
        // A look first: most often nobody sleeps, and all share the word.
        let slept =
            self.words[worker / 64].load(Ordering::Relaxed) & bit != 0 && !self.retract(worker);
        if slept {
            self.unparkers[worker].unpark();
        }
        slept
    }

    /// Wakes one of the first so many workers, if one of them sleeps.
    pub(crate) fn wake_one(&self, below: usize) -> bool {
        fence(Ordering::SeqCst);
        for (index, word) in self.words.iter().enumerate() {
            let first = 64 * index;
            if first >= below {
                break;
            }
            let mask = u64::MAX >> (64 - (below - first).min(64));
            loop {
                let asleep = word.load(Ordering::Relaxed) & mask;
                if asleep == 0 {
                    break;
                }
                if self.wake(first + asleep.trailing_zeros() as usize) {
                    return true;
                }
            }
        }
        false
    }

    pub(crate) fn wake_all(&self) {
        for worker in 0..self.unparkers.len() {
            self.wake(worker);
        }
    }

    /// True if not one is awake.
    pub(crate) fn all_asleep(&self) -> bool {
        let asleep: u32 = self
            .words
            .iter()
            .map(|word| word.load(Ordering::SeqCst).count_ones())
            .sum();
        asleep as usize == self.unparkers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wakes_those_below_alone_and_each_once() {
        let parkers: Vec<_> = (0..130).map(|_| Parker::new()).collect();
        let sleepers = Sleepers::new(&parkers);
        for worker in [3, 70, 129] {
            sleepers.announce(worker);
        }
        assert!(!sleepers.wake_one(3));
        assert!(sleepers.wake_one(4) && !sleepers.wake_one(70));
        assert!(sleepers.wake_one(130) && sleepers.wake_one(130) && !sleepers.wake_one(130));
        for worker in [3, 70, 129] {
            // Else this never ends.
            parkers[worker].park();
            assert!(sleepers.retract(worker), "by another thread");
        }
        (0..130).for_each(|worker| sleepers.announce(worker));
        assert!(sleepers.all_asleep());
        assert!(sleepers.wake(129) && !sleepers.all_asleep());
        assert!(!sleepers.retract(0), "by itself");
    }
}
