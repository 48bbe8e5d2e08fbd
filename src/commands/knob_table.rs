// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock knobs`: the table of knobs, for people and as JSON. It needs no scheduler.

use crate::knobs::{Tunables, KNOBS};
use crate::mode::Mode;
use crate::output::{self, Format};
use crate::settings::{text, MODE};
use crate::units::wrapped;
use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;

/// A knob, or the mode, as it is listed.
#[derive(Debug, Serialize)]
struct Entry {
    name: &'static str,
    /// Of the command line, without its dashes.
    flag: &'static str,
    unit: &'static str,
    /// Of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<(u64, u64)>,
    /// Of a name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<&'static str>,
    default: String,
    /// Whether it can be changed while the scheduler runs.
    live: bool,
    /// Whether a context can set it for its tasks.
    by_context: bool,
    meaning: String,
}

/// Prints every knob: unit, range, default, when it can change, what it means.
pub fn print(format: &Format) -> Result<()> {
    let width = output::width();
    output::show(format.json, &entries(), |entries| table(entries, width))
}

fn entries() -> Vec<Entry> {
    let mode = Entry {
        name: MODE,
        flag: MODE,
        unit: "name",
        range: None,
        values: Mode::value_variants().iter().map(|m| m.name()).collect(),
        default: text(MODE, Tunables::new(Mode::Auto).mode),
        live: true,
        by_context: true,
        meaning: "Where forked and woken tasks go".into(),
    };
    let knobs = KNOBS.iter().map(|knob| Entry {
        name: knob.name,
        flag: knob.flag,
        unit: knob.unit,
        range: Some((knob.min, knob.max)),
        values: Vec::new(),
        default: knob.default.to_string(),
        live: knob.live,
        by_context: knob.task,
        meaning: knob.meaning.into(),
    });
    std::iter::once(mode).chain(knobs).collect()
}

/// A line of figures each, and what it means below.
fn table(entries: &[Entry], width: usize) -> String {
    let line = |name: &str, unit: &str, range: &str, default: &str, changes: &str| {
        format!("{name:<18} {unit:<7} {range:<17} {default:<10} {changes}")
    };
    let mut table = line("name", "unit", "range", "default", "changes") + "\n";
    for entry in entries {
        let range = (entry.range).map_or("below".into(), |(min, max)| format!("{min}..{max}"));
        let changes = match (entry.live, entry.by_context) {
            (_, true) => "live, by context",
            (true, _) => "live",
            _ => "at start",
        };
        let line = line(entry.name, entry.unit, &range, &entry.default, changes);
        let values = match &entry.values[..] {
            [] => String::new(),
            values => format!(": {}", values.join(", ")),
        };
        let meaning = format!("{}{values}", entry.meaning);
        table += &format!("{line}\n{}", wrapped(&meaning, 4, width));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_knob_is_listed_within_the_width() {
        let table = table(&entries(), 80);
        for line in table.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        for knob in KNOBS {
            assert!(
                table.contains(&format!("\n{} ", knob.name)),
                "{}",
                knob.name
            );
        }
        assert!(
            table.contains(": off, ") || table.contains(", off"),
            "modes: {table}"
        );
    }
}
