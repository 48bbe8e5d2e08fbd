// SPDX-License-Identifier: GPL-2.0-only
//! What the BPF programs of a sched_ext scheduler cost, callbacks and others: from
//! the kernel's own counters before and after a command.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The kernel's counters of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Of the program, as the kernel numbers them.
    pub id: u32,
    /// In full, from its type information; else the kernel's first 15 characters.
    pub name: String,
    /// Times that it ran while the kernel counted.
    pub runs: u64,
    /// Time in it, ns.
    pub run_ns: u64,
}

/// The callbacks that every wake-up passes through, by the end of their names.
const PATH: [&str; 3] = ["select_cpu", "enqueue", "dispatch"];

/// What a scheduler's programs cost while a command ran.
#[derive(Debug, Deserialize, Serialize)]
pub struct Cost {
    /// The name that sched_ext has for it.
    pub scheduler: String,
    /// From start to end of the command.
    pub elapsed_ms: f64,
    /// Sum of the means of select_cpu, enqueue and dispatch; none where one of
    /// them never ran.
    pub path_ns: Option<f64>,
    /// Share of all CPU time spent in these programs.
    pub cpu_share: f64,
    /// Most expensive first.
    pub programs: Vec<Program>,
}

/// One BPF program's part.
#[derive(Debug, Deserialize, Serialize)]
pub struct Program {
    /// In full where the kernel has its type information.
    pub name: String,
    /// Times that it ran meanwhile.
    pub runs: u64,
    /// Of one run.
    pub mean_ns: f64,
    /// Of all runs.
    pub total_ms: f64,
}

const NS_PER_MS: f64 = 1e6;

impl Cost {
    /// Programs that were not there before are left out, as are those that did
    /// not run in between.
    pub fn new(
        scheduler: String,
        before: &[Sample],
        after: &[Sample],
        elapsed_ns: u64,
        cpus: usize,
    ) -> Self {
        let before: HashMap<u32, &Sample> = before.iter().map(|s| (s.id, s)).collect();
        let mut programs: Vec<Program> = after
            .iter()
            .filter_map(|now| {
                let then = before.get(&now.id)?;
                let runs = now.runs.checked_sub(then.runs).filter(|runs| *runs > 0)?;
                let ns = now.run_ns.saturating_sub(then.run_ns) as f64;
                Some(Program {
                    name: now.name.clone(),
                    runs,
                    mean_ns: ns / runs as f64,
                    total_ms: ns / NS_PER_MS,
                })
            })
            .collect();
        programs.sort_by(|a, b| b.total_ms.total_cmp(&a.total_ms));
        let mean = |suffix: &str| {
            programs
                .iter()
                .find(|p| p.name.ends_with(suffix))
                .map(|p| p.mean_ns)
        };
        let total_ms: f64 = programs.iter().map(|p| p.total_ms).sum();
        let elapsed_ms = elapsed_ns as f64 / NS_PER_MS;
        Self {
            scheduler,
            elapsed_ms,
            path_ns: PATH.into_iter().map(mean).sum(),
            cpu_share: total_ms / (elapsed_ms * cpus as f64).max(f64::MIN_POSITIVE),
            programs,
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<28} {:>12} {:>10} {:>12}",
            self.scheduler, "runs", "mean ns", "total ms"
        )?;
        for p in &self.programs {
            writeln!(
                f,
                "{:<28} {:>12} {:>10.0} {:>12.2}",
                p.name, p.runs, p.mean_ns, p.total_ms
            )?;
        }
        match self.path_ns {
            Some(ns) => writeln!(f, "{:<28} {:>12} {ns:>10.0}", PATH.join(" + "), "")?,
            None => writeln!(f, "{}: not all of them ran", PATH.join(" + "))?,
        }
        writeln!(
            f,
            "all of it takes {:.2}% of all CPU time",
            self.cpu_share * 100.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(id: u32, name: &str, runs: u64, run_ns: u64) -> Sample {
        Sample {
            id,
            name: name.to_owned(),
            runs,
            run_ns,
        }
    }

    #[test]
    fn means_are_of_what_ran_in_between() {
        let before = [
            sample(1, "x_select_cpu", 10, 50_000),
            sample(2, "x_enqueue", 0, 0),
            sample(3, "x_dispatch", 5, 5_000),
            sample(4, "x_tick", 7, 70),
        ];
        let after = [
            sample(1, "x_select_cpu", 30, 56_000),
            sample(2, "x_enqueue", 10, 2_000),
            sample(3, "x_dispatch", 105, 1_005_000),
            sample(4, "x_tick", 7, 70),
            sample(5, "late_enqueue", 9, 9_000_000),
        ];
        let cost = Cost::new("x".to_owned(), &before, &after, 10_000_000, 4);
        assert_eq!(cost.path_ns, Some(300.0 + 200.0 + 10_000.0));
        let names: Vec<&str> = cost.programs.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["x_dispatch", "x_select_cpu", "x_enqueue"]);
        let spent_ns = 6_000.0 + 2_000.0 + 1_000_000.0;
        assert!((cost.cpu_share - spent_ns / 40_000_000.0).abs() < 1e-9);
    }

    #[test]
    fn a_path_that_was_not_all_taken_has_no_sum() {
        let before = [sample(1, "x_select_cpu", 0, 0)];
        let after = [sample(1, "x_select_cpu", 3, 900)];
        let cost = Cost::new("x".to_owned(), &before, &after, 1, 1);
        assert_eq!(cost.path_ns, None);
        assert!(cost.to_string().contains("not all"));
    }
}
