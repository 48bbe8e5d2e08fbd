// SPDX-License-Identifier: GPL-2.0-only
//! What changed between the figures of two trees, and why.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::check::verdict::{expected, percent, shown, sum, within, BASELINE};
use crate::check::Wanted;
use crate::figures::{Better, Metric};
use crate::recorded::{Case, Setup};
use freqlock::metrics::STATS;

/// Statistics that say why, at most so many for a figure.
const MOST: usize = 6;

/// Groups of statistics about where tasks go, and what comes of it.
const DECISIONS: [&str; 4] = ["place", "mode", "park", "queue"];

/// What the scheduler did in a run, by statistic, and the metrics of that run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    pub metrics: Vec<Metric>,
    pub statistics: BTreeMap<String, u64>,
}

impl Counted {
    /// Takes the two last lines off an output: all statistics before the workload and after it.
    pub fn take(stdout: &mut Vec<u8>) -> Result<BTreeMap<String, u64>, String> {
        let text = String::from_utf8_lossy(stdout).into_owned();
        let mut lines: Vec<&str> = text.lines().collect();
        let mut last = || -> Result<BTreeMap<String, serde_json::Value>, String> {
            let line = lines.pop().unwrap_or_default();
            serde_json::from_str(line).map_err(|error| format!("no statistics: {error}"))
        };
        let (after, before) = (last()?, last()?);
        let printed: String = lines.iter().flat_map(|line| [*line, "\n"]).collect();
        *stdout = printed.into_bytes();
        let count = |all: &BTreeMap<String, serde_json::Value>, name: &str| {
            all.get(name).and_then(serde_json::Value::as_u64)
        };
        Ok((after.keys())
            .filter_map(|name| {
                let since = count(&before, name).unwrap_or(0);
                Some((name.clone(), count(&after, name)?.saturating_sub(since)))
            })
            .collect())
    }
}

/// What was counted before and after, where it could be.
pub type Both = (Option<Counted>, Option<Counted>);

/// What was run, with the seed, and what was counted.
pub type Reason = (Setup, u32, Both);
pub type Reasons = Vec<Reason>;

/// The cases that both have, with as many seeds as both have, in the order of the latter.
pub fn common(before: &[Case], after: &[Case]) -> (Vec<Case>, Vec<Case>) {
    (after.iter())
        .filter_map(|new| {
            let old = before.iter().find(|old| old.name() == new.name())?;
            let (mut old, mut new) = (old.clone(), new.clone());
            let seeds = old.values.len().min(new.values.len());
            old.values.truncate(seeds);
            new.values.truncate(seeds);
            Some((old, new))
        })
        .unzip()
}

/// Of each run of ours with a figure that changed, the seed that changed most.
pub fn to_explain<'a>(before: &'a [Case], after: &[Case]) -> Vec<Wanted<'a>> {
    let mut all: Vec<(Wanted, f64)> = Vec::new();
    for (old, new) in before.iter().zip(after) {
        if old.setup.scheduler == BASELINE {
            continue;
        }
        let share = |(was, is): (&f64, &f64)| ((is - was) / was.max(f64::MIN_POSITIVE)).abs();
        let moved = old.values.iter().zip(&new.values).map(share);
        let most = (1..).zip(moved).max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((seed, share)) = most.filter(|(_, share)| *share > 0.0) else {
            continue;
        };
        let wanted = Wanted {
            setup: &old.setup,
            seed,
        };
        match all.iter_mut().find(|(other, _)| *other.setup == old.setup) {
            None => all.push((wanted, share)),
            Some(other) if other.1 < share => *other = (wanted, share),
            Some(_) => {}
        }
    }
    all.into_iter().map(|(wanted, _)| wanted).collect()
}

pub struct Report {
    pub good: bool,
    pub text: String,
}

/// The change of each figure, by workload, and of each scheduler of ours the reason. `most`
/// replaces the share, in per cent, by which a figure may be worse.
pub fn text(before: &[Case], after: &[Case], reasons: &Reasons, most: Option<u32>) -> Report {
    let (mut text, mut worse, mut what) = (String::new(), Vec::new(), String::new());
    let pairs: Vec<_> = before.iter().zip(after).collect();
    for of_setup in pairs.chunk_by(|(a, _), (b, _)| a.setup == b.setup) {
        let setup = &of_setup[0].0.setup;
        let changed = of_setup
            .iter()
            .filter(|(old, new)| old.values != new.values);
        let reason = reasons.iter().find(|(of, ..)| of == setup);
        let mut any = false;
        for (old, new) in changed {
            any = true;
            if what != setup.what() {
                what = setup.what();
                // Writing to a string cannot fail.
                writeln!(text, "{what}").ok();
            }
            let within = most.map_or_else(|| within(old), |percent| f64::from(percent) / 100.0);
            let change = Change {
                expected: expected(before, after, old),
                better: direction(old, reason),
                old,
                new,
            };
            let judged = change.judged(within);
            if matches!(judged, Judged::Worse | Judged::Unknown) {
                worse.push(format!("{} (more than {:.0}%)", old.name(), within * 100.0));
            }
            writeln!(text, "  {change}{}", judged.words()).ok();
        }
        if let Some((_, seed, counted)) = reason.filter(|_| any) {
            writeln!(text, "    seed {seed}: {}", why(counted)).ok();
        }
    }
    let same = pairs.iter().filter(|(old, new)| old.values == new.values);
    writeln!(
        text,
        "{} of {} figures are the same.",
        same.count(),
        pairs.len()
    )
    .ok();
    for name in &worse {
        writeln!(text, "FAILED: worse: {name}").ok();
    }
    let good = worse.is_empty();
    Report { good, text }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judged {
    /// The kernel's own scheduler, which is no part of the project, or less than counts.
    Within,
    Better,
    Worse,
    /// No run said which way is better.
    Unknown,
}

impl Judged {
    fn words(self) -> &'static str {
        match self {
            Self::Within => "",
            Self::Better => ", better",
            Self::Worse => ", WORSE",
            Self::Unknown => ", and whether that is better is not known",
        }
    }
}

struct Change<'a> {
    old: &'a Case,
    new: &'a Case,
    /// What the sum would be if it had moved as the kernel's own scheduler has.
    expected: f64,
    better: Option<Better>,
}

impl Change<'_> {
    fn judged(&self, within: f64) -> Judged {
        let off = sum(self.new) - self.expected;
        if self.old.setup.scheduler == BASELINE || off.abs() <= within * self.expected {
            return Judged::Within;
        }
        match self.better {
            None => Judged::Unknown,
            Some(better) if (off < 0.0) == (better == Better::Lower) => Judged::Better,
            Some(_) => Judged::Worse,
        }
    }
}

impl std::fmt::Display for Change<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let mean = |case: &Case| shown(case, sum(case) / case.values.len() as f64);
        let change = |from: f64| match from {
            // There is no share of nothing.
            0.0 => "from 0".into(),
            from => percent(sum(self.new), from),
        };
        write!(f, "{}", self.old.setup.scheduler)?;
        if let Some(metric) = &self.old.metric {
            write!(f, ", {metric}")?;
        }
        let (old, new) = (mean(self.old), mean(self.new));
        write!(f, ": {old} -> {new}, {}", change(sum(self.old)))?;
        if self.expected != sum(self.old) {
            write!(f, ", {} beside {BASELINE}", change(self.expected))?;
        }
        Ok(())
    }
}

/// Less time is better; of a metric, its workload says.
fn direction(case: &Case, reason: Option<&Reason>) -> Option<Better> {
    let Some(name) = &case.metric else {
        return Some(Better::Lower);
    };
    let (_, _, (before, after)) = reason?;
    let counted = after.as_ref().or(before.as_ref())?;
    let metric = counted.metrics.iter().find(|metric| metric.name == *name)?;
    Some(metric.better)
}

/// The statistics that changed most, by how many events more or fewer: first where tasks went,
/// then the rest.
fn why((before, after): &Both) -> String {
    let (Some(before), Some(after)) = (before, after) else {
        return "its decisions could not be counted".into();
    };
    let decision = |name: &str| {
        let stat = STATS.iter().find(|stat| stat.name == name);
        stat.is_some_and(|stat| DECISIONS.contains(&stat.group))
    };
    let value = |all: &Counted, name: &str| all.statistics.get(name).copied().unwrap_or(0);
    let mut names: Vec<&String> = before.statistics.keys().collect();
    names.extend(after.statistics.keys());
    names.sort();
    names.dedup();
    let mut moved: Vec<_> = (names.into_iter())
        .map(|name| (name, value(before, name), value(after, name)))
        .filter(|(_, was, is)| was != is)
        .collect();
    moved.sort_by_key(|(name, was, is)| (!decision(name), std::cmp::Reverse(was.abs_diff(*is))));
    if moved.is_empty() {
        return "every statistic is the same: not what was decided, but when".into();
    }
    let shown: Vec<_> = (moved.iter().take(MOST))
        .map(|(name, was, is)| format!("{name} {was} -> {is}"))
        .collect();
    let more = match moved.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    shown.join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(scheduler: &str, metric: Option<&str>, values: &[f64]) -> Case {
        Case::sample(&["W_JOBS=4"], scheduler, metric, values)
    }

    fn counted(better: Better, statistics: &[(&str, u64)]) -> Option<Counted> {
        Some(Counted {
            metrics: vec![Metric {
                name: "requests".into(),
                value: 1.0,
                unit: "1/s".into(),
                better,
            }],
            statistics: (statistics.iter())
                .map(|(name, count)| (name.to_string(), *count))
                .collect(),
        })
    }

    fn cases() -> Vec<Case> {
        vec![
            case("eevdf", None, &[1e6, 1e6]),
            case("auto", None, &[8e5, 8e5]),
            case("auto", Some("requests"), &[100.0, 100.0]),
            case("off", None, &[1e6]),
        ]
    }

    #[test]
    fn a_change_has_its_reason_and_counts_beside_the_kernels_own() {
        let before = cases();
        let mut after = cases();
        // Another image: all take a tenth longer, but auto a fifth.
        after[0].values = vec![1.1e6, 1.1e6];
        after[1].values = vec![9.6e5, 9.6e5];
        let both = (
            counted(Better::Higher, &[("auto_warm", 9), ("fork", 5), ("sum", 1)]),
            counted(
                Better::Higher,
                &[("auto_warm", 4), ("fork", 90), ("sum", 1)],
            ),
        );
        let reasons: Reasons = vec![(before[1].setup.clone(), 2, both)];
        let report = text(&before, &after, &reasons, None);
        assert_eq!(
            report.text,
            "\
m, w W_JOBS=4
  eevdf: 1.000000 ms -> 1.100000 ms, +10.00%
  auto: 0.800000 ms -> 0.960000 ms, +20.00%, +9.09% beside eevdf, WORSE
    seed 2: auto_warm 9 -> 4, fork 5 -> 90
2 of 4 figures are the same.
FAILED: worse: m, w W_JOBS=4, auto (more than 8%)
"
        );
        assert!(!report.good);
        assert!(text(&before, &after, &reasons, Some(10)).good);
        after[1].values = vec![9e5, 9e5];
        assert!(text(&before, &after, &reasons, None).good);
        after[1].values = vec![5e5, 5e5];
        let better = text(&before, &after, &reasons, None);
        assert!(better.good && better.text.contains("beside eevdf, better\n"));
    }

    #[test]
    fn which_way_a_metric_is_better_its_workload_says() {
        let before = cases();
        let mut after = cases();
        after[2].values = vec![150.0, 150.0];
        let mut judge = |values: f64, better: Option<Better>| {
            after[2].values = vec![values, values];
            let counted = better.and_then(|better| counted(better, &[]));
            let reasons: Reasons = vec![(before[2].setup.clone(), 1, (counted.clone(), counted))];
            text(&before, &after, &reasons, None)
        };
        assert!(judge(150.0, Some(Better::Higher)).good);
        assert!(!judge(150.0, Some(Better::Lower)).good);
        assert!(!judge(50.0, Some(Better::Higher)).good);
        let unknown = judge(50.0, None);
        assert!(!unknown.good, "{}", unknown.text);
        assert!(unknown.text.contains("could not be counted"));
    }

    #[test]
    fn cases_and_seeds_that_only_one_has_are_left_out() {
        let mut before = cases();
        before.remove(0);
        before[0].values.push(3.0);
        let (old, new) = common(&before, &cases());
        let names: Vec<_> = new.iter().map(Case::name).collect();
        assert_eq!(
            names,
            cases()[1..].iter().map(Case::name).collect::<Vec<_>>()
        );
        assert_eq!(old, new);
    }

    #[test]
    fn of_each_run_of_ours_the_seed_that_changed_most_is_explained() {
        let before = cases();
        let mut after = cases();
        after[0].values = vec![2e6, 1e6];
        after[1].values = vec![8e5, 8.1e5];
        after[2].values = vec![150.0, 100.0];
        let wanted: Vec<_> = (to_explain(&before, &after).iter())
            .map(|wanted| wanted.setup.name(wanted.seed))
            .collect();
        assert_eq!(wanted, ["m, w W_JOBS=4, auto, seed 1"]);
        assert!(to_explain(&before, &before).is_empty());
    }

    #[test]
    fn statistics_are_the_difference_of_the_two_last_lines() {
        let mut stdout =
            b"time 5 ms lower\n{\"fork\":3,\"at\":1}\n{\"fork\":5,\"new\":7}\n".to_vec();
        let statistics = Counted::take(&mut stdout).unwrap();
        assert_eq!(stdout, b"time 5 ms lower\n");
        let expected = [("fork".to_string(), 2), ("new".to_string(), 7)];
        assert_eq!(statistics, expected.into());
        assert!(Counted::take(&mut b"time 5 ms lower\n".to_vec()).is_err());
    }
}
