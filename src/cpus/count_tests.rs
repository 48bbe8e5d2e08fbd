// SPDX-License-Identifier: GPL-2.0-only
//! Tests of what a process can count on.

use super::*;
use proptest::prelude::*;

fn cpus(range: std::ops::Range<usize>) -> Mask {
    range.collect()
}

/// Threads that ran all the time or waited, spread over CPUs, each with this weight.
fn hog(on: std::ops::Range<usize>, threads: f64, weight: f64) -> Doer {
    let each = threads / on.len() as f64;
    let doing = |cpu| Doing {
        cpu,
        ran: each.min(1.0),
        waited: (each - 1.0).max(0.0),
        throttled: 0.0,
        claim: each * weight,
    };
    Doer {
        doings: on.clone().map(doing).collect(),
        mask: Some(cpus(on)),
        limits: vec![],
    }
}

fn figures(doers: &[Doer], subject: Subject) -> Figures {
    Period::new(doers.to_vec(), cpus(0..4), HashMap::new()).figures(&subject)
}

/// Of the doer at a place among them.
fn of(doers: &[Doer], i: usize) -> f64 {
    let mask = doers[i].mask.unwrap();
    figures(doers, subject(mask, vec![i])).neighbours
}

fn subject(mask: Mask, doers: Vec<usize>) -> Subject {
    Subject {
        mask,
        weight: 1.0,
        doers,
        limits: vec![],
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6
}

#[test]
fn alone_it_can_count_on_all() {
    assert!(near(of(&[hog(0..4, 1.0, 1.0)], 0), 4.0));
    let idle = figures(&[], subject(cpus(1..3), vec![]));
    assert!(near(idle.neighbours, 2.0) && near(idle.cpus, 2.0));
}

#[test]
fn two_with_as_many_threads_share_and_are_still_so_with_fewer() {
    let pair = |threads| [hog(0..4, threads, 1.0), hog(0..4, threads, 1.0)];
    assert!(near(of(&pair(4.0), 0), 2.0));
    assert!(near(of(&pair(2.0), 0), 2.0));
    // With room for more, more is told.
    assert!(near(of(&pair(1.0), 0), 3.0));
}

#[test]
fn who_was_idle_is_given_what_it_would_have() {
    let neighbour = [hog(0..4, 4.0, 1.0)];
    let figure = figures(&neighbour, subject(cpus(0..4), vec![])).neighbours;
    // Two threads would be its part as a process: 2 of 6 threads.
    assert!(near(figure, 4.0 * 2.0 / 6.0), "{figure}");
    let busy_a_little = [hog(0..4, 0.4, 1.0)];
    let figure = figures(&busy_a_little, subject(cpus(0..4), vec![])).neighbours;
    assert!(near(figure, 3.6), "{figure}");
}

#[test]
fn threads_count_as_the_scheduler_counts_them() {
    let doers = [hog(0..4, 4.0, 1.0), hog(0..4, 12.0, 1.0)];
    let figure = of(&doers, 0);
    // Of 16 threads, the neighbour's wanting no more than the 4 CPUs.
    assert!(near(figure, 1.0), "{figure}");
    let weighty = [hog(0..4, 4.0, 3.0), hog(0..4, 4.0, 1.0)];
    assert!(near(of(&weighty, 0), 3.0));
    assert!(near(of(&weighty, 1), 1.0));
}

#[test]
fn only_cpus_that_it_may_use_count() {
    // The neighbour's CPUs are others.
    assert!(near(
        of(&[hog(0..2, 2.0, 1.0), hog(2..4, 8.0, 1.0)], 0),
        2.0
    ));
    // All of its threads are on one of them.
    let figure = of(&[hog(0..4, 3.0, 1.0), hog(0..1, 8.0, 1.0)], 0);
    assert!(near(figure, 3.0), "{figure}");
}

#[test]
fn who_may_go_elsewhere_goes_where_there_is_room() {
    let mut neighbour = hog(0..1, 1.0, 1.0);
    neighbour.mask = Some(cpus(0..4));
    let figure = figures(
        std::slice::from_ref(&neighbour),
        subject(cpus(0..1), vec![]),
    );
    assert!(near(figure.neighbours, 1.0), "three CPUs were idle");
    let full = [neighbour.clone(), hog(1..4, 3.0, 1.0)];
    let figure = figures(&full, subject(cpus(0..1), vec![])).neighbours;
    assert!(figure < 0.6, "{figure}");
    // Where it may run is not known: it stays.
    neighbour.mask = None;
    let figure = figures(&[neighbour], subject(cpus(0..1), vec![])).neighbours;
    assert!(figure < 0.6, "{figure}");
}

#[test]
fn the_least_counts_and_a_quota_is_shared() {
    let within = |mut doer: Doer, limits: &[u64]| {
        doer.limits = limits.to_vec();
        doer
    };
    let doers = vec![
        within(hog(0..4, 1.0, 1.0), &[7, 9]),
        within(hog(0..4, 1.0, 1.0), &[7]),
        hog(0..4, 1.0, 1.0),
    ];
    let quotas = HashMap::from([(7, 1.5), (9, 1.0)]);
    let mut period = Period::new(doers, cpus(0..4), quotas);
    let mut of = |i: usize, limits: &[u64]| {
        let mut subject = subject(cpus(0..4), vec![i]);
        subject.limits = limits.to_vec();
        period.figures(&subject)
    };
    let first = of(0, &[9, 7, 1]);
    assert_eq!(first.quota, Some(1.0));
    // Of the 1.5 both want 1.
    assert!(
        near(first.neighbours, 0.75) && near(first.cpus, 0.75),
        "{first:?}"
    );
    assert_eq!(of(1, &[7]).quota, Some(1.5));
    let free = of(2, &[]);
    assert_eq!(free.quota, None);
    assert!(near(free.cpus, 2.0) && near(free.ran, 1.0), "{free:?}");
}

/// Half a CPU of four threads, the rest of which waited for the quota.
fn throttled() -> Doer {
    let mut doer = hog(0..4, 4.0, 1.0);
    for doing in &mut doer.doings {
        (doing.ran, doing.throttled) = (0.125, 0.875);
    }
    doer.limits = vec![7];
    doer
}

#[test]
fn what_a_quota_keeps_from_running_takes_nothing_from_those_outside() {
    let figure = figures(&[throttled()], subject(cpus(0..4), vec![])).neighbours;
    assert!(near(figure, 3.5), "{figure}");
}

#[test]
fn among_those_who_share_a_quota_it_counts() {
    let mut other = throttled();
    other.doings.truncate(1);
    let mut period = Period::new(
        vec![throttled(), other],
        cpus(0..4),
        HashMap::from([(7, 0.5)]),
    );
    let mut subject = subject(cpus(0..4), vec![0]);
    subject.limits = vec![7];
    let got = period.figures(&subject);
    assert!(near(got.neighbours, 0.4), "four threads of five: {got:?}");
    assert!(near(got.ran, 0.5) && near(got.throttled, 3.5), "{got:?}");
    assert!(near(got.waited, 0.0), "{got:?}");
}

#[test]
fn a_cgroup_counts_as_all_that_is_in_it() {
    let doers = [
        hog(0..4, 2.0, 1.0),
        hog(0..4, 2.0, 1.0),
        hog(0..4, 4.0, 1.0),
    ];
    let both = figures(&doers, subject(cpus(0..4), vec![0, 1]));
    assert!(
        near(both.neighbours, 2.0) && near(both.ran, 4.0),
        "{both:?}"
    );
}

fn doer() -> impl Strategy<Value = Doer> {
    (0usize..4, 1usize..5, 1u32..40, 1u32..5).prop_map(|(first, len, threads, weight)| {
        let on = first..(first + len).min(4);
        hog(on, f64::from(threads) / 4.0, f64::from(weight))
    })
}

proptest! {
    #[test]
    fn it_is_within_what_there_is(doers in prop::collection::vec(doer(), 0..8), quota in 1u32..80) {
        let quotas = HashMap::from([(1, f64::from(quota) / 10.0)]);
        let mut period = Period::new(doers.clone(), cpus(0..4), quotas);
        for (i, doer) in doers.iter().enumerate() {
            let mut subject = subject(doer.mask.unwrap(), vec![i]);
            subject.limits = vec![1];
            let got = period.figures(&subject);
            prop_assert!(got.neighbours > 0.0, "{got:?}");
            prop_assert!(got.neighbours <= got.affinity + 1e-9, "{got:?}");
            prop_assert!(got.cpus <= got.quota.unwrap() + 1e-9, "{got:?}");
            prop_assert!(got.cpus <= got.neighbours && got.cpus <= got.affinity);
        }
    }

    /// Processes that leave nothing to be had, and may all run everywhere, get what they had,
    /// as Jeffery et al. define it: their part of the time times the CPUs.
    #[test]
    fn where_all_want_more_it_is_their_part(threads in prop::collection::vec(16u32..64, 1..6)) {
        let all = f64::from(threads.iter().sum::<u32>());
        let doers: Vec<_> = threads.iter().map(|n| hog(0..4, f64::from(*n), 1.0)).collect();
        for (i, n) in threads.iter().enumerate() {
            let part = 4.0 * f64::from(*n) / all;
            prop_assert!((of(&doers, i) - part).abs() < 1e-6, "{} {part}", of(&doers, i));
        }
    }

    #[test]
    fn a_neighbour_more_is_never_reported_as_more(
        doers in prop::collection::vec(doer(), 0..6), one in doer(),
    ) {
        let idle = || subject(cpus(0..4), vec![]);
        let before = figures(&doers, idle()).neighbours;
        let more: Vec<_> = doers.into_iter().chain([one]).collect();
        prop_assert!(figures(&more, idle()).neighbours <= before + 1e-9);
    }
}
