// SPDX-License-Identifier: MIT
//! Weighted max-min: who wants less than its part leaves the rest to the others.

/// A neighbour: CPUs that it wants, and what it weighs; 1 is what the program itself does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Demand {
    pub(crate) cpus: f64,
    pub(crate) weight: f64,
    /// How many of the program's quotas, from the outermost, it has a part in.
    pub(crate) quotas: usize,
}

/// What the program can count on: `cpus` are shared by all neighbours, each of its quotas, the outermost
/// first, by those who have a part in it, wherever they run. The least counts.
pub(crate) fn count(cpus: f64, quotas: &[f64], neighbours: &[Demand]) -> f64 {
    let of_quotas = quotas.iter().enumerate().map(|(outer, &quota)| {
        let has_part = |one: &&Demand| one.quotas > outer;
        left(quota, neighbours.iter().filter(has_part).copied().collect())
    });
    of_quotas.fold(left(cpus, neighbours.to_vec()), f64::min)
}

/// How much of `cpus` is left for who wants all, beside these neighbours.
fn left(cpus: f64, mut neighbours: Vec<Demand>) -> f64 {
    // By what share of its part each wants: all before the first one that wants too much get it.
    neighbours.sort_by(|a, b| (a.cpus / a.weight).total_cmp(&(b.cpus / b.weight)));
    let mut weights = 1.0 + neighbours.iter().map(|one| one.weight).sum::<f64>();
    let mut left = cpus;
    for one in neighbours {
        if one.cpus >= left * one.weight / weights {
            break;
        }
        left -= one.cpus;
        weights -= one.weight;
    }
    // Sums of weights round: nobody is left more than there is.
    (left / weights).min(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(cpus: f64, wants: &[(f64, f64)]) -> f64 {
        let all = wants.iter().map(|&(cpus, weight)| demand(cpus, weight, 0));
        left(cpus, all.collect())
    }

    fn demand(cpus: f64, weight: f64, quotas: usize) -> Demand {
        Demand {
            cpus,
            weight,
            quotas,
        }
    }

    /// As the agent has it: `the_least_counts_and_a_quota_is_shared` of src/cpus/count_tests.rs.
    #[test]
    fn the_least_counts_and_a_quota_is_shared_by_who_has_part_in_it() {
        let (inside, outside) = (demand(1.0, 1.0, 1), demand(1.0, 1.0, 0));
        assert_eq!(count(4.0, &[1.5, 1.0], &[inside, outside]), 0.75);
        assert_eq!(count(4.0, &[1.5], &[inside, outside]), 0.75);
        assert_eq!(count(4.0, &[], &[inside, outside]), 2.0);
        // However much the others want.
        let greedy = demand(4.0, 1.0, 0);
        assert_eq!(count(4.0, &[1.5], &[greedy]), 1.5);
        assert_eq!(count(4.0, &[3.0], &[greedy]), 2.0);
    }

    #[test]
    fn alone_has_all_and_small_neighbours_take_what_they_want() {
        assert_eq!(of(4.0, &[]), 4.0);
        assert_eq!(of(4.0, &[(0.5, 1.0), (1.0, 1.0)]), 2.5);
    }

    #[test]
    fn greedy_neighbours_leave_equal_parts_however_much_they_want() {
        assert_eq!(of(8.0, &[(7.0, 1.0)]), 4.0);
        assert_eq!(of(8.0, &[(7.0, 1.0), (1.0, 1.0)]), 3.5);
        assert_eq!(of(9.0, &[(8.0, 1.0), (9.0, 1.0)]), 3.0);
    }

    #[test]
    fn weights_count() {
        assert_eq!(of(4.0, &[(4.0, 3.0)]), 1.0);
        assert!(of(2.0, &[(2.0, 0.01)]) > 1.97);
    }

    proptest! {
        #[test]
        fn at_least_a_part_by_weight_at_most_all(
            cpus in 0.1f64..256.0,
            wants in prop::collection::vec((0.0f64..300.0, 0.01f64..100.0), 0..20),
        ) {
            let weights: f64 = wants.iter().map(|want| want.1).sum();
            let found = of(cpus, &wants);
            prop_assert!(found <= cpus);
            prop_assert!(found >= cpus / (1.0 + weights) - 1e-9);
        }
    }
}
