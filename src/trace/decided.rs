// SPDX-License-Identifier: GPL-2.0-only
//! What our own scheduler decided, by the events that it alone has: where it placed tasks and
//! why, and how long tasks waited for locks.

use super::format::Event;
use super::lock_waits::{Change, Locks};
use super::ring::abi;
use super::Kind;
use hdrhistogram::Histogram;

/// What came of placements: the flag, and what is said of those that have it. A placement may
/// have several.
const OUTCOMES: [(u32, &str); 6] = [
    (abi::rec_place_REC_PLACE_IDLE, "to an idle CPU"),
    (abi::rec_place_REC_PLACE_PARK, "to wait there on purpose"),
    (abi::rec_place_REC_PLACE_SET, "to wait within the warm set"),
    (
        abi::rec_place_REC_PLACE_BIG,
        "to a big CPU, as a holder or by prefer_big",
    ),
    (abi::rec_place_REC_PLACE_PREV, "where they ran before"),
    (abi::rec_place_REC_PLACE_FORK, "were new"),
];

/// All of them.
pub struct Decisions {
    locks: Locks,
    /// Waits that ended with the lock, ns.
    pub lock_waits: Histogram<u64>,
    /// Waits that ended without.
    pub left: u64,
    /// Placements.
    pub places: u64,
    outcomes: [u64; OUTCOMES.len()],
}

/// Of times up to an hour, ns.
pub(super) fn histogram() -> Histogram<u64> {
    const HOUR_NS: u64 = 3_600_000_000_000;
    Histogram::new_with_bounds(1, HOUR_NS, 3).expect("the bounds are constants and valid")
}

impl Default for Decisions {
    fn default() -> Self {
        Self {
            locks: Locks::default(),
            lock_waits: histogram(),
            left: 0,
            places: 0,
            outcomes: [0; OUTCOMES.len()],
        }
    }
}

impl Decisions {
    /// Takes what comes next.
    pub fn take(&mut self, event: &Event) {
        if let Some(Change::Ends(wait)) = self.locks.take(event) {
            match wait.got {
                true => self
                    .lock_waits
                    .saturating_record(event.time.saturating_sub(wait.since)),
                false => self.left += 1,
            }
        }
        if Kind::from_number(event.kind) == Some(Kind::Place) {
            self.places += 1;
            for (count, (flag, _)) in self.outcomes.iter_mut().zip(OUTCOMES) {
                *count += u64::from(event.high() & flag != 0);
            }
        }
    }

    /// Events are missing.
    pub fn gap(&mut self) {
        self.locks.forget();
    }

    /// What came of placements, and of how many, as far as it did.
    pub fn outcomes(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let all = self.outcomes.iter().zip(OUTCOMES);
        all.filter(|(count, _)| **count > 0)
            .map(|(count, (_, what))| (what, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placements_count_by_outcome_and_waits_by_how_they_end() {
        let mut all = Decisions::default();
        let mut take = |time, kind: Kind, pid, high: u32, low: u32| {
            all.take(&Event {
                time,
                pid,
                kind: kind as u16,
                cpu: 0,
                arg: u64::from(high) << 32 | u64::from(low),
            });
        };
        let [idle, prev] = [OUTCOMES[0].0, OUTCOMES[4].0];
        take(1, Kind::Place, 1, idle | prev | 3, 0);
        take(1, Kind::Place, 1, prev | 3, 0);
        take(10, Kind::LockWait, 1, 0, 5);
        take(10, Kind::LockWait, 2, 0, 5);
        take(30, Kind::Handoff, 1, 0, 5);
        take(40, Kind::LockLeft, 2, 0, 5);
        let outcomes: Vec<_> = all.outcomes().collect();
        let expected = [("to an idle CPU", 1), ("where they ran before", 2)];
        assert_eq!((all.places, &outcomes[..]), (2, &expected[..]));
        assert_eq!(
            (all.lock_waits.len(), all.lock_waits.max(), all.left),
            (1, 20, 1)
        );
    }
}
