// SPDX-License-Identifier: GPL-2.0-only
//! Numbers and lines for people, and the time of day.

use std::time::UNIX_EPOCH;

/// Seconds since 1970.
pub fn now() -> u64 {
    UNIX_EPOCH.elapsed().unwrap_or_default().as_secs()
}

/// The second `at` since 1970, of UTC.
pub fn utc(at: u64) -> String {
    let at = chrono::DateTime::from_timestamp(at as i64, 0).unwrap_or_default();
    at.format("%FT%TZ").to_string()
}

/// Three digits and a unit.
pub fn time(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "us"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let digits = match value {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

/// Lines of at most `width` columns, set in by `indent`, each with its end. A longer word
/// has a line of its own.
pub fn wrapped(text: &str, indent: usize, width: usize) -> String {
    let mut lines = String::new();
    let mut column = usize::MAX;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column.saturating_add(1 + length) <= width {
            lines.push(' ');
            column += 1 + length;
        } else {
            if !lines.is_empty() {
                lines.push('\n');
            }
            lines.extend(std::iter::repeat_n(' ', indent));
            column = indent + length;
        }
        lines += word;
    }
    lines + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_unit() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_234, "1.23 us"),
            (45_600_000, "45.6 ms"),
            (789_000_000_000, "789 s"),
        ] {
            assert_eq!(time(ns), text);
        }
    }

    #[test]
    fn text_is_wrapped_between_words() {
        assert_eq!(wrapped("aa bb cc", 2, 7), "  aa bb\n  cc\n");
        assert_eq!(
            wrapped("longer than it may be", 0, 4),
            "longer\nthan\nit\nmay\nbe\n"
        );
        assert_eq!(wrapped("", 2, 7), "\n");
    }

    #[test]
    fn seconds_are_reported_in_utc() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(1_000_000_000), "2001-09-09T01:46:40Z");
    }
}
