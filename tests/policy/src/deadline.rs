// SPDX-License-Identifier: GPL-2.0-only
//! policy/deadline.h: weights, virtual time, who runs first.

use crate::{any_time, config, policy, sys};
use proptest::prelude::*;

const NICE_0: u64 = sys::WEIGHT_NICE_0 as u64;

/// The kernel's sched_prio_to_weight[] is 1024 / 1.25^nice, to 2.5% by its rounding.
const TABLE_ROUNDING: f64 = 0.025;

/// Virtual times are compared over half of their range: what tests put apart
/// stays within this.
const SPAN: u64 = 1 << 60;

fn weight_of_nice(nice: i32) -> u64 {
    policy!(weight_of_prio(sys::PRIO_NICE_0 as i32 + nice))
}

fn weight() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(sys::WEIGHT_IDLE as u64),
        (-20..=19).prop_map(weight_of_nice)
    ]
}

/// A difference of virtual times, near or far.
fn around_zero() -> impl Strategy<Value = i64> {
    prop_oneof![-200_000_000..200_000_000i64, -(SPAN as i64)..SPAN as i64,]
}

#[test]
fn a_nice_step_is_a_factor_of_one_and_a_quarter() {
    for nice in -20..=19 {
        let want = NICE_0 as f64 / 1.25f64.powi(nice);
        let got = weight_of_nice(nice) as f64;
        assert!(
            (got / want - 1.0).abs() <= TABLE_ROUNDING,
            "nice {nice}: {got}, not {want}"
        );
    }
    // The ends and the middle of the kernel's table, to the digit.
    assert_eq!([-20, 0, 19].map(weight_of_nice), [88761, 1024, 15]);
}

#[test]
fn priorities_out_of_range_are_the_nearest_in_it() {
    assert_eq!(policy!(weight_of_prio(i32::MIN)), weight_of_nice(-20));
    assert_eq!(policy!(weight_of_prio(99)), weight_of_nice(-20));
    assert_eq!(policy!(weight_of_prio(140)), weight_of_nice(19));
    assert_eq!(policy!(weight_of_prio(i32::MAX)), weight_of_nice(19));
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn charge_is_time_by_weight(ran in 0..(1u64 << 53), weight in weight()) {
        let want = ran as f64 * NICE_0 as f64 / weight as f64;
        let got = policy!(vtime_charge(ran, weight)) as f64;
        prop_assert!((got - want).abs() <= 1.0 + want * f64::EPSILON, "{got} for {want}");
    }

    /// Any input: no wrap, so never less for more time or, in 104 days, for less weight.
    #[test]
    fn charge_grows_with_time_and_falls_with_weight(
        a in any_time(), b in any_time(), w in any_time(), v in any_time()
    ) {
        let (a, b, w, v) = (a.min(b), a.max(b), w.min(v), w.max(v));
        prop_assert!(policy!(vtime_charge(a, w)) <= policy!(vtime_charge(b, w)));
        let a = a.min(1 << 53);
        prop_assert!(policy!(vtime_charge(a, v)) <= policy!(vtime_charge(a, w)));
    }

    /// Equal CPU time by weight is equal virtual time: that is what shares are.
    #[test]
    fn shares_follow_weights(ran in 1_000_000..1_000_000_000u64, a in weight(), b in weight()) {
        let x = policy!(vtime_charge(ran * a / NICE_0, a));
        let y = policy!(vtime_charge(ran * b / NICE_0, b));
        let rounding = NICE_0 / a.min(b) + 2;
        prop_assert!(x.abs_diff(y) <= rounding);
    }

    #[test]
    fn before_is_an_order_that_survives_the_wrap(start: u64, ahead in 1..SPAN) {
        let later = start.wrapping_add(ahead);
        prop_assert!(policy!(vtime_before(start, later)));
        prop_assert!(!policy!(vtime_before(later, start)));
        prop_assert!(!policy!(vtime_before(start, start)));
    }

    /// The lag that is left is the lag that there was, cut at both bounds.
    #[test]
    fn clamp_bounds_credit_and_debt(
        clock: u64, lag in 0..1_000_000_000u64, slice in 100_000..100_000_000u64,
        weight in weight(), behind in around_zero()
    ) {
        let credit = policy!(vtime_charge(lag, weight)) as i64;
        let debt = policy!(vtime_charge(lag.max(slice), weight)) as i64;
        let vtime = clock.wrapping_sub(behind as u64);
        let got = policy!(vtime_clamp(vtime, clock, lag, slice, weight));
        prop_assert_eq!(clock.wrapping_sub(got) as i64, behind.clamp(-debt, credit));
    }

    #[test]
    fn rebase_keeps_the_lag_and_comes_back(vtime: u64, from: u64, to: u64) {
        let there = policy!(vtime_rebase(vtime, from, to));
        prop_assert_eq!(to.wrapping_sub(there), from.wrapping_sub(vtime));
        prop_assert_eq!(policy!(vtime_rebase(there, to, from)), vtime);
    }

    /// What is asked for is granted, up to the greater of both bounds.
    #[test]
    fn slices_are_granted_up_to_lag(
        asked in any_time(), slice in 100_000..100_000_000u64, lag in 0..1_000_000_000u64
    ) {
        prop_assert_eq!(policy!(slice_granted(asked, slice, lag)), asked.min(slice.max(lag)));
    }

    #[test]
    fn deadline_is_never_more_than_a_slice_away(
        vtime: u64, burst in any_time(), slice in 100_000..100_000_000u64, weight in weight()
    ) {
        let ahead = policy!(vtime_deadline(vtime, burst, slice, weight)).wrapping_sub(vtime);
        prop_assert!(ahead <= policy!(vtime_charge(slice, weight)));
        let request = if burst == 0 { slice } else { burst.min(slice) };
        prop_assert_eq!(ahead, policy!(vtime_charge(request, weight)));
    }

    #[test]
    fn short_requests_and_heavy_tasks_come_first(
        vtime: u64, a in 1..100_000_000u64, b in 1..100_000_000u64,
        slice in 100_000..100_000_000u64, w in weight(), v in weight()
    ) {
        let (a, b, w, v) = (a.min(b), a.max(b), w.min(v), w.max(v));
        let of = |burst, weight| policy!(vtime_deadline(vtime, burst, slice, weight));
        prop_assert!(!policy!(vtime_before(of(b, w), of(a, w))));
        prop_assert!(!policy!(vtime_before(of(a, w), of(a, v))));
    }

    /// Who is preempted comes back with the deadline that it had, until its request is over.
    #[test]
    fn a_request_cut_short_keeps_its_deadline(
        vtime: u64, slice in 100_000..100_000_000u64, part in 0.0..2.0f64
    ) {
        let ran = (slice as f64 * part) as u64;
        let left = policy!(request_left(slice, ran, slice));
        prop_assert!(left == 0 || (slice / 8..=slice).contains(&left), "{left}");
        if ran + slice / 8 <= slice {
            let now = vtime.wrapping_add(policy!(vtime_charge(ran, NICE_0)));
            let deadline = |vtime, asked| policy!(vtime_deadline(vtime, 0, asked, NICE_0));
            prop_assert_eq!(deadline(now, left), deadline(vtime, slice));
        } else {
            prop_assert_eq!(left, 0);
        }
    }

    /// Whatever ticks a task sees, one ends its slice, or sets the timer that does: it is
    /// off by the slack at most, and where ticks are not known, the first one sets it.
    #[test]
    fn slices_end_in_time(
        slice in 100_000..100_000_000u64, tick in 1_000_000..10_000_000u64, phase in 0.0..1.0f64,
        known: bool
    ) {
        let first = 1 + (tick as f64 * phase) as u64;
        let mut end = policy!(slice_misses_ticks(slice, tick)).then_some(slice);
        for ran in (0..).map(|i| first + i * tick) {
            if end.is_some() {
                break;
            }
            let left = slice.saturating_sub(ran);
            if policy!(slice_over(left)) {
                end = Some(ran);
            } else if policy!(slice_wants_timer(left, if known { tick } else { 0 })) {
                end = Some(ran + left);
            }
        }
        let late = end.unwrap() as i64 - slice as i64;
        let slack = i64::from(sys::SLICE_SLACK_NS);
        prop_assert!((-slack..=slack).contains(&late), "{late}");
    }

    /// More tasks protect for longer, up to a slice; a heavier wakee less.
    #[test]
    fn protection_is_a_part_of_the_slice(
        each in 0..2_000_000u64, nr in 1..100u64, weight in weight(), wakee in weight(),
        slice in 100_000..100_000_000u64
    ) {
        let protected = |nr, wakee| policy!(protected_ns(each, nr, weight, wakee, slice));
        let own = protected(nr, weight);
        prop_assert_eq!(own, (each * nr).min(slice));
        prop_assert!(protected(nr + 1, wakee) >= protected(nr, wakee));
        let other = protected(nr, wakee);
        if wakee > weight {
            let want = own as f64 * weight as f64 / wakee as f64;
            prop_assert!((other as f64 - want).abs() <= 1.0, "{other}, not {want}");
        } else {
            prop_assert_eq!(other, own);
        }
    }

    /// Asleep, who is ahead waits for the others, and who is behind stays so.
    #[test]
    fn sleep_makes_up_debt_and_earns_nothing(
        ahead in around_zero(), passed in 0..SPAN, more in 0..SPAN
    ) {
        let after = |passed| policy!(lag_at_wake(ahead as u64, passed)) as i64;
        prop_assert_eq!(after(0), ahead);
        prop_assert!(after(passed + more) <= after(passed));
        prop_assert!(after(passed) >= ahead.min(0));
        prop_assert_eq!(after(passed), if ahead > 0 { (ahead - passed as i64).max(0) } else { ahead });
    }

    /// What was served fades, and is gone in the end.
    #[test]
    fn what_was_served_fades(served in 0..1u64 << 50, ago in any_time(), more in 0..1u64 << 40) {
        let after = |ago| policy!(served_faded(served, ago));
        prop_assert!(after(ago) <= served);
        prop_assert!(after(ago.saturating_add(more)) <= after(ago));
        prop_assert_eq!(after(1 << sys::SERVED_SHIFT), 0);
        // Linear, but for what shifts lose.
        let want = served as f64 * (1.0 - (ago as f64 / (1u64 << 32) as f64).min(1.0));
        let lost = served as f64 / 65536.0 + ago.min(1 << 32) as f64 / 65536.0 * 65536.0f64.recip();
        prop_assert!((after(ago) as f64 - want).abs() <= lost + 65536.0, "{}, not {want}", after(ago));
    }

    /// A shorter slice is in force at once, also for requests that were made before.
    #[test]
    fn a_request_is_never_more_than_a_slice(
        request in any_time(), ran in any_time(), slice in 100_000..100_000_000u64
    ) {
        prop_assert!(policy!(request_left(request, ran, slice)) <= slice);
    }

    /// Without ticks a slice began less than a slice ago, a whole number of them after the first.
    #[test]
    fn slices_follow_each_other_without_ticks(since: u32, ran in 0..1_u64 << 40, slice in 0..1_u64 << 32) {
        let (since, now) = (u64::from(since), u64::from(since) + ran);
        let began = policy!(slice_began(since, now, slice));
        prop_assert!(began >= since && began <= now);
        if slice > 0 {
            prop_assert!(now - began < slice);
            prop_assert_eq!((began - since) % slice, 0);
        }
        // Another CPU's clock may be behind.
        prop_assert_eq!(policy!(slice_began(now + 1, now, slice)), now + 1);
    }

    /// A round of a queue fits into a quarter of starve_ms, unless turns are too short already,
    /// and no turn is longer than what was asked for.
    #[test]
    fn turns_are_short_enough_for_a_round(
        request in 1..=100_000_000u64, runnable in 0..100_000u64, starves_ms in 10..=20_000u64
    ) {
        let starves = starves_ms * 1_000_000;
        let turn = policy!(turn_length(request, runnable, starves));
        let least = request.min(u64::from(sys::TURN_LEAST_NS));
        prop_assert!(turn <= request);
        prop_assert!(turn >= least);
        prop_assert!(turn == least || turn * runnable <= starves / u64::from(sys::TURN_ROUNDS));
        // Where there is room for them, turns are as long as was asked for.
        if request * runnable <= starves / u64::from(sys::TURN_ROUNDS) {
            prop_assert_eq!(turn, request);
        }
    }

    /// Who waits for three quarters of starve_ms has every turn; who is late has every other one at least.
    #[test]
    fn the_late_go_first_in_turns_and_then_always(
        since in any_time(), waited in -1_000_000..100_000_000_000i64, starves_ms in 10..=20_000u64
    ) {
        let starves = starves_ms * 1_000_000;
        let now = since.wrapping_add(waited as u64);
        let first = |went_last| policy!(late_goes_first(since, now, starves, went_last));
        prop_assert!(first(false));
        prop_assert_eq!(first(true), waited >= starves as i64 / 4 * 3);
        let late = policy!(is_late(since, now, starves));
        prop_assert_eq!(late, waited >= starves as i64 / 2);
    }

    /// Turns that end as soon as they begin do not make a wait begin anew. Those of who asks
    /// for short ones are as long as was asked for.
    #[test]
    fn a_wait_ends_with_a_turn_worth_the_name(
        waits in prop::collection::vec((1..u64::MAX, 0..2_000_000u64), 1..20),
        slice in 100_000..100_000_000u64
    ) {
        let mut owed = 0;
        let mut first = None;
        for (waited, ran) in waits {
            owed = policy!(owed_turn(owed, waited, ran, slice));
            let cut = ran < slice.min(u64::from(sys::TURN_LEAST_NS)) / 2;
            first = cut.then(|| first.unwrap_or(waited));
            prop_assert_eq!(owed, first.unwrap_or(0));
        }
    }

    /// A running task that outlives its usual burst has the deadline that it would have had with a
    /// burst that is not known: of its whole request.
    #[test]
    fn who_outlives_its_burst_asks_for_all_of_its_request(
        vtime: u64, rest in 0..200_000_000u64, request in 100_000..100_000_000u64, weight in weight()
    ) {
        let usual = policy!(vtime_deadline(vtime, rest, request, weight));
        let outlived = policy!(deadline_outlived(usual, rest, request, weight));
        let all = policy!(vtime_deadline(vtime, 0, request, weight));
        /* Two divisions round down for one. */
        prop_assert!(all.wrapping_sub(outlived) <= 1);
    }

    /// A CPU's clock never goes back, and passes neither who was picked nor who is next.
    #[test]
    fn the_clock_never_goes_back_or_too_far(
        vclock: u64, vtime in around_zero(), head in around_zero()
    ) {
        let at = |d: i64| vclock.wrapping_add(d as u64);
        let after = policy!(vclock_after(vclock, at(vtime), at(head))).wrapping_sub(vclock) as i64;
        prop_assert_eq!(after, vtime.min(head).max(0));
    }

    /// Preemption takes more than the margin, so two tasks never preempt each other in turn.
    #[test]
    fn preemption_needs_more_than_the_margin(
        wakee: u64, earlier in around_zero(), margin in 0..100_000_000u64
    ) {
        let running = wakee.wrapping_add(earlier as u64);
        let preempts = policy!(deadline_preempts(wakee, running, margin));
        prop_assert_eq!(preempts, earlier > margin as i64);
        prop_assert!(!(preempts && policy!(deadline_preempts(running, wakee, margin))));
    }
}
