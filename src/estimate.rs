// SPDX-License-Identifier: GPL-2.0-only
//! Medians with intervals that assume nothing about how the values are spread,
//! and what they say about one scheduler against another.

use serde::Serialize;

/// How sure an interval has to be.
const CONFIDENCE: f64 = 0.95;

/// Fewest values whose range is a 95% interval of the median.
pub const MIN_RUNS: usize = 6;

/// The median of some values, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// How many values there are.
    pub runs: usize,
    /// Of an even number of values, the mean of the middle two.
    pub median: f64,
    /// 95% interval of the median; none with fewer than [`MIN_RUNS`] values.
    pub interval: Option<(f64, f64)>,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
}

impl Estimate {
    /// The interval; of too few values, the range of them all.
    pub fn bounds(&self) -> (f64, f64) {
        self.interval.unwrap_or((self.min, self.max))
    }
}

/// None without values.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let n = sorted.len();
    let median = if n % 2 == 1 {
        sorted[n / 2]
    } else {
        (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0
    };
    Some(Estimate {
        runs: n,
        median,
        interval: median_rank(n).map(|rank| (sorted[rank - 1], sorted[n - rank])),
        min,
        max,
    })
}

/// The largest rank r for which the r-th smallest and the r-th largest of n
/// values enclose the median of the population with 95% confidence. Each value
/// is below that median with probability 1/2, so the interval misses it with
/// probability 2 P(X < r), X binomial over n and 1/2 (David and Nagaraja, Order
/// Statistics, 3rd edition, section 7.1).
fn median_rank(n: usize) -> Option<usize> {
    // As logarithms, because 0.5 to the power of n may be less than any float.
    let mut probability_ln = -(n as f64) * std::f64::consts::LN_2;
    let mut below = 0.0;
    let mut rank = 0;
    while rank < n / 2 {
        below += probability_ln.exp();
        if 2.0 * below > 1.0 - CONFIDENCE {
            break;
        }
        probability_ln += ((n - rank) as f64 / (rank + 1) as f64).ln();
        rank += 1;
    }
    (rank > 0).then_some(rank)
}

/// The exact sign test, two-sided: how probable it is that values lie as unevenly about
/// `median` as these if that is their median. Values equal to it say nothing and are left out
/// (Conover, Practical Nonparametric Statistics, 3rd edition, section 3.4).
pub fn sign_test(values: &[f64], median: f64) -> f64 {
    let below = values.iter().filter(|value| **value < median).count();
    let above = values.iter().filter(|value| **value > median).count();
    let (n, fewer) = (below + above, below.min(above));
    let mut probability_ln = -(n as f64) * std::f64::consts::LN_2;
    let mut tail = 0.0;
    for k in 0..=fewer {
        tail += probability_ln.exp();
        probability_ln += ((n - k) as f64 / (k + 1) as f64).ln();
    }
    (2.0 * tail).min(1.0)
}

/// Probabilities of many tests, adjusted by Benjamini and Hochberg (J. R. Statist. Soc. B 57,
/// 1995): of those that are 0.05 or less, at most one in twenty is expected to be chance.
pub fn benjamini_hochberg(all: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|a, b| all[*b].total_cmp(&all[*a]));
    let mut adjusted = vec![1.0; all.len()];
    let mut least = 1.0_f64;
    for (greater, at) in order.into_iter().enumerate() {
        let rank = all.len() - greater;
        least = least.min(all[at] * all.len() as f64 / rank as f64);
        adjusted[at] = least;
    }
    adjusted
}

/// What a ratio to another scheduler says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Better: the whole interval is on that side of 1.
    Win,
    /// Worse, likewise.
    Loss,
    /// The interval holds 1: no difference was shown.
    Level,
    /// Too few runs for an interval.
    Unknown,
}

impl Verdict {
    /// Judges a ratio of figures; where less is better, below 1 wins.
    pub fn of(ratio: &Estimate, lower_is_better: bool) -> Self {
        match ratio.interval {
            None => Self::Unknown,
            Some((low, high)) if low <= 1.0 && high >= 1.0 => Self::Level,
            Some((low, _)) if (low > 1.0) == lower_is_better => Self::Loss,
            Some(_) => Self::Win,
        }
    }

    /// As tables have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Win => "win",
            Self::Loss => "loss",
            Self::Level => "level",
            Self::Unknown => "too few",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(n: usize) -> Vec<f64> {
        // Not in order, that sorting is seen to happen.
        (1..=n).rev().map(|i| i as f64).collect()
    }

    #[test]
    fn median_of_odd_and_even_counts() {
        assert_eq!(estimate(&[3.0, 1.0, 2.0]).unwrap().median, 2.0);
        assert_eq!(estimate(&[4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(estimate(&[]), None);
    }

    /// Ranks from published tables of confidence intervals for the median, for
    /// example Conover, Practical Nonparametric Statistics, table A3 at p = 0.5.
    #[test]
    fn ranks_are_those_of_the_tables() {
        for (n, rank) in [
            (5, None),
            (6, Some(1)),
            (8, Some(1)),
            (9, Some(2)),
            (10, Some(2)),
            (12, Some(3)),
            (15, Some(4)),
            (20, Some(6)),
            (25, Some(8)),
            (30, Some(10)),
        ] {
            assert_eq!(median_rank(n), rank, "{n} values");
        }
        assert_eq!(median_rank(MIN_RUNS), Some(1));
        assert_eq!(median_rank(MIN_RUNS - 1), None);
        // Near n/2 - 1.96 sqrt(n)/2, as the normal distribution has it.
        assert_eq!(median_rank(10_000), Some(4902));
    }

    #[test]
    fn interval_is_made_of_order_statistics() {
        let ten = estimate(&numbered(10)).unwrap();
        assert_eq!(ten.interval, Some((2.0, 9.0)));
        assert_eq!((ten.min, ten.max, ten.runs), (1.0, 10.0, 10));
        assert_eq!(estimate(&numbered(5)).unwrap().interval, None);
    }

    /// The promise itself: of many samples from a skewed distribution, at least
    /// 95% have the true median in their interval.
    #[test]
    fn interval_covers_the_true_median() {
        let mut state = 1_u64;
        let mut uniform = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        };
        for n in [6, 10, 15] {
            let trials = 20_000;
            let covered = (0..trials)
                .filter(|_| {
                    let sample: Vec<f64> = (0..n).map(|_| -uniform().ln()).collect();
                    let (low, high) = estimate(&sample).unwrap().interval.unwrap();
                    let truth = std::f64::consts::LN_2;
                    low <= truth && truth <= high
                })
                .count();
            let share = covered as f64 / trials as f64;
            assert!((0.945..0.99).contains(&share), "{share} of {n}");
        }
    }

    #[test]
    fn the_sign_test_is_the_binomial_distribution() {
        let values = |below: usize, above: usize| [vec![0.5; below], vec![2.0; above]].concat();
        for (below, above, p) in [
            (0, 0, 1.0),
            (5, 5, 1.0),
            (0, 6, 2.0 / 64.0),
            (10, 0, 2.0 / 1024.0),
            (1, 9, 22.0 / 1024.0),
            (2, 8, 112.0 / 1024.0),
        ] {
            let got = sign_test(&values(below, above), 1.0);
            assert!((got - p).abs() < 1e-12, "{below} {above}: {got}, not {p}");
        }
        assert_eq!(sign_test(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 1.0), 1.0);
    }

    /// The example of the paper, section 3.2: 15 tests, of which 4 are rejected at 0.05.
    #[test]
    fn many_tests_are_adjusted_as_in_the_paper() {
        let all = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let mut shuffled = all.to_vec();
        shuffled.reverse();
        for (tests, rejected) in [(all.to_vec(), 0..4), (shuffled, 11..15)] {
            for (at, q) in benjamini_hochberg(&tests).into_iter().enumerate() {
                assert_eq!(q <= 0.05, rejected.contains(&at), "{at}: {q}");
                assert!(q >= tests[at]);
            }
        }
        assert!((benjamini_hochberg(&all)[3] - 0.0095 * 15.0 / 4.0).abs() < 1e-12);
        assert_eq!(benjamini_hochberg(&[0.02]), [0.02]);
    }

    #[test]
    fn verdicts() {
        let ratio = |values: &[f64]| estimate(values).unwrap();
        let faster = ratio(&[0.8, 0.9, 0.85, 0.95, 0.9, 0.99]);
        assert_eq!(Verdict::of(&faster, true), Verdict::Win);
        assert_eq!(Verdict::of(&faster, false), Verdict::Loss);
        let slower = ratio(&[1.1, 1.2, 1.01, 1.3, 1.1, 1.1]);
        assert_eq!(Verdict::of(&slower, true), Verdict::Loss);
        assert_eq!(Verdict::of(&slower, false), Verdict::Win);
        let both = ratio(&[0.9, 1.2, 1.1, 1.3, 1.1, 1.1]);
        assert_eq!(Verdict::of(&both, true), Verdict::Level);
        let touching = ratio(&[1.0, 1.2, 1.1, 1.3, 1.1, 1.1]);
        assert_eq!(Verdict::of(&touching, true), Verdict::Level);
        let few = ratio(&[0.5, 0.5, 0.5]);
        assert_eq!(Verdict::of(&few, true), Verdict::Unknown);
    }
}
