// SPDX-License-Identifier: GPL-2.0-only
//! What a workload prints: a line for each metric.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    Lower,
    Higher,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Metric {
    pub name: String,
    pub value: f64,
    pub unit: String,
    pub better: Better,
}

/// The metrics that a workload has printed; else why that is not a measurement.
pub fn parse_metrics(stdout: &str) -> Result<Vec<Metric>, String> {
    let mut metrics: Vec<Metric> = Vec::new();
    for line in stdout.lines() {
        let metric = parse_metric(line)
            .ok_or_else(|| format!("printed {line:?} instead of METRIC VALUE UNIT lower|higher"))?;
        if metrics.iter().any(|other| other.name == metric.name) {
            return Err(format!("printed the metric {} twice", metric.name));
        }
        metrics.push(metric);
    }
    if metrics.is_empty() {
        return Err("printed no metric".into());
    }
    Ok(metrics)
}

fn parse_metric(line: &str) -> Option<Metric> {
    let mut words = line.split_whitespace();
    let (name, value, unit) = (words.next()?, words.next()?, words.next()?);
    let better = match words.next()? {
        "lower" => Better::Lower,
        "higher" => Better::Higher,
        _ => return None,
    };
    let value: f64 = value.parse().ok()?;
    (words.next().is_none() && value.is_finite() && value >= 0.0).then(|| Metric {
        name: name.into(),
        value,
        unit: unit.into(),
        better,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_four_words() {
        let metrics = parse_metrics("time 12.5 ms lower\nrequests 3e4 1/s higher\n").unwrap();
        assert_eq!(
            metrics[1],
            Metric {
                name: "requests".into(),
                value: 30000.0,
                unit: "1/s".into(),
                better: Better::Higher,
            }
        );
        assert_eq!(metrics.len(), 2);
        for wrong in [
            "",
            "hello",
            "time 12.5 ms",
            "time 12.5 ms less",
            "time NaN ms lower",
            "time inf ms lower",
            "time -1 ms lower",
            "time fast ms lower",
            "time 1 ms lower really",
            "time 1 ms lower\n\n",
            "time 1 ms lower\ntime 2 ms lower",
        ] {
            assert!(parse_metrics(wrong).is_err(), "{wrong:?}");
        }
    }
}
