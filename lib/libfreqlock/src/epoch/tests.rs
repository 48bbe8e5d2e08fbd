// SPDX-License-Identifier: MIT
//! Algorithm 2, in exact numbers.

use super::*;
use proptest::prelude::*;

const SLO: u64 = 1_000;

/// One epoch that takes `latency`.
fn run(table: &mut Table, id: u32, latency: u64) -> u64 {
    table.start(id, 1).unwrap();
    table.end(id, SLO, 1 + latency).unwrap();
    table.epochs[table.find(id).unwrap()].window
}

#[test]
fn windows_halve_at_once_and_grow_by_a_hundredth_of_the_half() {
    let mut table = Table::new();
    // The first unit is a hundredth of the first window.
    assert_eq!(run(&mut table, 5, SLO), 1_010_000);
    assert_eq!(run(&mut table, 5, SLO), 1_020_000);
    assert_eq!(run(&mut table, 5, SLO + 1), 510_000);
    for n in 1..=100 {
        assert_eq!(run(&mut table, 5, SLO), 510_000 + n * 5_100);
    }
    // A hundred later it is what was too long.
    assert_eq!(run(&mut table, 5, SLO + 1), 510_000);
}

#[test]
fn a_bound_that_cannot_be_kept_ends_in_first_come_first_served() {
    let mut table = Table::new();
    let windows: Vec<u64> = (0..21).map(|_| run(&mut table, 5, SLO + 1)).collect();
    assert_eq!(windows[..5], [500_000, 250_000, 125_000, 62_500, 31_250]);
    assert_eq!(windows[20], 0);
    // Once it can be kept, the window grows again.
    assert_eq!(run(&mut table, 5, SLO), UNIT_LEAST);
}

#[test]
fn windows_are_bounded() {
    let mut table = Table::new();
    let window = (0..20_000).map(|_| run(&mut table, 5, 0)).last();
    assert_eq!(window, Some(WINDOW_MOST));
}

#[test]
fn units_follow_the_percentile() {
    assert_eq!(unit_of(500_000, 990), 5_000);
    assert_eq!(unit_of(500_000, 999), 500);
    assert_eq!(unit_of(500_000, 500), 250_000);
    assert!(!set_percentile(499) && !set_percentile(1000));
}

#[test]
fn each_epoch_has_a_window_of_its_own_and_the_inner_one_counts() {
    let mut table = Table::new();
    assert_eq!(table.window(), None);
    run(&mut table, 7, SLO + 1);
    table.start(5, 1).unwrap();
    assert_eq!(table.window(), Some(WINDOW_START));
    table.start(7, 1).unwrap();
    assert_eq!(table.window(), Some(WINDOW_START / 2));
    table.end(7, SLO, 2).unwrap();
    assert_eq!(table.window(), Some(WINDOW_START));
    table.end(5, SLO, 2).unwrap();
    assert_eq!(table.window(), None);
}

#[test]
fn misuse_is_said_and_harms_no_other_epoch() {
    let mut table = Table::new();
    assert_eq!(table.end(5, SLO, 1), Err(EpochError::NotOpen));
    assert_eq!(table.start(u32::MAX, 1), Err(EpochError::NotOpen));
    table.start(5, 1).unwrap();
    assert_eq!(table.start(5, 2), Err(EpochError::AlreadyOpen));
    table.start(6, 1).unwrap();
    table.start(7, 1).unwrap();
    assert_eq!(table.end(5, SLO, 2), Err(EpochError::InnerOpen));
    assert_eq!(
        (table.end(6, SLO, 2), table.end(7, SLO, 2)),
        (Err(EpochError::NotOpen), Err(EpochError::NotOpen))
    );
    assert_eq!(table.window(), None);
    // The dropped ones were not measured.
    assert_eq!(run(&mut table, 7, SLO), WINDOW_START + 10_000);
}

#[test]
fn an_epoch_has_32_bytes() {
    let mut table = Table::new();
    for id in 0..100 {
        run(&mut table, id * 7919 % 1000, 1);
    }
    assert!(
        table.epochs.capacity() * size_of::<Epoch>() <= 100 * 32,
        "{}",
        table.epochs.capacity()
    );
}

/// The bound of waits is the process's.
static WAIT_BOUND: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[test]
fn threads_that_end_within_an_epoch_leave_nothing() {
    let _unset = WAIT_BOUND.lock().unwrap();
    for _ in 0..100 {
        std::thread::spawn(|| {
            assert_eq!(epoch_window(), WINDOW_MOST);
            epoch_start(1).unwrap();
            epoch_start(2).unwrap();
            assert_eq!(epoch_window(), WINDOW_START);
        })
        .join()
        .unwrap();
    }
    assert_eq!(epoch_end(1, SLO), Err(EpochError::NotOpen));
}

proptest! {
    /// Against a stack that is written down plainly.
    #[test]
    fn any_order_of_calls_is_that_of_a_stack(calls in prop::collection::vec((any::<bool>(), 0..6u32), 0..200)) {
        let (mut table, mut stack) = (Table::new(), Vec::new());
        for (is_start, id) in calls {
            let at = stack.iter().position(|&open| open == id);
            if is_start {
                let wanted = if at.is_some() { Err(EpochError::AlreadyOpen) } else { Ok(()) };
                prop_assert_eq!(table.start(id, 1), wanted);
                if at.is_none() {
                    stack.push(id);
                }
            } else {
                let wanted = match at {
                    None => Err(EpochError::NotOpen),
                    Some(at) if at + 1 < stack.len() => Err(EpochError::InnerOpen),
                    Some(_) => Ok(()),
                };
                prop_assert_eq!(table.end(id, SLO, 2), wanted);
                stack.truncate(at.unwrap_or(stack.len()));
            }
            prop_assert_eq!(table.current, stack.last().copied().unwrap_or(NONE));
            prop_assert!(table.window() <= Some(WINDOW_MOST));
        }
    }

    /// With latency in proportion to the window, the share of epochs that is too long is as asked for.
    #[test]
    fn the_percentile_is_kept(base in 0..900u64, scale in 1..50u64) {
        let mut table = Table::new();
        let mut late = 0;
        for round in 0..5_000 {
            let window = table.epochs.first().map_or(WINDOW_START, |epoch| epoch.window);
            let latency = base + window * scale / 100;
            run(&mut table, 5, latency);
            late += u32::from(round >= 1_000 && latency > SLO);
        }
        // Windows this short grow by UNIT_LEAST rather than by a hundredth.
        let window_that_fits = (SLO - base) * 100 / scale;
        let share = 2 * 10 * 4_000 / window_that_fits + 4_000 / 100;
        prop_assert!(u64::from(late) <= share + 1, "{} of 4000, at most {}", late, share);
    }
}

#[test]
fn waits_outside_of_epochs_are_epochs_once_they_have_a_bound() {
    const SLO: u64 = 200_000;
    let _ours = WAIT_BOUND.lock().unwrap();
    set_wait_slo(SLO);
    std::thread::spawn(|| {
        assert_eq!(epoch_window(), SLO);
        let wait = |ns: u64| thread::with(|me| wait_ended(me, Some(os::now() - ns)));
        wait(2 * SLO);
        assert_eq!(epoch_window(), SLO / 2);
        wait(0);
        assert_eq!(epoch_window(), SLO / 2 + SLO / 200);
        // Within an epoch its own window counts, and waits are not measured.
        epoch_start(1).unwrap();
        assert_eq!(epoch_window(), WINDOW_START);
        assert!(thread::with(wait_began).is_none());
        epoch_end(1, u64::MAX).unwrap();
        assert_eq!(epoch_window(), SLO / 2 + SLO / 200);
        assert!(thread::with(wait_began).is_some());
    })
    .join()
    .unwrap();
    set_wait_slo(0);
    assert_eq!(epoch_window(), WINDOW_MOST);
}

#[test]
fn a_profiled_epoch_has_the_bound_of_who_profiles() {
    let mut table = Table::new();
    profile_epochs(Some(900), 50);
    assert_eq!(run(&mut table, 900, 51), 500_000);
    assert_eq!(run(&mut table, 901, 51), 1_010_000);
    // Without a bound, those of the program count.
    profile_epochs(Some(900), 0);
    assert_eq!(run(&mut table, 900, 51), 505_000);
    profile_epochs(None, 0);
}
