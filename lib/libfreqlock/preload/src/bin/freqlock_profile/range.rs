// SPDX-License-Identifier: MIT
//! The bounds that a program is run with.

use crate::setup;

/// More than anybody wants to see in one picture.
const POINTS_MOST: u32 = 100;

/// From one to another, each the same factor above the one before.
#[derive(Debug)]
pub struct Range {
    from: u64,
    to: u64,
    points: u32,
}

/// Two times, in ns.
pub fn parse(text: &str) -> Result<(u64, u64), String> {
    let (from, to) = text
        .split_once("..")
        .ok_or("a range is two times, as in 10us..1ms")?;
    Ok((setup::duration(from)?, setup::duration(to)?))
}

impl Range {
    pub fn new((from, to): (u64, u64), points: u32) -> Result<Range, String> {
        if from >= to {
            return Err("--slo: the first time has to be less than the second one".into());
        }
        if !(2..=POINTS_MOST).contains(&points) {
            return Err(format!("--points: a number from 2 to {POINTS_MOST}"));
        }
        if u64::from(points) > to - from {
            return Err("--slo: there are not so many bounds between these".into());
        }
        Ok(Range { from, to, points })
    }

    /// In ns. Those at the ends are exact, the others have three digits.
    pub fn slos(&self) -> impl Iterator<Item = u64> + '_ {
        let factor = (self.to as f64 / self.from as f64).powf(1.0 / f64::from(self.points - 1));
        (0..self.points).map(move |n| match n {
            0 => self.from,
            n if n == self.points - 1 => self.to,
            n => rounded(self.from as f64 * factor.powi(n as i32)),
        })
    }
}

fn rounded(ns: f64) -> u64 {
    let unit = 10_f64.powf((ns.log10().floor() - 2.0).max(0.0));
    ((ns / unit).round() * unit) as u64
}

/// In the unit in which it has no more than three digits before its point.
pub fn time(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let unit = units.into_iter().find(|(unit, _)| ns >= *unit);
    unit.map_or(format!("{ns}ns"), |(unit, name)| {
        let digits = format!("{:.2}", ns as f64 / unit as f64);
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        format!("{digits}{name}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_a_factor_apart_with_exact_ends() {
        let slos = |from, to, points| -> Vec<u64> {
            Range::new((from, to), points).unwrap().slos().collect()
        };
        assert_eq!(
            slos(10_000, 10_000_000, 4),
            [10_000, 100_000, 1_000_000, 10_000_000]
        );
        assert_eq!(slos(10_001, 80_002, 4), [10_001, 20_000, 40_000, 80_002]);
        assert_eq!(slos(1, 3, 2), [1, 3]);
    }

    #[test]
    fn senseless_ranges_are_refused() {
        for (text, says) in [
            ("10us", "two times"),
            ("10us..1", "ns, us, ms or s"),
            ("0us..1ms", "more than 0"),
            ("-1us..1ms", "more than 0"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
        assert_eq!(parse("10us..1ms"), Ok((10_000, 1_000_000)));
        for (range, points, says) in [
            ((5, 5), 2, "less than"),
            ((6, 5), 2, "less than"),
            ((5, 1000), 1, "2 to 100"),
            ((5, 1000), 101, "2 to 100"),
            ((5, 8), 7, "not so many"),
        ] {
            let error = Range::new(range, points).unwrap_err();
            assert!(error.contains(says), "{range:?}: {error}");
        }
    }

    #[test]
    fn times_are_said_in_the_unit_that_suits_them() {
        for (ns, text) in [
            (7, "7ns"),
            (1_000, "1us"),
            (46_400, "46.4us"),
            (999_999, "1000us"),
            (2_150_000, "2.15ms"),
            (100_000_000_000, "100s"),
        ] {
            assert_eq!(time(ns), text);
        }
    }
}
