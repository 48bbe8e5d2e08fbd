// SPDX-License-Identifier: GPL-2.0-only
//! policy/finish.h: placement by predicted finish.

use crate::{any_time, config, policy, sys, FULL};
use proptest::prelude::*;

/// Longest time that the policy distinguishes.
const MAX: u64 = 1 << 31;

/// Longest burst that it learns.
const BURST_MAX: u64 = sys::LEARN_MAX_NS as u64;

/// The slowest start for which the header promises a part in a thousand.
const SLOW: u32 = FULL / 16;

/// The solution of the same motion in floating point: uniform acceleration of
/// FULL per `ramp` from `speed` to `top`, then steady.
fn exact(burst: u64, speed: u32, top: u32, ramp: u64) -> f64 {
    let full = f64::from(FULL);
    let (burst, ramp) = (burst.min(BURST_MAX) as f64, ramp.min(MAX) as f64);
    let (v0, v1) = (f64::from(speed) / full, f64::from(top) / full);
    let time = if v0 >= v1 || ramp == 0.0 {
        burst / v0.max(v1)
    } else {
        let t_top = (v1 - v0) * ramp;
        let w_top = (v0 + v1) / 2.0 * t_top;
        if burst >= w_top {
            t_top + (burst - w_top) / v1
        } else {
            // v0 t + t^2 / (2 ramp) = burst, in the form that loses no digits.
            2.0 * burst / (v0 + (v0 * v0 + 2.0 * burst / ramp).sqrt())
        }
    };
    time.min(MAX as f64)
}

/// What the header promises: a part in a thousand, and rounding of a few ns.
fn tolerance(time: f64) -> f64 {
    time / 1000.0 + 4.0
}

fn run(burst: u64, speed: u32, top: u32, ramp: u64) -> f64 {
    policy!(finish_run(burst, speed, top, ramp)) as f64
}

prop_compose! {
    fn ramp()(ns in prop_oneof![0..1_000_000u64, 0..10_000_000_000u64]) -> u64 { ns }
}

prop_compose! {
    /// A candidate of a few near times, so that ties are common, or of any.
    fn candidate()(
        cpu in -1..8i32,
        wait in prop_oneof![0..4u64, any_time()],
        run in prop_oneof![0..4u64, any_time()],
        migration in prop_oneof![0..4u64, any_time()],
        displaced in prop_oneof![0..4u64, any_time()],
        others in prop_oneof![0..4u64, any_time()],
    ) -> sys::candidate {
        sys::candidate { cpu, wait, run, migration, displaced, others, finish: 0 }
    }
}

fn total(c: &sys::candidate) -> u64 {
    [c.wait, c.run, c.migration, c.displaced, c.others]
        .map(|term| term.min(MAX))
        .iter()
        .sum()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn run_is_the_closed_form(
        burst in any_time(), speed in SLOW..=FULL, top in 1..=FULL, ramp in ramp()
    ) {
        let want = exact(burst, speed, top, ramp);
        let got = run(burst, speed, top, ramp);
        // Work is counted in whole ns, of which a slow CPU needs some for one.
        let may = tolerance(want) + f64::from(FULL) / f64::from(speed.max(top));
        prop_assert!((got - want).abs() <= may, "{got} for {want}");
    }

    /// From any start, however slow: no faster than at the top speed all the time, no slower than at the first.
    #[test]
    fn run_is_between_top_and_start(
        burst in 0..BURST_MAX, speed in 1..=FULL, top in 1..=FULL, ramp in ramp()
    ) {
        let got = run(burst, speed, top, ramp);
        let work = burst as f64 * f64::from(FULL);
        let most = (work / f64::from(speed)).min(MAX as f64);
        let least = (work / f64::from(speed.max(top))).min(MAX as f64);
        prop_assert!(got <= most + tolerance(most), "{got} over {most}");
        prop_assert!(got >= least - tolerance(least), "{got} under {least}");
    }

    #[test]
    fn run_grows_with_the_burst_and_falls_with_speeds(
        a in any_time(), b in any_time(),
        s in SLOW..=FULL, t in SLOW..=FULL, p in 1..=FULL, q in 1..=FULL, ramp in ramp()
    ) {
        let (a, b) = (a.min(b), a.max(b));
        let (s, t) = (s.min(t), s.max(t));
        let (p, q) = (p.min(q), p.max(q));
        let slack = |time: f64| 2.0 * tolerance(time);
        let (small, large) = (run(a, s, p, ramp), run(b, s, p, ramp));
        prop_assert!(small <= large + slack(large), "burst: {small} {large}");
        let (slow, fast) = (run(a, s, p, ramp), run(a, t, p, ramp));
        prop_assert!(fast <= slow + slack(slow), "start: {slow} {fast}");
        let (low, high) = (run(a, s, p, ramp), run(a, s, q, ramp));
        prop_assert!(high <= low + slack(low), "top: {low} {high}");
    }

    #[test]
    fn run_is_bounded_for_any_input(burst: u64, speed: u32, top: u32, ramp: u64) {
        prop_assume!(top > 0 || speed > 0);
        prop_assert!(policy!(finish_run(burst, speed, top, ramp)) <= MAX);
    }

    #[test]
    fn only_who_is_back_before_the_end_is_displaced(run in any_time(), away in 1..u64::MAX) {
        prop_assert_eq!(policy!(finish_displaced(run, away)), run.saturating_sub(away));
        prop_assert_eq!(policy!(finish_displaced(run, 0)), 0);
    }

    /// A CPU that is lent costs its last task what is left of the burst when that one is back, or
    /// the way to another CPU; one to which nobody comes back costs nobody anything.
    #[test]
    fn who_lends_waits_or_goes_elsewhere(
        run in any_time(), away in 1..=MAX, gap in any_time(), elsewhere in any_time()
    ) {
        let back = policy!(finish_back(away, gap));
        prop_assert_eq!(back, if gap < away { away - gap } else { gap });
        let cost = policy!(finish_lent(run, back, elsewhere));
        prop_assert_eq!(cost, run.saturating_sub(back).min(elsewhere));
        let never = policy!(finish_back(0, gap));
        prop_assert_eq!(policy!(finish_lent(run, never, elsewhere)), 0);
    }

    #[test]
    fn cold_caches_double_the_time_at_most(cold in any_time(), run in any_time()) {
        let cost = policy!(finish_cold(cold, run));
        prop_assert!(cost == cold || (cost == run && run < cold));
    }

    /// The area of what is lost: a rectangle while the core runs, a triangle after, less the
    /// rest of the triangle of its last run.
    #[test]
    fn others_lose_a_share_of_the_time(
        run in 0..=MAX, active in 1..1024u32, now in 1..=FULL, then in 0..=FULL, back in 0..=MAX,
        gap in prop_oneof![0..=MAX, any_time()]
    ) {
        let lost = f64::from(active) * f64::from(now.saturating_sub(then)) / f64::from(now);
        let left = back.saturating_sub(gap) as f64;
        let triangle = back as f64 / 2.0 - left * left / 2.0 / back.max(1) as f64;
        let want = (lost * (run as f64 + triangle)).min(MAX as f64);
        let got = policy!(finish_others(run, active, now, then, back, gap)) as f64;
        prop_assert!((got - want).abs() <= 3.0 * f64::from(active), "{got} for {want}");
    }

    /// All of it at first, less with time, nothing once what it could have bought is over.
    #[test]
    fn rent_fades_within_the_life_of_what_it_buys(
        rent in any_time(), past in any_time(), more in any_time(), life in any_time()
    ) {
        let left = policy!(finish_rent(rent, past, life));
        prop_assert!(left <= rent.min(MAX));
        prop_assert!(policy!(finish_rent(rent, past.saturating_add(more), life)) <= left);
        prop_assert_eq!(policy!(finish_rent(rent, life.max(past), life)), 0);
        if life > 0 {
            prop_assert_eq!(policy!(finish_rent(rent, 0, life)), rent.min(MAX));
        }
    }

    #[test]
    fn nobody_loses_where_speeds_stay_and_bounds_hold_for_any_input(
        run: u64, active: u32, now: u32, then: u32, back: u64, gap: u64
    ) {
        prop_assert_eq!(policy!(finish_others(run, 0, now, then, back, gap)), 0);
        prop_assert_eq!(policy!(finish_others(run, active, then, then, back, gap)), 0);
        prop_assert!(policy!(finish_others(run, active, now, then, back, gap)) <= MAX);
    }

    #[test]
    fn what_a_cpu_lacks_is_forgiven_by_a_share(
        speed in 1..=FULL, top in 1..=FULL, share in 0..=2 * u64::from(FULL), more in 0..=64u64
    ) {
        let got = policy!(finish_invest(speed, top, share));
        prop_assert!((speed..=speed.max(top)).contains(&got));
        prop_assert!(policy!(finish_invest(speed, top, share + more)) >= got);
        prop_assert_eq!(policy!(finish_invest(speed, top, 0)), speed);
        prop_assert_eq!(policy!(finish_invest(speed, top, u64::from(FULL))), speed.max(top));
    }

    #[test]
    fn wait_is_the_rest_cut_short_and_then_the_queue(
        rest in 0..=MAX, leave in any_time(), slice in any_time(),
        queued in 0..=MAX, speed in 1..=FULL
    ) {
        let want = rest.min(leave).min(slice) as f64
            + queued as f64 * f64::from(FULL) / f64::from(speed);
        let got = policy!(finish_wait(rest, leave, slice, queued, speed)) as f64;
        prop_assert!((got - want.min(MAX as f64)).abs() <= 1.0, "{got} for {want}");
    }

    #[test]
    fn wait_grows_with_all_and_is_bounded_for_any_input(
        rest in any_time(), leave in any_time(), slice in any_time(),
        a in any_time(), b in any_time(), more in any_time(), speed: u32
    ) {
        let (a, b) = (a.min(b), a.max(b));
        let wait = |rest, queued| policy!(finish_wait(rest, leave, slice, queued, speed));
        prop_assert!(wait(rest, a) <= wait(rest, b));
        prop_assert!(wait(rest, a) <= wait(rest.saturating_add(more), a));
        prop_assert!(wait(u64::MAX, u64::MAX) <= MAX);
    }

    #[test]
    fn finish_is_the_sum(c in candidate()) {
        prop_assert_eq!(policy!(candidate_finish(&c)), total(&c));
    }

    /// No candidate finishes before finish_least(), whatever its speed and what it costs others: so
    /// none that is passed over for that could have been chosen. Up to rounding of the run.
    #[test]
    fn nothing_finishes_before_the_least(
        burst in any_time(), speed in SLOW..=FULL, top in 1..=FULL, ramp in ramp(), c in candidate()
    ) {
        let run = policy!(finish_run(burst, speed, top, ramp));
        let c = sys::candidate { run, ..c };
        let least = policy!(finish_least(burst, c.wait, c.migration));
        prop_assert!(policy!(candidate_finish(&c)) + 4 >= least);
        let bare = sys::candidate { run: burst.min(BURST_MAX), displaced: 0, others: 0, ..c };
        prop_assert_eq!(least, policy!(candidate_finish(&bare)));
    }

    /// A wait saves what the idle CPU costs each time, and a migration is once where the task stays.
    #[test]
    fn a_migration_is_spared_once_where_the_task_stays(c in candidate()) {
        let near = sys::candidate { wait: c.wait.min(MAX), migration: c.migration.min(MAX), ..c };
        let spared = |stays| policy!(finish_spared(&near, stays));
        prop_assert_eq!(spared(true), near.wait);
        prop_assert_eq!(spared(false), near.wait + near.migration);
    }

    /// The smallest finish wins, of equals the first; what is no candidate never.
    #[test]
    fn the_first_of_the_smallest_wins(all in prop::collection::vec(candidate(), 1..6)) {
        let none = sys::candidate {
            cpu: -1, wait: 0, run: 0, migration: 0, displaced: 0, others: 0, finish: 0,
        };
        let mut best = none;
        let mut chosen = None;
        for (i, c) in all.iter().enumerate() {
            let c = sys::candidate { finish: policy!(candidate_finish(c)), ..*c };
            if policy!(candidate_better(&c, &best)) {
                (best, chosen) = (c, Some(i));
            }
        }
        let want = (0..all.len()).filter(|&i| all[i].cpu >= 0).min_by_key(|&i| total(&all[i]));
        prop_assert_eq!(chosen, want);
    }
}
