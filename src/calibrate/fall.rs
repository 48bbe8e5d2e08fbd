// SPDX-License-Identifier: GPL-2.0-only
//! How long an idle CPU keeps its speed, and how fast it loses it then: the other half
//! of the recency model. A CPU that is warm is left idle for a few lengths of time, and
//! made warm again in between.

use super::chunks;
use std::time::Duration;

/// Idle times after which is looked. Published ones of hardware are of "tens to hundreds
/// of milliseconds" (Gouicem et al., USENIX ATC 2020, section 2).
const IDLE: [Duration; 3] = [
    Duration::from_millis(5),
    Duration::from_millis(15),
    Duration::from_millis(40),
];
/// Work between two of them: as long as most cores take to make up for the longest.
const WARM: Duration = Duration::from_millis(10);
/// Chunks just after idling: together long against what clocks of CPUs differ.
const EARLY: usize = 6;
/// What interrupts an idle CPU keeps it warm, so that the lower speed counts.
const ROUNDS: usize = 2;
/// Less than this of the way down or from the bottom is noise.
const NOISE: f64 = 0.1;

/// How CPUs get slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fall {
    /// Idle time before the speed falls.
    pub after_us: u64,
    /// Idle time from there to the floor.
    pub us: u64,
}

/// Speeds just after each time of [`IDLE`], as shares of the one when warm.
pub type Shown = [f64; IDLE.len()];

/// What this CPU shows, which is warm but for a moment's idling.
pub fn show(steps: u32) -> Option<Vec<Shown>> {
    let mut warm = mean(&chunks(WARM, steps))?;
    let mut look = |idle: Duration| {
        // To idle is what is to be measured: nothing is awaited here.
        std::thread::sleep(idle);
        let durations = chunks(WARM, steps);
        let early = mean(durations.get(..EARLY)?)?;
        let speed = warm / early;
        warm = mean(&durations[durations.len() - durations.len().div_ceil(4)..])?;
        Some(speed)
    };
    (0..ROUNDS)
        .map(|_| Some([look(IDLE[0])?, look(IDLE[1])?, look(IDLE[2])?]))
        .collect()
}

/// In seconds.
fn mean(durations: &[Duration]) -> Option<f64> {
    let sum: Duration = durations.iter().sum();
    (!sum.is_zero()).then(|| sum.as_secs_f64() / durations.len() as f64)
}

/// Of what was shown by a CPU that has the speed `floor` (0..1 of the warm one) after
/// `cool`; none if nothing was shown, or if speeds do not change.
pub fn fall(shown: &[Shown], floor: f64, cool: Duration) -> Option<Fall> {
    if shown.is_empty() || floor > 1.0 - NOISE {
        return None;
    }
    let mut points = vec![(0.0, 1.0)];
    for (i, idle) in IDLE.into_iter().enumerate() {
        let speed = shown.iter().map(|speeds| speeds[i]).fold(1.0, f64::min);
        points.push((idle.as_secs_f64(), (speed - floor) / (1.0 - floor)));
    }
    points.push((cool.as_secs_f64(), 0.0));
    Some(line(&points))
}

/// The line through the first points (seconds, share of the way from the floor to full
/// speed) that fell and are not at the floor. With one such point alone it begins where
/// the speed was last seen to be kept; with none, it ends where it was first seen there.
fn line(points: &[(f64, f64)]) -> Fall {
    let kept = points.iter().take_while(|(_, share)| *share > 1.0 - NOISE);
    let kept = kept.last().copied().unwrap_or((0.0, 1.0));
    let mut fell = points.iter().filter(|(t, _)| *t > kept.0);
    let first = fell.next().copied().unwrap_or(kept);
    let second = fell.next().copied().filter(|(_, share)| *share > NOISE);
    let (after, takes) = match second {
        Some((t, share)) if first.1 - share > NOISE => {
            let takes = (t - first.0) / (first.1 - share);
            (first.0 - (1.0 - first.1) * takes, takes)
        }
        _ => (kept.0, (first.0 - kept.0) / (1.0 - first.1.max(0.0))),
    };
    let us = |s: f64| (s.max(0.0) * 1e6) as u64;
    Fall {
        after_us: us(after),
        us: us(takes).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COOL: Duration = Duration::from_millis(100);

    /// What a CPU shows that keeps its speed for `hold` ms and is at `floor` after `decay`.
    fn shown(hold: f64, decay: f64, floor: f64) -> Shown {
        IDLE.map(|idle| {
            let down = (idle.as_secs_f64() * 1e3 - hold).max(0.0) / decay;
            1.0 - (1.0 - floor) * down.min(1.0)
        })
    }

    fn measured(hold: f64, decay: f64, floor: f64) -> Fall {
        fall(&[shown(hold, decay, floor); 2], floor, COOL).unwrap()
    }

    #[test]
    fn two_points_on_the_way_down_tell_both() {
        let Fall { after_us, us } = measured(2.0, 45.0, 0.4);
        assert!((1_990..=2_010).contains(&after_us), "{after_us}");
        assert!((44_900..=45_100).contains(&us), "{us}");
    }

    #[test]
    fn one_point_begins_where_speed_was_kept() {
        // 98 ms from 10 ms on: 95% after 15 ms, which is as good as all, and 69% after 40.
        let Fall { after_us, us } = measured(10.0, 98.0, 0.4);
        assert_eq!(after_us, 15_000);
        assert!((81_000..=82_000).contains(&us), "{us}");
    }

    #[test]
    fn the_fastest_and_the_slowest() {
        let at_once = Fall {
            after_us: 0,
            us: 5_000,
        };
        assert_eq!(measured(0.0, 1.0, 0.4), at_once);
        let late = Fall {
            after_us: 40_000,
            us: 60_000,
        };
        assert_eq!(measured(60.0, 30.0, 0.4), late);
    }

    #[test]
    fn nothing_falls_where_speeds_do_not_change() {
        assert_eq!(fall(&[shown(1.0, 10.0, 1.0)], 1.0, COOL), None);
        assert_eq!(fall(&[], 0.4, COOL), None);
    }

    #[test]
    fn a_cpu_that_was_kept_warm_does_not_count() {
        let fine = shown(2.0, 45.0, 0.4);
        assert_eq!(fall(&[[1.0; 3], fine], 0.4, COOL), fall(&[fine], 0.4, COOL));
    }

    proptest! {
        /// The line is never far from the CPU at the times that were looked at.
        #[test]
        fn is_near_what_was_shown(hold in 0.0..30.0, decay in 1.0..60.0, floor in 0.1..0.8) {
            let Fall { after_us, us } = measured(hold, decay, floor);
            for idle in IDLE {
                let ms = idle.as_secs_f64() * 1e3;
                let is = 1.0 - ((ms - hold).max(0.0) / decay).min(1.0);
                let said = 1.0 - ((ms - after_us as f64 / 1e3).max(0.0) / us as f64 * 1e3).min(1.0);
                prop_assert!((is - said).abs() < 0.25, "{is} after {ms} ms, said {said}");
            }
        }

        #[test]
        fn whatever_is_shown_is_a_time(a in 0.0..3.0, b in 0.0..3.0, c in 0.0..3.0, floor in 0.0..0.9) {
            let Fall { after_us, us } = fall(&[[a, b, c]], floor, COOL).unwrap();
            prop_assert!(after_us <= 100_000 && (1..=10_000_000).contains(&us), "{after_us} {us}");
        }
    }
}
