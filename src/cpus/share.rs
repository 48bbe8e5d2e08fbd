// SPDX-License-Identifier: GPL-2.0-only
//! How CPUs are shared when more is wanted than there is.
//!
//! Weighted max-min fairness, which is what virtual time comes to (Demers, Keshav and
//! Shenker, SIGCOMM 1989): one that wants less than its part by claims gets what it wants, and
//! what he leaves is shared by the others in the same way.

/// One of those who share.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Neighbour {
    /// CPUs.
    pub wanted: f64,
    /// What counts where there is not enough: in proportion to this.
    pub claim: f64,
}

impl Neighbour {
    /// The level, CPUs for each unit of claim, at which he has what he wants.
    fn content_at(&self) -> f64 {
        if self.claim > 0.0 {
            self.wanted / self.claim
        } else {
            f64::INFINITY
        }
    }
}

/// CPUs, or time of a quota, and all who want some of it.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    capacity: f64,
    /// By the level at which each is content, the least first.
    neighbours: Vec<Neighbour>,
    /// What this many of them, from the first, want and claim together.
    sums: Vec<Neighbour>,
}

impl Pool {
    pub fn new(capacity: f64, neighbours: impl IntoIterator<Item = Neighbour>) -> Self {
        let mut neighbours: Vec<_> = neighbours.into_iter().filter(|n| n.wanted > 0.0).collect();
        neighbours.sort_by(|a, b| a.content_at().total_cmp(&b.content_at()));
        let mut sum = Neighbour::default();
        let sums = neighbours.iter().map(|neighbour| {
            sum.wanted += neighbour.wanted;
            sum.claim += neighbour.claim;
            sum
        });
        let sums = std::iter::once(Neighbour::default()).chain(sums).collect();
        Self {
            capacity,
            neighbours,
            sums,
        }
    }

    /// What one with this claim gets if it takes all that it can, beside the others;
    /// `mine` are those of them that he is himself, exactly as the pool was given them.
    pub fn share(&self, claim: f64, mine: &[Neighbour]) -> f64 {
        if claim <= 0.0 {
            return 0.0;
        }
        // The first so many are content, less those that become so at the same level as the
        // next: it makes no difference to them, and each must be on the side of all.
        let level = |content: usize| {
            let bar = self.neighbours.get(content).map(Neighbour::content_at);
            let content = bar.map_or(content, |bar| {
                self.neighbours.partition_point(|n| n.content_at() < bar)
            });
            let mut given = self.sums[content].wanted;
            let mut claims = self.sums[self.neighbours.len()].claim - self.sums[content].claim;
            for own in mine.iter().filter(|own| own.wanted > 0.0) {
                if bar.is_none_or(|bar| own.content_at() < bar) {
                    given -= own.wanted;
                } else {
                    claims -= own.claim;
                }
            }
            (self.capacity - given).max(0.0) / (claim + claims.max(0.0))
        };
        let mut range = 0..self.neighbours.len();
        while !range.is_empty() {
            let middle = range.start + range.len() / 2;
            if self.neighbours[middle].content_at() <= level(middle) {
                range.start = middle + 1;
            } else {
                range.end = middle;
            }
        }
        (claim * level(range.start)).clamp(0.0, self.capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(wanted: f64, claim: f64) -> Neighbour {
        Neighbour { wanted, claim }
    }

    /// The same, round by round, as the definition has it.
    fn by_rounds(capacity: f64, claim: f64, others: &[Neighbour]) -> f64 {
        let mut open = others.to_vec();
        let mut left = capacity;
        loop {
            let level = left / (claim + open.iter().map(|n| n.claim).sum::<f64>());
            let before = open.len();
            open.retain(|n| {
                let content = n.wanted <= level * n.claim;
                left -= if content { n.wanted } else { 0.0 };
                !content
            });
            if open.len() == before {
                return claim * level;
            }
        }
    }

    #[test]
    fn who_wants_little_has_it_and_the_others_share_the_rest() {
        let pool = Pool::new(4.0, [of(0.5, 1.0), of(8.0, 1.0)]);
        assert_eq!(pool.share(1.0, &[]), 1.75);
        assert_eq!(Pool::new(4.0, []).share(0.1, &[]), 4.0);
        assert_eq!(pool.share(1.0, &[of(8.0, 1.0)]), 3.5);
        assert_eq!(pool.share(0.0, &[]), 0.0);
    }

    #[test]
    fn a_claim_three_times_as_high_has_three_times_as_much() {
        let pool = Pool::new(4.0, [of(4.0, 3.0)]);
        assert_eq!(pool.share(1.0, &[]), 1.0);
        assert_eq!(Pool::new(4.0, [of(4.0, 1.0)]).share(3.0, &[]), 3.0);
    }

    /// Two that are his own, alike, beside one that is content before them.
    #[test]
    fn his_own_that_are_alike_are_left_out_together() {
        let own = of(2.875, 3.0);
        let pool = Pool::new(6.0, [own, own, of(0.25, 2.0), of(3.25, 4.0)]);
        assert_eq!(pool.share(1.0, &[own, own]), 2.5);
    }

    fn neighbours() -> impl Strategy<Value = Vec<Neighbour>> {
        // Few values, so that some are alike.
        let one = (1u32..40, 1u32..12).prop_map(|(w, c)| of(f64::from(w) / 8.0, f64::from(c)));
        prop::collection::vec(one, 0..20)
    }

    proptest! {
        #[test]
        fn it_is_what_the_rounds_come_to(
            all in neighbours(), capacity in 1u32..16, claim in 1u32..16, mine in 0usize..5,
        ) {
            let (capacity, claim) = (f64::from(capacity), f64::from(claim));
            let mine = &all[..mine.min(all.len())];
            let got = Pool::new(capacity, all.iter().copied()).share(claim, mine);
            let wanted = by_rounds(capacity, claim, &all[mine.len()..]);
            prop_assert!((got - wanted).abs() < 1e-9, "{got} {wanted}");
        }

        #[test]
        fn a_claim_is_worth_its_part_whatever_others_want(
            all in neighbours(), capacity in 1u32..16, claim in 1u32..16,
        ) {
            let (capacity, claim) = (f64::from(capacity), f64::from(claim));
            let claims = claim + all.iter().map(|n| n.claim).sum::<f64>();
            let wanted = all.iter().map(|n| n.wanted).sum::<f64>();
            let got = Pool::new(capacity, all).share(claim, &[]);
            prop_assert!(got >= capacity * claim / claims - 1e-9);
            prop_assert!(got >= capacity - wanted - 1e-9, "what nobody else wants");
            prop_assert!(got <= capacity);
        }

        #[test]
        fn one_more_neighbour_gives_nobody_more(
            all in neighbours(), one in (1u32..40, 1u32..12), capacity in 1u32..16,
        ) {
            let capacity = f64::from(capacity);
            let before = Pool::new(capacity, all.clone()).share(1.0, &[]);
            let more = all.into_iter().chain([of(f64::from(one.0) / 8.0, f64::from(one.1))]);
            let after = Pool::new(capacity, more).share(1.0, &[]);
            prop_assert!(after <= before + 1e-9);
        }
    }
}
