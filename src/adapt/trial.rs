// SPDX-License-Identifier: GPL-2.0-only
//! One trial: a candidate against the mode in force, in pairs of slots, one slot each.
//!
//! Which of the two comes first is drawn by lot for each pair. So if both modes are alike,
//! either is the better one of a pair with probability 1/2, however the load comes and
//! goes and however its scores are spread; and that all of [`PAIRS`] but one speak for a
//! candidate that is no better has probability 11/1024. A drift from slot to slot, and
//! what a slot leaves to the next one, meet both alike.

use crate::estimate::{estimate, Estimate};
use crate::mode::Mode;
use fastrand::Rng;

/// Pairs of a whole trial.
pub const PAIRS: usize = 10;
/// How many of them may speak against a candidate that is taken.
pub const MOST_AGAINST: usize = 1;
/// Pairs in which there was too little to do, until a trial ends for that.
const MOST_VOID: usize = 5;

/// Scores of two slots.
#[derive(Clone, Copy, Debug)]
struct Pair {
    incumbent: f64,
    candidate: f64,
}

#[derive(Clone, Debug)]
pub struct Trial {
    pub candidate: Mode,
    /// Whether the candidate has the first slot of the pair under way.
    candidate_first: bool,
    /// The score of the first slot, once that is over.
    first: Option<f64>,
    pairs: Vec<Pair>,
    void: usize,
}

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Better,
    /// Two pairs spoke against it, or it was better by less than the margin.
    NoBetter,
    /// There was too little to do.
    NoLoad,
}

impl Trial {
    pub fn new(candidate: Mode, rng: &mut Rng) -> Self {
        Self {
            candidate,
            candidate_first: rng.bool(),
            first: None,
            pairs: Vec::new(),
            void: 0,
        }
    }

    /// Whether the slot under way is the candidate's.
    pub fn is_candidates(&self) -> bool {
        self.candidate_first == self.first.is_none()
    }

    /// A slot is over, with this score. Without one its pair is repeated.
    pub fn end_slot(&mut self, score: Option<f64>, rng: &mut Rng) {
        match (self.first.take(), score) {
            (_, None) => self.void += 1,
            (None, Some(score)) => {
                self.first = Some(score);
                return;
            }
            (Some(first), Some(second)) => {
                let (candidate, incumbent) = match self.candidate_first {
                    true => (first, second),
                    false => (second, first),
                };
                self.pairs.push(Pair {
                    incumbent,
                    candidate,
                });
            }
        }
        self.candidate_first = rng.bool();
    }

    /// None while it goes on. `margin` is the share by which the median is to be less.
    pub fn outcome(&self, margin: f64) -> Option<Outcome> {
        if self.against() > MOST_AGAINST {
            return Some(Outcome::NoBetter);
        }
        if self.void > MOST_VOID {
            return Some(Outcome::NoLoad);
        }
        let ratios = self.ratios().filter(|_| self.pairs.len() >= PAIRS)?;
        match ratios.median <= 1.0 - margin {
            true => Some(Outcome::Better),
            false => Some(Outcome::NoBetter),
        }
    }

    /// Pairs in which the candidate was no better.
    pub fn against(&self) -> usize {
        let against = |pair: &&Pair| pair.candidate >= pair.incumbent;
        self.pairs.iter().filter(against).count()
    }

    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }

    pub fn void(&self) -> usize {
        self.void
    }

    /// The candidate's scores over the incumbent's, pair by pair.
    pub fn ratios(&self) -> Option<Estimate> {
        self.of_pairs(|pair| pair.candidate / pair.incumbent)
    }

    pub fn incumbent_score(&self) -> Option<Estimate> {
        self.of_pairs(|pair| pair.incumbent)
    }

    pub fn candidate_score(&self) -> Option<Estimate> {
        self.of_pairs(|pair| pair.candidate)
    }

    fn of_pairs(&self, value: impl Fn(&Pair) -> f64) -> Option<Estimate> {
        estimate(&self.pairs.iter().map(value).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;
    use proptest::prelude::*;

    const MARGIN: f64 = 0.03;

    /// A trial to its end, with scores by whether the slot is the candidate's.
    fn judge(seed: u64, mut score: impl FnMut(bool, &mut Rng) -> Option<f64>) -> (Outcome, Trial) {
        let mut rng = Rng::with_seed(seed);
        let mut trial = Trial::new(Mode::Nest, &mut rng);
        loop {
            let score = score(trial.is_candidates(), &mut rng);
            trial.end_slot(score, &mut rng);
            if let Some(outcome) = trial.outcome(MARGIN) {
                return (outcome, trial);
            }
        }
    }

    #[test]
    fn better_by_more_than_the_margin_is_better() {
        let (outcome, trial) = judge(1, |candidate, _| Some(if candidate { 1.9 } else { 2.0 }));
        assert_eq!((outcome, trial.pairs()), (Outcome::Better, PAIRS));
        let ratios = trial.ratios().unwrap();
        assert!((ratios.median - 0.95).abs() < 1e-9 && ratios.interval.is_some());
    }

    #[test]
    fn a_tie_and_less_than_the_margin_are_no_better() {
        let (outcome, trial) = judge(1, |_, _| Some(2.0));
        assert_eq!((outcome, trial.pairs()), (Outcome::NoBetter, 2));
        let (outcome, _) = judge(1, |candidate, _| Some(if candidate { 1.96 } else { 2.0 }));
        assert_eq!(outcome, Outcome::NoBetter);
    }

    #[test]
    fn one_pair_may_speak_against_it_and_the_interval_says_so_too() {
        let mut slots = 0;
        let (outcome, trial) = judge(1, |candidate, _| {
            slots += 1;
            let odd = slots > 2 && slots <= 4;
            Some(match candidate == odd {
                true => 2.0,
                false => 1.0,
            })
        });
        assert_eq!((outcome, trial.against()), (Outcome::Better, 1));
        let (_, high) = trial.ratios().unwrap().interval.unwrap();
        assert!(high < 1.0, "{high}");
    }

    #[test]
    fn slots_without_work_do_not_count_and_end_it_at_last() {
        let mut slots = 0;
        let (outcome, trial) = judge(1, |candidate, _| {
            slots += 1;
            (slots % 7 != 0).then_some(if candidate { 1.0 } else { 2.0 })
        });
        assert_eq!((outcome, trial.pairs()), (Outcome::Better, PAIRS));
        assert!(trial.void() > 0);
        let (outcome, trial) = judge(1, |_, _| None);
        assert_eq!((outcome, trial.pairs()), (Outcome::NoLoad, 0));
    }

    /// Modes that are alike, in trials of this many seeds: how often one is taken.
    fn false_switches(trials: u64, mut score: impl FnMut(&mut Rng) -> f64) -> usize {
        let better = |seed: &u64| judge(*seed, |_, rng| Some(score(rng))).0 == Outcome::Better;
        (0..trials).filter(better).count()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Noise of any width, heavy tails and drift: 11/1024 at most, so of 1500 trials
        /// 45 and more have a probability of 2e-9.
        #[test]
        fn noise_is_seldom_taken_for_better(width in 0.0..3.0_f64, drift in -0.5..0.5_f64, tail in 1.0..20.0_f64) {
            let mut at = 0.0;
            let taken = false_switches(1500, |rng| {
                at = (at + drift) % 5.0;
                let tail = if rng.f64() < 0.05 { tail } else { 1.0 };
                (width * rng.f64() + at).exp() * tail
            });
            prop_assert!(taken < 45, "{} of 1500", taken);
        }

        /// A candidate that is better by more than noise can hide is found each time.
        #[test]
        fn what_is_better_is_found(gain in 0.1..0.9_f64, seed: u64, level in 1.0..100.0_f64) {
            let (outcome, _) = judge(seed, |candidate, rng| {
                let gain = if candidate { 1.0 - gain } else { 1.0 };
                Some(level * gain * (1.0 + 0.04 * (rng.f64() - 0.5)))
            });
            prop_assert_eq!(outcome, Outcome::Better);
        }

        /// And one that is worse is given up after two pairs.
        #[test]
        fn what_is_worse_is_left_soon(loss in 0.1..5.0_f64, seed: u64) {
            let (outcome, trial) = judge(seed, |candidate, rng| {
                let loss = if candidate { 1.0 + loss } else { 1.0 };
                Some(loss * (1.0 + 0.04 * (rng.f64() - 0.5)))
            });
            prop_assert_eq!(outcome, Outcome::NoBetter);
            prop_assert_eq!(trial.pairs(), 2);
        }
    }
}
