// SPDX-License-Identifier: GPL-2.0-only
//! How often modes are tried: less and less while nothing comes of it ([`Pace`]), at
//! once when the load is another one, and never more than a share of the time
//! ([`Budget`]).

use super::score::Done;
use std::time::{Duration, Instant};

/// How long a context rests, in rounds of trials.
const REST: u32 = 8;
/// Each round without a change doubles that, at most this many times.
const MOST_DOUBLED: u32 = 6;
/// A load is judged by this many looks at once, so that it may come in bursts.
const LOOKS: u32 = 10;
/// And is another one when it has this many times the work, or takes longer by this or
/// less long to do it.
const OTHER_LOAD: f64 = 2.0;
const OTHER_SCORE: f64 = 1.5;

/// Time to spend on trials. In any time T it lets them take `most` + `share` T and what
/// one trial takes.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Seconds; one trial may overdraw it.
    credit: f64,
    at: Instant,
}

impl Budget {
    /// With enough for `most` at once.
    pub fn new(now: Instant, most: Duration) -> Self {
        Self {
            credit: most.as_secs_f64(),
            at: now,
        }
    }

    /// Time has passed, of which `share` may be spent, and `most` be saved.
    pub fn earn(&mut self, now: Instant, share: f64, most: Duration) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.credit = (self.credit + share * passed).min(most.as_secs_f64());
        self.at = now;
    }

    pub fn spend(&mut self, time: Duration) {
        self.credit -= time.as_secs_f64();
    }

    pub fn has(&self, time: Duration) -> bool {
        // What was earned in many small steps is less by their rounding.
        self.credit >= time.as_secs_f64() - 1e-6
    }
}

/// What is compared of a load.
#[derive(Clone, Copy, Debug)]
struct Load {
    work: f64,
    score: f64,
}

impl Load {
    fn is_other(&self, than: &Self) -> bool {
        let apart = |a: f64, b: f64| (a / b).max(b / a);
        apart(self.work, than.work) > OTHER_LOAD || apart(self.score, than.score) > OTHER_SCORE
    }
}

/// When the next round of trials of one context is due.
#[derive(Clone, Debug)]
pub struct Pace {
    due: Instant,
    /// Rounds in a row without a change.
    quiet: u32,
    /// The load after the last round.
    usual: Option<Load>,
    looks: u32,
    seen: Done,
    seen_in: Duration,
}

impl Pace {
    /// Due at once.
    pub fn new(now: Instant) -> Self {
        Self {
            due: now,
            quiet: 0,
            usual: None,
            looks: 0,
            seen: Done::default(),
            seen_in: Duration::ZERO,
        }
    }

    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }

    /// Until it is.
    pub fn rest(&self, now: Instant) -> Duration {
        self.due.saturating_duration_since(now)
    }

    /// A round that may take as long as `round` is over.
    pub fn round_over(&mut self, now: Instant, round: Duration, changed: bool) {
        self.quiet = match changed {
            true => 0,
            false => (self.quiet + 1).min(MOST_DOUBLED),
        };
        *self = Self {
            quiet: self.quiet,
            ..Self::new(now + round * REST * (1 << self.quiet))
        };
    }

    /// This was done in so long, in the mode in force. True if the load is another one
    /// than after the last round: then a round is due.
    pub fn look(&mut self, now: Instant, done: &Done, length: Duration) -> bool {
        self.seen.add(done);
        self.seen_in += length;
        self.looks += 1;
        if self.looks < LOOKS {
            return false;
        }
        let (seen, seen_in) = (self.seen, self.seen_in);
        (self.seen, self.seen_in, self.looks) = (Done::default(), Duration::ZERO, 0);
        let Some(score) = seen.score(seen_in) else {
            return false;
        };
        let load = Load {
            work: seen.load(seen_in),
            score,
        };
        let usual = *self.usual.get_or_insert(load);
        let other = load.is_other(&usual);
        if other {
            *self = Self::new(now.min(self.due));
        }
        other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn load(cpus: f64, score: f64) -> Done {
        let work = cpus * 1e9;
        Done {
            run: work as u64,
            wait: (work * (score - 1.0)) as u64,
            inversion: 0,
            work: work as u64,
        }
    }

    /// Looks once a second, for as long as a period of looks: whether it was new.
    fn period(pace: &mut Pace, now: Instant, done: &Done) -> bool {
        (0..LOOKS).filter(|_| pace.look(now, done, SECOND)).count() > 0
    }

    #[test]
    fn rests_grow_until_a_bound_and_a_change_ends_that() {
        let now = Instant::now();
        let mut pace = Pace::new(now);
        assert!(pace.is_due(now));
        let mut rests = Vec::new();
        for _ in 0..20 {
            pace.round_over(now, SECOND, false);
            assert!(!pace.is_due(now));
            rests.push(pace.rest(now));
        }
        assert_eq!(rests[..3], [16 * SECOND, 32 * SECOND, 64 * SECOND]);
        assert_eq!(rests[19], SECOND * REST * (1 << MOST_DOUBLED));
        pace.round_over(now, SECOND, true);
        assert_eq!(pace.rest(now), 8 * SECOND);
    }

    #[test]
    fn another_load_ends_the_rest_and_the_usual_one_does_not() {
        let now = Instant::now();
        for (other, ends) in [
            (load(2.0, 1.5), false),
            (load(3.0, 2.0), false),
            (load(0.001, 1.0), false), // too little to judge by
            (load(5.0, 1.5), true),
            (load(0.9, 1.5), true),
            (load(2.0, 2.5), true),
        ] {
            let mut pace = Pace::new(now);
            pace.round_over(now, SECOND, false);
            assert!(!period(&mut pace, now, &load(2.0, 1.5)), "the first");
            assert!(!period(&mut pace, now, &load(2.0, 1.5)));
            assert_eq!(period(&mut pace, now, &other), ends, "{other:?}");
            assert_eq!(pace.is_due(now), ends, "{other:?}");
        }
    }

    proptest! {
        /// Whatever is spent when: no more than the bound in any time.
        #[test]
        fn no_more_is_spent_than_may_be(
            share in 0.01..1.0_f64, steps in proptest::collection::vec((0..5000_u64, any::<bool>()), 1..300),
        ) {
            let start = Instant::now();
            let (mut now, mut spent, most) = (start, Duration::ZERO, 12 * SECOND);
            let mut budget = Budget::new(now, most);
            for (ms, wants) in steps {
                now += Duration::from_millis(ms);
                budget.earn(now, share, most);
                if wants && budget.has(4 * SECOND) {
                    now += 4 * SECOND;
                    spent += 4 * SECOND;
                    budget.spend(4 * SECOND);
                }
                let bound = most.as_secs_f64() + share * (now - start).as_secs_f64();
                prop_assert!(spent.as_secs_f64() <= bound + 1e-3);
            }
        }
    }
}
