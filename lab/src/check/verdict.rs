// SPDX-License-Identifier: GPL-2.0-only
//! What figures of now say beside the recorded ones.

use std::fmt::Write as _;

use crate::recorded::Case;

/// The kernel's own scheduler, with which ratios are made.
pub const BASELINE: &str = "eevdf";

/// How much more or less than recorded a scheduler's figure may be beside the
/// kernel's own, where single ones cannot be compared and the case says nothing
/// else. Another image alone moved single runs by 3%, and one of these ratios, of
/// three seeds each, by 6.6%.
const TOLERANCE: f64 = 0.08;

pub fn ms(ns: f64) -> String {
    format!("{:.6} ms", ns / 1e6)
}

pub fn shown(case: &Case, value: f64) -> String {
    match case.metric {
        Some(_) => value.to_string(),
        None => ms(value),
    }
}

pub fn percent(now: f64, recorded: f64) -> String {
    format!("{:+.2}%", (now / recorded - 1.0) * 100.0)
}

pub fn sum(case: &Case) -> f64 {
    case.values.iter().sum()
}

/// A line for each figure that is another, and for each case.
pub fn changes(recorded: &[Case], now: &[Case]) -> String {
    let mut out = String::new();
    for (old, new) in recorded.iter().zip(now) {
        if old.values == new.values {
            continue;
        }
        for (seed, (was, is)) in (1..).zip(old.values.iter().zip(&new.values)) {
            if was != is {
                let before = match *was {
                    // As a new case is written, but a metric may be that.
                    0.0 if old.metric.is_some() => "recorded 0".into(),
                    0.0 => "new".into(),
                    _ => format!("recorded {} ({})", shown(old, *was), percent(*is, *was)),
                };
                let (name, is) = (old.name(), shown(old, *is));
                // Writing to a string cannot fail.
                writeln!(out, "  {name}, seed {seed}: {is}, {before}").ok();
            }
        }
        if !old.values.contains(&0.0) {
            let all = percent(sum(new), sum(old));
            writeln!(out, "{}: {all} in all", old.name()).ok();
        }
    }
    out
}

pub struct Verdict {
    pub good: bool,
    pub text: String,
}

/// `changed`: the project is not that of the record; `others`: nor are these.
pub fn of(recorded: &[Case], now: &[Case], changed: bool, others: &[String]) -> Verdict {
    let mut text = changes(recorded, now);
    if text.is_empty() {
        let count = |metrics: bool| -> usize {
            let those = now.iter().filter(|case| case.metric.is_some() == metrics);
            those.map(|case| case.values.len()).sum()
        };
        text = format!(
            "{} times as recorded, to the nanosecond, and {} metrics, to the last digit.\n",
            count(false),
            count(true)
        );
        return Verdict { good: true, text };
    }
    if others.is_empty() || changed {
        text.push_str(match (others.is_empty(), changed) {
            (true, false) => "FAILED: nothing that times depend on is another, and yet they are.\n",
            (true, true) => "FAILED: times are others since bpf/, machine/ or bench/ was changed. If they are to be: scripts/machine check --record\n",
            (false, _) => "FAILED: bpf/, machine/ or bench/ was changed, and the times were not recorded since: scripts/machine check --record\n",
        });
        return Verdict { good: false, text };
    }
    let away = ratios_away(recorded, now);
    text.push_str("NOT COMPARABLE to the nanosecond, because this is another machine or image:\n");
    for other in others {
        writeln!(text, "  {other}").ok();
    }
    for line in &away {
        writeln!(text, "FAILED: {line}").ok();
    }
    if away.is_empty() {
        writeln!(
            text,
            "Each scheduler is as fast beside {BASELINE} as recorded, within {:.0}% or what the case says.",
            TOLERANCE * 100.0
        )
        .ok();
    }
    Verdict {
        good: away.is_empty(),
        text,
    }
}

fn ratio(of: f64, base: f64) -> String {
    if base > 0.0 {
        format!("{:.3}", of / base)
    } else {
        format!("{of}:{base}")
    }
}

/// What the kernel's own scheduler gives for the figure of a case, as recorded and now.
fn baseline(recorded: &[Case], now: &[Case], of: &Case) -> Option<(f64, f64)> {
    let base = |cases: &[Case]| {
        let base = cases
            .iter()
            .find(|case| case.setup.scheduler == BASELINE && case.what() == of.what())?;
        Some(sum(base))
    };
    Some((base(recorded)?, base(now)?))
}

/// The sum of a case as it would be now if it had moved as the kernel's own scheduler has,
/// where there is one beside it.
pub fn expected(recorded: &[Case], now: &[Case], old: &Case) -> f64 {
    match baseline(recorded, now, old) {
        // To 0, which a metric may be, there is no ratio.
        Some((was, is)) if was > 0.0 && old.setup.scheduler != BASELINE => sum(old) * (is / was),
        _ => sum(old),
    }
}

/// The share by which a case's figure may be away from what is expected.
pub fn within(case: &Case) -> f64 {
    case.within.unwrap_or(TOLERANCE)
}

/// A line for each case whose scheduler is not beside the kernel's own as it was.
fn ratios_away(recorded: &[Case], now: &[Case]) -> Vec<String> {
    let mut away = Vec::new();
    for (old, new) in recorded.iter().zip(now) {
        let Some((base_was, base_is)) = baseline(recorded, now, old) else {
            continue;
        };
        let expected = expected(recorded, now, old);
        let off = (sum(new) - expected).abs();
        if old.setup.scheduler != BASELINE && off > within(old) * expected {
            let whose = if old.metric.is_some() { "" } else { " time" };
            away.push(format!(
                "{}: {} of {BASELINE}'s{whose}, recorded {}",
                old.name(),
                ratio(sum(new), base_is),
                ratio(sum(old), base_was)
            ));
        }
    }
    away
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(metric: Option<&str>, scheduler: &str, values: &[f64]) -> Case {
        Case::sample(&["W_JOBS=\"4\""], scheduler, metric, values)
    }

    fn cases() -> Vec<Case> {
        vec![
            case(None, "eevdf", &[1e6, 1e6]),
            case(None, "auto", &[8e5, 8e5]),
            case(Some("requests"), "eevdf", &[200.5, 199.5]),
            case(Some("requests"), "auto", &[300.0, 300.0]),
            case(Some("missed"), "eevdf", &[0.0]),
            case(Some("missed"), "auto", &[0.0]),
        ]
    }

    #[test]
    fn the_last_digit_is_a_difference() {
        let good = of(&cases(), &cases(), false, &[]);
        assert_eq!(
            good.text,
            "4 times as recorded, to the nanosecond, and 6 metrics, to the last digit.\n"
        );
        assert!(good.good);
        for (case, delta, line) in [
            (
                1,
                1.0,
                "W_JOBS=\"4\", auto, seed 2: 0.800001 ms, recorded 0.800000 ms (+0.00%)",
            ),
            (
                2,
                -0.1,
                "W_JOBS=\"4\", requests, eevdf, seed 2: 199.4, recorded 199.5 (-0.05%)",
            ),
            (
                5,
                0.1,
                "W_JOBS=\"4\", missed, auto, seed 1: 0.1, recorded 0\n",
            ),
        ] {
            let mut now = cases();
            if let Some(last) = now[case].values.last_mut() {
                *last += delta;
            }
            let bad = of(&cases(), &now, false, &[]);
            assert!(!bad.good);
            assert!(bad.text.contains(&format!("  m, w {line}")), "{}", bad.text);
        }
    }

    #[test]
    fn a_changed_scheduler_has_to_be_recorded_with_its_change_in_per_cent() {
        let mut now = cases();
        now[1].values = vec![808_000.0, 824_000.0];
        now[3].values = vec![312.0, 306.0];
        for others in [vec![], vec!["kernel 2, recorded with 1".to_string()]] {
            let bad = of(&cases(), &now, true, &others);
            assert!(!bad.good, "{}", bad.text);
            for line in ["\", auto: +2.00% in all", "requests, auto: +3.00% in all"] {
                assert!(bad.text.contains(line), "{}", bad.text);
            }
            assert!(bad.text.contains("check --record"), "{}", bad.text);
        }
        assert!(of(&cases(), &cases(), true, &[]).good, "no other times");
    }

    #[test]
    fn another_kernel_is_said_and_ratios_are_held() {
        let others = ["kernel 2, recorded with 1".to_string()];
        let mut now = cases();
        now[0].values = vec![2e6, 2e6];
        now[1].values = vec![1.65e6, 1.65e6];
        now[2].values = vec![100.0, 100.0];
        now[3].values = vec![155.0, 155.0];
        let good = of(&cases(), &now, false, &others);
        assert!(good.good, "{}", good.text);
        assert!(
            good.text.contains("NOT COMPARABLE") && good.text.contains("kernel 2"),
            "{}",
            good.text
        );
        for (case, value, line) in [
            (1, 1.74e6, "auto: 0.870 of eevdf's time, recorded 0.800"),
            (1, 1.46e6, "auto: 0.730 of eevdf's time, recorded 0.800"),
            (3, 163.0, "requests, auto: 1.630 of eevdf's, recorded 1.500"),
            (3, 137.0, "requests, auto: 1.370 of eevdf's, recorded 1.500"),
            (5, 1.0, "missed, auto: 1:0 of eevdf's, recorded 0:0"),
        ] {
            let mut now = now.clone();
            let seeds = now[case].values.len();
            now[case].values = vec![value; seeds];
            let bad = of(&cases(), &now, false, &others);
            assert!(!bad.good);
            let line = format!("FAILED: m, w W_JOBS=\"4\", {line}\n");
            assert!(bad.text.contains(&line), "{}", bad.text);
        }
    }

    #[test]
    fn a_case_may_say_how_far_its_ratio_moves() {
        let others = ["kernel 2, recorded with 1".to_string()];
        let mut recorded = cases();
        recorded[3].within = Some(0.5);
        for (value, good) in [(440.0, true), (160.0, true), (460.0, false), (140.0, false)] {
            let mut now = recorded.clone();
            now[3].values = vec![value, value];
            let verdict = of(&recorded, &now, false, &others);
            assert_eq!(verdict.good, good, "{}", verdict.text);
            assert!(
                !of(&recorded, &now, false, &[]).good,
                "exact where it can be"
            );
        }
    }
}
