// SPDX-License-Identifier: GPL-2.0-only
//! Intervals on the command line: seconds, with a fraction if need be.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Parses the time between two reports, which may be a day.
pub fn of_reports(text: &str) -> Result<Duration, String> {
    parse(text, 0.1..=86_400.0)
}

/// Parses a number of seconds within a range; the error says which.
pub fn parse(text: &str, range: RangeInclusive<f64>) -> Result<Duration, String> {
    text.parse()
        .ok()
        .filter(|seconds| range.contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| {
            format!(
                "not a number of seconds in {}..={}",
                range.start(),
                range.end()
            )
        })
}
