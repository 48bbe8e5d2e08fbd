// SPDX-License-Identifier: MIT
//! The kinds of locks, behind the same five functions. A lock is free when all of its words are zero, but
//! `kind`, which is the mutex's.
//!
//! All but the first are what papers compare with. They spin; after some microseconds they let other
//! threads have the CPU between two looks, as else more threads than CPUs would get nowhere. Waits with a
//! deadline do not queue up: these look again and again whether the lock is free.

mod mcs;
mod proportional;
mod tas;
mod ticket;
mod wait;

use crate::kind::Kind;
use crate::settings::kind;
use crate::words::Words;
use libfreqlock::{tid, Deadline};
use std::sync::atomic::Ordering::Relaxed;

impl Words {
    #[inline]
    pub fn acquire(&self) {
        match kind() {
            Kind::Freqlock | Kind::Pthread => return self.raw().lock(),
            Kind::Tas => tas::acquire(self),
            Kind::Ticket => ticket::acquire(self),
            Kind::Mcs => mcs::acquire(self),
            Kind::Proportional => proportional::acquire(self),
        }
        self.owner.store(tid(), Relaxed);
    }

    /// False: it is held or waited for.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        let taken = match kind() {
            Kind::Freqlock | Kind::Pthread => return self.raw().try_lock(),
            Kind::Tas => tas::try_acquire(self),
            Kind::Ticket => ticket::try_acquire(self),
            Kind::Mcs => mcs::try_acquire(self),
            Kind::Proportional => proportional::try_acquire(self),
        };
        if taken {
            self.owner.store(tid(), Relaxed);
        }
        taken
    }

    /// False: it could not be had before the deadline.
    pub fn acquire_until(&self, deadline: &Deadline) -> bool {
        if matches!(kind(), Kind::Freqlock | Kind::Pthread) {
            return self.raw().lock_until(deadline);
        }
        let mut wait = wait::Wait::new();
        while !self.try_acquire() {
            if deadline.is_over() {
                return false;
            }
            wait.once();
        }
        true
    }

    /// By any thread. Afterwards the memory may be gone.
    #[inline]
    pub fn release(&self) {
        let release = match kind() {
            Kind::Freqlock | Kind::Pthread => return self.raw().unlock(),
            Kind::Tas | Kind::Mcs | Kind::Proportional => tas::release,
            Kind::Ticket => ticket::release,
        };
        self.owner.store(0, Relaxed);
        release(self);
    }

    /// Whether somebody has it, or waits for it.
    pub fn is_busy(&self) -> bool {
        match kind() {
            Kind::Freqlock | Kind::Pthread => self.raw().is_busy(),
            Kind::Ticket => ticket::is_busy(self),
            Kind::Tas | Kind::Mcs | Kind::Proportional => self.word.load(Relaxed) != 0,
        }
    }
}
