// SPDX-License-Identifier: GPL-2.0-only
//! One answer for all requests at about the same time. What it takes to look comes out of the
//! agent's main loop, which also answers changes of knobs: however many ask, a look is
//! taken once a second at most, and looks get no more than a twentieth of the time.

use std::time::{Duration, Instant};

const FRESH: Duration = Duration::from_secs(1);
/// A result is kept for this many times as long as it took.
const TIMES: u32 = 19;
/// A look that waited in vain takes that long; then it is tried again.
const AT_MOST: Duration = Duration::from_secs(30);

pub struct Cached<T>(Option<(T, Instant)>);

impl<T> Default for Cached<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Clone> Cached<T> {
    /// The last result if it is recent, else what `take` gives now.
    pub fn get(&mut self, clock: impl Fn() -> Instant, take: impl FnOnce() -> T) -> T {
        let begin = clock();
        match &self.0 {
            Some((kept, until)) if begin < *until => kept.clone(),
            _ => {
                let taken = take();
                let end = clock();
                let took = end.saturating_duration_since(begin);
                let fresh = took.saturating_mul(TIMES).clamp(FRESH, AT_MOST);
                self.0 = Some((taken.clone(), end + fresh));
                taken
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// How many looks of `took` are taken in a minute, by a client that asks every 10 ms.
    fn looks_in_a_minute(took: Duration) -> u32 {
        let begin = Instant::now();
        let now = Cell::new(begin);
        let mut cached = Cached::default();
        let mut looks = 0;
        while now.get() < begin + Duration::from_secs(60) {
            let seen = cached.get(
                || now.get(),
                || {
                    looks += 1;
                    now.set(now.get() + took);
                    looks
                },
            );
            assert_eq!(seen, looks);
            now.set(now.get() + Duration::from_millis(10));
        }
        looks
    }

    #[test]
    fn looks_are_bounded_in_number_and_in_time() {
        let of = |ms| looks_in_a_minute(Duration::from_millis(ms));
        assert_eq!(of(0), 60);
        assert!((57..=60).contains(&of(20)), "{}", of(20));
        assert_eq!(of(200), 15, "a twentieth of a minute");
        assert_eq!(of(5000), 2, "who waits in vain tries again");
    }
}
