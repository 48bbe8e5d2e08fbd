// SPDX-License-Identifier: GPL-2.0-only
//! What runs of the workloads of bench/ have in common: when each starts, how long it
//! may take, and what it gave.

use super::error::Error;
use super::guest;
use crate::figures::{parse_metrics, Metric};

/// Start times differ by less than this, which is a few ticks of the kernel and
/// half of the slowest machine's way to its highest frequency.
const SHIFT_US: u64 = 16_000;

/// No workload takes longer by the machine's own time.
pub const LIMIT_S: u64 = 3600;

/// When the workload of a round starts. The factor has no part in common with
/// the length, so that many rounds cover it evenly.
pub fn shift_us(round: u32) -> u64 {
    u64::from(round) * 6_337 % SHIFT_US
}

/// The metrics of a run in a guest, or why there are none.
pub fn measured(report: &guest::Report) -> Result<Vec<Metric>, String> {
    if report.status != 0 {
        let stderr = String::from_utf8_lossy(&report.stderr);
        let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
        return Err(match last {
            Some(line) => format!("exit status {}: {}", report.status, line.trim()),
            None => format!("exit status {}, without a word", report.status),
        });
    }
    parse_metrics(&String::from_utf8_lossy(&report.stdout))
}

/// A failure with the console's lines would not go into a table.
pub fn one_line(error: &Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_times_cover_their_range_evenly() {
        let mut shifts: Vec<u64> = (0..10).map(shift_us).collect();
        assert_eq!(shifts[0], 0, "the first is an ordinary run");
        shifts.sort();
        shifts.push(SHIFT_US);
        let widest = shifts.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert!(widest < Some(SHIFT_US / 4), "{shifts:?}");
    }

    #[test]
    fn a_failed_workload_gives_its_last_words() {
        let report = |status, stdout: &str, stderr: &str| guest::Report {
            status,
            loaded: "disabled - 0".into(),
            stdout: stdout.into(),
            stderr: stderr.into(),
        };
        let metrics = measured(&report(0, "time 5 ms lower\n", "")).unwrap();
        assert_eq!((metrics[0].name.as_str(), metrics[0].value), ("time", 5.0));
        assert_eq!(
            measured(&report(1, "time 5 ms lower\n", "a\nb\n\n")).unwrap_err(),
            "exit status 1: b"
        );
        assert!(measured(&report(0, "", "")).is_err());
    }
}
