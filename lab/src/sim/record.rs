// SPDX-License-Identifier: GPL-2.0-only
//! Reads what the plugin has written about a run, one JSON object to a line.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{}:{line}: {reason}", path.display())]
    Wrong {
        path: PathBuf,
        line: usize,
        reason: String,
    },
    #[error("{} has no {what}: the machine did not get as far", path.display())]
    Missing { path: PathBuf, what: &'static str },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Line {
    Totals(Totals),
    Cpu(Cpu),
    Speed(Change),
    /// A CPU begins to run or to idle: for scripts/draw-timelines.
    State {},
    Mark(Mark),
}

/// Sums over the whole run, from power on to power off.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Totals {
    pub guest_ns: u64,
    pub host_ns: u64,
    pub instructions: u64,
    pub energy_uj: u64,
    pub idle_skipped_ns: u64,
    /// Changes of speed and of state that were not written down.
    #[serde(default)]
    pub timeline_dropped: u64,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Cpu {
    pub cpu: u32,
    pub instructions: u64,
    pub busy_ns: u64,
    pub idle_ns: u64,
    pub energy_uj: u64,
    pub migrations: u64,
    /// Busy time at each speed.
    pub residency_ns: Vec<(u32, u64)>,
}

/// From `ns` on, `cpu` has this speed.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub struct Change {
    pub ns: u64,
    pub cpu: u32,
    pub speed: u32,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
struct Mark {
    name: String,
    value: u64,
    ns: u64,
    host_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub totals: Totals,
    pub cpus: Vec<Cpu>,
    pub changes: Vec<Change>,
    /// When the command began and ended.
    pub begin_ns: u64,
    pub end_ns: u64,
    /// The same by the host's time, from power on.
    pub begin_host_ns: u64,
    pub end_host_ns: u64,
    /// The guest's monotonic clock, and the machine's time as it was looked at, ns.
    pub clocks: Vec<(u64, u64)>,
}

impl Record {
    pub fn load(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
            path: path.into(),
            source,
        })?;
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        let mut totals = None;
        let mut cpus: Vec<Cpu> = Vec::new();
        let mut changes = Vec::new();
        let mut clocks = Vec::new();
        let (mut begin, mut end) = (None::<Mark>, None);
        for (number, line) in (1..).zip(text.lines()) {
            let line = serde_json::from_str(line).map_err(|error| Error::Wrong {
                path: path.into(),
                line: number,
                reason: error.to_string(),
            })?;
            match line {
                Line::Totals(line) => totals = Some(line),
                Line::Cpu(line) => cpus.push(line),
                Line::Speed(line) => changes.push(line),
                Line::State {} => {}
                Line::Mark(mark) if mark.name == "begin" => {
                    begin.get_or_insert(mark);
                }
                Line::Mark(mark) if mark.name == "end" => end = Some(mark),
                Line::Mark(mark) if mark.name == "clock" => clocks.push((mark.value, mark.ns)),
                // A command may set marks of its own.
                Line::Mark(_) => {}
            }
        }
        let missing = |what| Error::Missing {
            path: path.into(),
            what,
        };
        cpus.sort_by_key(|cpu| cpu.cpu);
        let begin = begin.ok_or_else(|| missing("mark of the command's begin"))?;
        let end = end.ok_or_else(|| missing("mark of the command's end"))?;
        Ok(Self {
            totals: totals.ok_or_else(|| missing("totals"))?,
            cpus,
            changes,
            begin_ns: begin.ns,
            end_ns: end.ns,
            begin_host_ns: begin.host_ns,
            end_host_ns: end.host_ns,
            clocks,
        })
    }

    /// The guest's monotonic clock at a time of the machine, ns, by the first and the last
    /// look at it, since a guest that measures its own ticks has them a little too long or
    /// too short; 0 before that clock began. None where it was not looked at twice.
    pub fn monotonic(&self, ns: u64) -> Option<u64> {
        let (first, last) = (self.clocks.first()?, self.clocks.last()?);
        let wide = |value: u64| i128::from(value);
        let length = wide(last.1) - wide(first.1);
        if length <= 0 {
            return None;
        }
        let since = (wide(ns) - wide(first.1)) * (wide(last.0) - wide(first.0)) / length;
        u64::try_from((wide(first.0) + since).max(0)).ok()
    }

    /// The guest's time that the command took.
    pub fn command_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }

    pub fn command_host_ns(&self) -> u64 {
        self.end_host_ns.saturating_sub(self.begin_host_ns)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub const LINES: &str = r#"{"kind":"speed","ns":0,"cpu":0,"speed":256}
{"kind":"speed","ns":0,"cpu":1,"speed":256}
{"kind":"mark","name":"begin","value":0,"ns":1000000,"host_ns":3}
{"kind":"state","ns":1500000,"cpu":1,"busy":true}
{"kind":"speed","ns":2000000,"cpu":1,"speed":1024}
{"kind":"mark","name":"half","value":1,"ns":2500000,"host_ns":4}
{"kind":"mark","name":"end","value":0,"ns":5000000,"host_ns":8}
{"kind":"cpu","cpu":1,"instructions":70,"busy_ns":6,"idle_ns":4,"energy_uj":5,"migrations":2,"residency_ns":[[256,1],[1024,5]]}
{"kind":"cpu","cpu":0,"instructions":30,"busy_ns":1,"idle_ns":9,"energy_uj":4,"migrations":0,"residency_ns":[[256,1],[1024,0]]}
{"kind":"totals","guest_ns":6000000,"host_ns":9,"instructions":100,"energy_uj":9,"idle_skipped_ns":3,"timeline_dropped":0,"tasks_forgotten":0}
"#;

    pub fn sample() -> Record {
        Record::parse(Path::new("r"), LINES).unwrap()
    }

    #[test]
    fn a_record_is_read_whole() {
        let record = sample();
        assert_eq!(record.command_ns(), 4_000_000);
        assert_eq!((record.begin_host_ns, record.command_host_ns()), (3, 5));
        assert_eq!(record.totals.instructions, 100);
        assert_eq!(
            record
                .cpus
                .iter()
                .map(|cpu| cpu.migrations)
                .collect::<Vec<_>>(),
            [0, 2]
        );
        assert_eq!(record.changes.len(), 3);
    }

    #[test]
    fn the_guests_clock_is_known_by_two_looks_at_it() {
        assert_eq!(sample().monotonic(0), None);
        let look = |value, ns| {
            format!(r#"{{"kind":"mark","name":"clock","value":{value},"ns":{ns},"host_ns":5}}"#)
        };
        let parse = |looks: &[String]| {
            Record::parse(Path::new("r"), &(looks.join("\n") + "\n" + LINES)).unwrap()
        };
        let looks = [look(1_000, 5_000), look(12_000, 15_000)];
        assert_eq!(parse(&looks[..1]).monotonic(5_000), None);
        let record = parse(&looks);
        let at = |ns| record.monotonic(ns).unwrap();
        assert_eq!(
            [5_000, 10_000, 15_000, 25_000].map(at),
            [1_000, 6_500, 12_000, 23_000]
        );
        assert_eq!(at(1_000), 0, "it had not begun");
    }

    #[test]
    fn what_is_wrong_or_missing_is_named() {
        let refuse = |text: &str| Record::parse(Path::new("r"), text).unwrap_err().to_string();
        assert!(refuse("{}\n").starts_with("r:1: "));
        assert!(refuse(&LINES.replace("\"speed\":1024", "\"sped\":1")).starts_with("r:5: "));
        assert!(refuse(&LINES.replace("\"end\"", "\"done\"")).contains("end"));
        let cut = &LINES[..LINES.find("{\"kind\":\"totals\"").unwrap()];
        assert!(refuse(cut).contains("no totals"));
    }
}
