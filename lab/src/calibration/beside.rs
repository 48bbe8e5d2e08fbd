// SPDX-License-Identifier: GPL-2.0-only
//! Two sources of the model's values beside each other, and whether each is within what
//! bench/calibrate/tolerances.toml allows.

use comfy_table::{presets, Table};
use serde::Deserialize;

use super::value::Value;
use crate::sim::description::with_line;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tolerances {
    /// When they were written down.
    pub date: String,
    #[serde(rename = "thing")]
    things: Vec<Tolerance>,
}

/// In per cent of the second value.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Tolerance {
    name: String,
    model: f64,
    round_trip: Option<f64>,
    /// A smaller difference is none, in the unit of the value.
    least: f64,
    why: String,
}

/// What stands beside the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// The same program on the simulated machine that was fitted.
    Model,
    /// The description of the machine that was measured.
    Description,
}

impl Tolerances {
    pub fn parse(text: &str) -> Result<Self, String> {
        let all: Self = toml::from_str(text).map_err(|error| with_line(&error, text))?;
        match all.things.iter().find(|thing| thing.why.trim().is_empty()) {
            Some(thing) => Err(format!("{} has no reason", thing.name)),
            None => Ok(all),
        }
    }

    /// Per cent, and the least that counts.
    fn of(&self, thing: &str, other: Other) -> Option<(f64, f64)> {
        let found = self.things.iter().find(|of| of.name == thing)?;
        let percent = match other {
            Other::Model => Some(found.model),
            Other::Description => found.round_trip,
        };
        Some((percent?, found.least))
    }
}

pub struct Beside {
    table: Table,
    pub outside: usize,
    inside: usize,
    /// A line for each thing that only one of them has.
    missing: Vec<String>,
}

impl Beside {
    pub fn new(
        measured: &[Value],
        others: &[Value],
        other: Other,
        tolerances: &Tolerances,
    ) -> Self {
        let mut table = Table::new();
        let head = match other {
            Other::Model => "model",
            Other::Description => "description",
        };
        table
            .load_style(presets::ASCII_MARKDOWN)
            .set_header(["what", "unit", "measured", head, "off by", "may be", ""]);
        let mut beside = Self {
            table,
            outside: 0,
            inside: 0,
            missing: Vec::new(),
        };
        for of in measured {
            beside.add(of, others, other, tolerances);
        }
        beside
    }

    fn add(&mut self, of: &Value, others: &[Value], other: Other, tolerances: &Tolerances) {
        let name = [of.thing, &of.of].join(" ").trim_end().to_string();
        let found = others
            .iter()
            .find(|v| (v.thing, &v.of) == (of.thing, &of.of));
        let (value, beside) = match (&of.value, found.map(|found| &found.value)) {
            (Err(why), _) => return self.missing.push(format!("{name}: not measured: {why}")),
            (Ok(_), Some(Err(why))) => {
                return self
                    .missing
                    .push(format!("{name}: not in the model: {why}"))
            }
            // A description has no such value.
            (Ok(_), None) => return,
            (Ok(value), Some(Ok(beside))) => (*value, *beside),
        };
        let Some((percent, least)) = tolerances.of(of.thing, other) else {
            return self
                .missing
                .push(format!("{name}: no tolerance was written down"));
        };
        let off = (value - beside).abs();
        let inside = off <= least || off <= beside.abs() * percent / 100.0;
        if inside {
            self.inside += 1;
        } else {
            self.outside += 1;
        }
        let share = match beside {
            0.0 => format!("{off:.2} {}", of.unit),
            _ => format!("{:.1}%", 100.0 * off / beside.abs()),
        };
        self.table.add_row([
            name,
            of.unit.into(),
            format!("{value:.2}"),
            format!("{beside:.2}"),
            share,
            format!("{percent}%"),
            if inside { "inside" } else { "OUTSIDE" }.into(),
        ]);
    }

    /// For people.
    pub fn text(&self, tolerances: &Tolerances) -> String {
        let missing: String = self
            .missing
            .iter()
            .map(|line| format!("{line}\n"))
            .collect();
        format!(
            "{}\n{missing}{} inside, {} outside the tolerances of {}\n",
            self.table, self.inside, self.outside, tolerances.date
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(value: Result<f64, &str>) -> Vec<Value> {
        vec![Value {
            thing: "ramp",
            of: String::new(),
            unit: "ms",
            value: value.map_err(Into::into),
        }]
    }

    #[test]
    fn a_difference_is_inside_or_outside() {
        let tolerances = Tolerances::parse(
            "date = \"2026-01-01\"\n[[thing]]\nname = \"ramp\"\nmodel = 20\nround-trip = 5\nleast = 0.1\nwhy = \"x\"\n",
        )
        .unwrap();
        for (measured, other, kind, outside) in [
            (10.4, 10.0, Other::Description, 0),
            (10.6, 10.0, Other::Description, 1),
            (9.4, 10.0, Other::Description, 1),
            (10.6, 10.0, Other::Model, 0),
            (0.1, 0.0, Other::Model, 0),
            (0.2, 0.0, Other::Model, 1),
        ] {
            let beside = Beside::new(&value(Ok(measured)), &value(Ok(other)), kind, &tolerances);
            assert_eq!(beside.outside, outside, "{measured} beside {other}");
        }
        let beside = Beside::new(
            &value(Err("a VM")),
            &value(Ok(1.0)),
            Other::Model,
            &tolerances,
        );
        let text = beside.text(&tolerances);
        assert!(
            text.contains("ramp: not measured: a VM\n0 inside, 0 outside"),
            "{text}"
        );
    }

    #[test]
    fn each_tolerance_that_is_written_down_has_a_reason() {
        let text = include_str!("../../../bench/calibrate/tolerances.toml");
        Tolerances::parse(text).unwrap();
        assert!(Tolerances::parse(&text.replace("why = \"a count", "why = \"\" #")).is_err());
    }
}
