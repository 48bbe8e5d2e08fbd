// SPDX-License-Identifier: GPL-2.0-only
//! The statistics of bpf/stats.h as scx_stats knows them, and as text.

use scx_stats_derive::{stat_doc, Stats};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// As the socket and text have it.
    pub name: &'static str,
    /// What it is printed with.
    pub group: &'static str,
    /// A sentence for help and manual.
    pub desc: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/metrics.rs"));

/// Lines are broken before they get wider than this.
const WIDTH: usize = 100;
/// Room for the name of a group.
const LABEL: usize = 8;

impl Metrics {
    /// What happened between `earlier` and now.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut counts = self.counts();
        for (now, then) in counts.iter_mut().zip(earlier.counts()) {
            *now = now.saturating_sub(then);
        }
        Self::from_counts(&counts)
    }

    /// A few lines for each group, with all that is not zero.
    pub fn table(&self) -> String {
        let mut out = String::new();
        let (mut group, mut width) = ("", 0);
        for (stat, count) in STATS.iter().zip(self.counts()) {
            if count == 0 {
                continue;
            }
            let item = format!(" {}={count}", stat.name);
            if stat.group != group || width + item.len() > WIDTH {
                let label = if stat.group != group { stat.group } else { "" };
                let newline = if out.is_empty() { "" } else { "\n" };
                let _ = write!(out, "{newline}{label:<LABEL$}");
                width = LABEL;
                group = stat.group;
            }
            width += item.len();
            out.push_str(&item);
        }
        if out.is_empty() {
            out.push_str("nothing happened");
        }
        out.push('\n');
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intf;

    #[test]
    fn there_is_a_field_for_every_statistic_of_the_bpf_side() {
        assert_eq!(STATS.len(), intf::fl_stat_FL_NR_STATS as usize);
        let counts = std::array::from_fn(|i| i as u64);
        let metrics = Metrics::from_counts(&counts);
        assert_eq!(metrics.counts(), counts);
        assert_eq!(metrics.wake, intf::fl_stat_FL_STAT_wake as u64);
        assert_eq!(metrics.no_ctx, intf::fl_stat_FL_STAT_no_ctx as u64);
    }

    #[test]
    fn since_is_the_difference() {
        let then = Metrics {
            wake: 5,
            ..Default::default()
        };
        let now = Metrics {
            wake: 12,
            fork: 3,
            ..Default::default()
        };
        assert_eq!(
            now.since(&then),
            Metrics {
                wake: 7,
                fork: 3,
                ..Default::default()
            }
        );
    }

    #[test]
    fn the_table_has_a_label_for_each_group_and_leaves_zeros_out() {
        let metrics = Metrics {
            fork: 2,
            wake: 5,
            place_local: 7,
            ..Default::default()
        };
        assert_eq!(
            metrics.table(),
            "event    fork=2 wake=5\nplace    place_local=7\n"
        );
        assert_eq!(Metrics::default().table(), "nothing happened\n");
    }

    #[test]
    fn long_groups_go_on_in_the_next_line() {
        let metrics = Metrics::from_counts(&[1_000_000_000; STATS.len()]);
        let table = metrics.table();
        assert!(table.lines().all(|line| line.len() <= WIDTH), "{table}");
        assert_eq!(table.matches('=').count(), STATS.len());
        assert_eq!(table.matches("\nmode ").count(), 1);
    }
}
