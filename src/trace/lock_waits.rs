// SPDX-License-Identifier: GPL-2.0-only
//! Who waits for which lock and who holds it, as the events of a trace go by.

use super::format::Event;
use super::Kind;
use std::collections::HashMap;

/// A wait that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Who waited.
    pub pid: u32,
    /// For which lock, by its number at that time.
    pub lock: u32,
    /// From when on, ns of the trace's clock.
    pub since: u64,
    /// Whether the task got it.
    pub got: bool,
}

/// What an event says of locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A task begins to wait.
    Begins {
        /// For which lock.
        lock: u32,
    },
    /// Another task holds it now, or is known to.
    Held {
        /// Which lock.
        lock: u32,
    },
    /// A wait is over; if the task got the lock, it is its holder now.
    Ends(Wait),
}

/// The waits that there are.
#[derive(Clone, Debug, Default)]
pub struct Locks {
    /// By PID: which lock, and since when.
    waits: HashMap<u32, (u32, u64)>,
    /// By lock.
    waiters: HashMap<u32, u32>,
    /// By lock with waiters: its holder.
    holders: HashMap<u32, u32>,
}

impl Locks {
    /// Who holds the lock; none if that is not known, or nobody waits for it.
    pub fn holder(&self, lock: u32) -> Option<u32> {
        self.holders.get(&lock).copied()
    }

    /// Whether the task holds a lock for which another one waits.
    pub fn is_awaited(&self, pid: u32) -> bool {
        self.holders.values().any(|holder| *holder == pid)
    }

    /// Whether the task waits for a lock.
    pub fn waits(&self, pid: u32) -> bool {
        self.waits.contains_key(&pid)
    }

    /// Takes what comes next.
    pub fn take(&mut self, event: &Event) -> Option<Change> {
        let (pid, lock) = (event.pid, event.low());
        match Kind::from_number(event.kind)? {
            Kind::LockWait => {
                self.end(pid);
                self.waits.insert(pid, (lock, event.time));
                *self.waiters.entry(lock).or_default() += 1;
                Some(Change::Begins { lock })
            }
            // Behind a wait for it, and behind a handoff while others wait.
            Kind::LockHold if self.waiters.contains_key(&lock) => {
                self.holders.insert(lock, pid);
                Some(Change::Held { lock })
            }
            kind @ (Kind::Handoff | Kind::LockLeft) => {
                let (lock, since) = self.end(pid)?;
                let got = kind == Kind::Handoff;
                if got && self.waiters.contains_key(&lock) {
                    self.holders.insert(lock, pid);
                }
                Some(Change::Ends(Wait {
                    pid,
                    lock,
                    since,
                    got,
                }))
            }
            _ => None,
        }
    }

    /// Events are missing: who waits is not known any more.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// The wait of the task, if it had one, is over; a lock without waiters is nobody's.
    fn end(&mut self, pid: u32) -> Option<(u32, u64)> {
        let (lock, since) = self.waits.remove(&pid)?;
        if let Some(waiters) = self.waiters.get_mut(&lock) {
            *waiters -= 1;
            if *waiters == 0 {
                self.waiters.remove(&lock);
                self.holders.remove(&lock);
            }
        }
        Some((lock, since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time: u64, kind: Kind, pid: u32, lock: u32) -> Event {
        Event {
            time,
            pid,
            kind: kind as u16,
            cpu: 0,
            arg: lock.into(),
        }
    }

    #[test]
    fn a_lock_passes_from_waiter_to_waiter_and_is_nobodys_then() {
        let mut locks = Locks::default();
        let mut take = |time, kind, pid| locks.take(&event(time, kind, pid, 5));
        assert_eq!(
            take(1, Kind::LockWait, 10),
            Some(Change::Begins { lock: 5 })
        );
        assert_eq!(take(1, Kind::LockHold, 9), Some(Change::Held { lock: 5 }));
        take(2, Kind::LockWait, 11);
        let over = |pid, since, got| {
            let lock = 5;
            Some(Change::Ends(Wait {
                pid,
                lock,
                since,
                got,
            }))
        };
        assert_eq!(take(4, Kind::Handoff, 10), over(10, 1, true));
        assert!(locks.is_awaited(10) && !locks.is_awaited(9));
        assert_eq!(locks.holder(5), Some(10));
        let left = event(6, Kind::LockLeft, 11, 5);
        assert_eq!(locks.take(&left), over(11, 2, false));
        assert_eq!((locks.holder(5), locks.is_awaited(10)), (None, false));
        // Of a wait that began before the trace did, nothing is known.
        assert_eq!(locks.take(&left), None);
        assert_eq!(locks.take(&event(7, Kind::LockHold, 9, 5)), None);
    }
}
