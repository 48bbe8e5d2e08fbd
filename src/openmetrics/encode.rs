// SPDX-License-Identifier: GPL-2.0-only
//! What is known of the scheduler, as OpenMetrics. Names and help come from the tables
//! of statistics; labels are CPUs, and the cgroups that ran most.

use crate::cgroups::Cgroups;
use crate::foreign::Foreign;
use crate::histogram;
use crate::look::Look;
use crate::metrics::STATS;
use crate::telemetry::{By, Filter, Order, Report, TaskStats, TASK_STATS};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode as encode_text;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;

const PREFIX: &str = "scx_freqlock";
/// cgroups with a label of their own; the others are one, `other`.
const MOST_CGROUPS: usize = 50;
/// Exponents of the buckets of inversions: from 2^14 ns, 16 us, to 2^34 ns, 17 s.
const BUCKETS: std::ops::RangeInclusive<u32> = 14..=34;

/// The text of a scrape.
pub fn encode(look: Look) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(Snapshot(look)));
    let mut text = String::new();
    encode_text(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Snapshot(Look);

impl Collector for Snapshot {
    fn encode(&self, mut to: DescriptorEncoder) -> fmt::Result {
        self.statistics(&mut to)?;
        self.cpus(&mut to)?;
        self.cgroups(&mut to)?;
        self.tasks(&mut to)?;
        self.inversions(&mut to)
    }
}

/// The figure of a table as a counter: times are in seconds.
fn counter_of(stat_name: &str, is_time: bool) -> (&str, Option<&'static Unit>) {
    match stat_name.strip_suffix("_ns") {
        Some(name) if is_time => (name, Some(&Unit::Seconds)),
        _ => (stat_name, None),
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl Snapshot {
    fn statistics(&self, to: &mut DescriptorEncoder) -> fmt::Result {
        for (stat, count) in STATS.iter().zip(self.0.metrics.counts()) {
            let mut metric =
                to.encode_descriptor(stat.name, stat.desc, None, MetricType::Counter)?;
            metric.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        Ok(())
    }

    fn cpus(&self, to: &mut DescriptorEncoder) -> fmt::Result {
        type Of = fn(&crate::telemetry::Cpu) -> f64;
        let gauges: [(&str, &str, Of); 5] = [
            (
                "cpu_speed_ratio",
                "Speed now, of the machine's fastest CPU at its best",
                |cpu| f64::from(cpu.speed) / 1024.0,
            ),
            (
                "cpu_util_ratio",
                "Share of the time in which it was busy of late",
                |cpu| f64::from(cpu.util) / 1024.0,
            ),
            ("cpu_busy", "1 if a task of ours is on it", |cpu| {
                f64::from(u8::from(cpu.running != 0))
            }),
            (
                "cpu_warm",
                "1 if it is busy or was within nest_idle_us",
                |cpu| f64::from(cpu.warm),
            ),
            (
                "cpu_queued_seconds",
                "Work that waits there, at full speed",
                |cpu| seconds(cpu.queued_ns),
            ),
        ];
        for (name, help, of) in gauges {
            let mut metric = to.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for cpu in &self.0.cpus.cpus {
                let labels = [("cpu", cpu.id.to_string())];
                metric.encode_family(&labels)?.encode_gauge(&of(cpu))?;
            }
        }
        Ok(())
    }

    /// Figures by cgroup: one of which some came and others went may become smaller
    /// when it is counted among the others, which Prometheus takes for a restart.
    fn cgroups(&self, to: &mut DescriptorEncoder) -> fmt::Result {
        let mut paths = Cgroups::default();
        let all = Report::new(
            (By::Cgroup, Order::default()),
            (usize::MAX, 0),
            &Filter::default(),
            &self.0.telemetry,
            None,
            |inode| paths.path(inode),
        );
        let mut cgroups: Vec<(Foreign, TaskStats)> = all
            .lines
            .iter()
            .take(MOST_CGROUPS)
            .map(|line| (line.cgroup.clone(), line.stats))
            .collect();
        let mut others = TaskStats::default();
        for line in all.lines.iter().skip(MOST_CGROUPS) {
            others.add(&line.stats);
        }
        if !others.is_zero() {
            cgroups.push(("other".into(), others));
        }
        for (i, stat) in TASK_STATS.iter().enumerate() {
            let (name, unit) = counter_of(stat.name, stat.is_time);
            let name = format!("cgroup_{name}");
            let mut metric = to.encode_descriptor(&name, stat.desc, unit, MetricType::Counter)?;
            for (path, stats) in &cgroups {
                let labels = [("cgroup", path.raw())];
                let mut family = metric.encode_family(&labels)?;
                let value = stats.values()[i];
                match unit {
                    Some(_) => {
                        family.encode_counter::<NoLabelSet, _, u64>(&seconds(value), None)?
                    }
                    None => family.encode_counter::<NoLabelSet, _, u64>(&value, None)?,
                }
            }
        }
        Ok(())
    }

    fn tasks(&self, to: &mut DescriptorEncoder) -> fmt::Result {
        let tasks = self.0.telemetry.tasks.len() as i64;
        to.encode_descriptor("tasks", "Tasks that there are", None, MetricType::Gauge)?
            .encode_gauge(&tasks)
    }

    fn inversions(&self, to: &mut DescriptorEncoder) -> fmt::Result {
        let Look { telemetry, .. } = &self.0;
        let ns = telemetry.total().stats.inversion_ns;
        let (buckets, count) = buckets(&telemetry.inversion_hist);
        let help = "Waits for a lock that a task of lesser weight held";
        let unit = Some(&Unit::Seconds);
        to.encode_descriptor("inversion_length", help, unit, MetricType::Histogram)?
            .encode_histogram::<NoLabelSet>(seconds(ns), count, &buckets, None)?;
        let help = "Time of them in which the holder was not on a CPU";
        to.encode_descriptor("inversion_holder_off", help, unit, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&seconds(telemetry.inversion_off_ns), None)
    }
}

/// Of a histogram in quarters of a doubling, one bucket for each doubling: its end in
/// seconds and its count, and the count of all. The last is open.
fn buckets(hist: &[u64]) -> (Vec<(f64, u64)>, u64) {
    let mut buckets: Vec<(f64, u64)> = BUCKETS.map(|bit| (seconds(1 << bit), 0)).collect();
    buckets.push((f64::INFINITY, 0));
    let mut all = 0;
    for (bucket, count) in histogram::buckets(hist) {
        // Where it ends: of these, too, each doubling begins one.
        let end = seconds(histogram::bucket_begins(bucket + 1));
        if let Some((_, sum)) = buckets.iter_mut().find(|(most, _)| end <= *most) {
            *sum += count;
        }
        all += count;
    }
    (buckets, all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::{Cpu, Cpus, Task, Telemetry};

    /// No cgroup here has such a number.
    const NOWHERE: u64 = u64::MAX;

    fn task(pid: u32, run_ns: u64) -> Task {
        Task {
            pid,
            cgroup: NOWHERE - u64::from(pid),
            stats: TaskStats {
                run_ns,
                inversion_ns: 1_500_000_000,
                migrated: 3,
                ..Default::default()
            },
            ..Default::default()
        }
    }

    fn look(tasks: u32) -> Look {
        Look {
            telemetry: Telemetry {
                tasks: (0..tasks)
                    .map(|i| task(i, u64::from(i + 1) * 1_000_000_000))
                    .collect(),
                inversion_hist: vec![40, 2, 127, 1],
                ..Default::default()
            },
            cpus: Cpus {
                cpus: vec![Cpu {
                    id: 3,
                    speed: 512,
                    ..Default::default()
                }],
            },
            metrics: crate::metrics::Metrics {
                wake: 7,
                ..Default::default()
            },
            locks: None,
        }
    }

    #[test]
    fn each_table_is_there_in_its_units() {
        let text = encode(look(1)).unwrap();
        for line in [
            "scx_freqlock_wake_total 7",
            "# HELP scx_freqlock_wake Woken tasks that needed a CPU",
            "scx_freqlock_cpu_speed_ratio{cpu=\"3\"} 0.5",
            "scx_freqlock_cgroup_run_seconds_total{cgroup=\"18446744073709551615\"} 1.0",
            "scx_freqlock_cgroup_migrated_total{cgroup=\"18446744073709551615\"} 3",
            "scx_freqlock_inversion_length_seconds_sum 1.5",
            "scx_freqlock_inversion_length_seconds_count 3",
            "scx_freqlock_inversion_length_seconds_bucket{le=\"+Inf\"} 3",
            "scx_freqlock_tasks 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in:\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn labels_are_bounded_and_nothing_is_lost() {
        let text = encode(look(200)).unwrap();
        let runs: Vec<f64> = text
            .lines()
            .filter(|l| l.starts_with("scx_freqlock_cgroup_run_seconds_total"))
            .map(|l| l.rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(runs.len(), MOST_CGROUPS + 1);
        assert_eq!(runs.iter().sum::<f64>(), (1..=200).sum::<u64>() as f64);
    }

    #[test]
    fn a_wait_is_in_the_bucket_in_which_it_ends() {
        let bucket_of = |ns: u64| {
            (0..128)
                .find(|b| ns < histogram::bucket_begins(b + 1))
                .unwrap()
        };
        let (buckets, all) = buckets(&[bucket_of(1_000_000), 5, bucket_of(1 << 40), 2]);
        let counts: Vec<_> = buckets.iter().filter(|(_, n)| *n > 0).collect();
        assert_eq!(counts, [&(seconds(1 << 20), 5), &(f64::INFINITY, 2)]);
        assert_eq!(all, 7);
    }

    #[test]
    fn the_dashboard_asks_for_what_there_is() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/services/grafana-dashboard.json"
        );
        let dashboard: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let text = encode(look(1)).unwrap();
        let mut asked = 0;
        for panel in dashboard["panels"].as_array().unwrap() {
            for target in panel["targets"].as_array().unwrap() {
                let expr = target["expr"].as_str().unwrap();
                for name in expr.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
                    if name.starts_with("scx_freqlock_") {
                        asked += 1;
                        let there = |l: &str| {
                            l.strip_prefix(name)
                                .is_some_and(|rest| rest.starts_with([' ', '{']))
                        };
                        assert!(text.lines().any(there), "{name}");
                    }
                }
            }
        }
        assert!(asked > 5);
    }
}
