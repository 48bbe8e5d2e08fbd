// SPDX-License-Identifier: GPL-2.0-only
//! Reports of trials: each decision as a line, and all of it as a table.

use crate::units::utc;
use comfy_table::{presets, Table};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What became of one trial. Scores are medians of its slots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Seconds since 1970.
    pub at: u64,
    /// The number of the context; 0 for tasks in none.
    pub number: u32,
    /// The name of the context as people have it.
    pub context: String,
    /// The mode that was in force.
    pub incumbent: String,
    /// The mode that was tried against it.
    pub candidate: String,
    /// Whether the candidate took its place.
    pub taken: bool,
    /// The verdict in words.
    pub why: String,
    /// Pairs of slots that were counted.
    pub pairs: usize,
    /// Slots that were not counted.
    pub void: usize,
    /// Time for a unit of work, 1 at best.
    pub incumbent_score: Option<f64>,
    /// The candidate's, likewise.
    pub candidate_score: Option<f64>,
    /// Median of the candidate's score over the incumbent's, by pairs: below 1 it is better.
    pub ratio: Option<f64>,
    /// The 95% interval of that median; none of fewer than 6 pairs.
    pub interval: Option<(f64, f64)>,
}

/// A context, or the tasks in none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContextState {
    /// The number of the context; 0 for tasks in none.
    pub number: u32,
    /// What people call it.
    pub name: String,
    /// The best mode so far.
    pub mode: String,
    /// The one without --adapt.
    pub given: String,
    /// The candidate; none while nothing is on trial here.
    pub on_trial: Option<String>,
    /// CPUs at full speed that do its work, of late; none if it takes no part.
    pub load: Option<f64>,
    /// Time for a unit of work, of late; none if there was too little.
    pub score: Option<f64>,
    /// What goes on: a trial, a rest, or why there is neither.
    pub state: String,
}

/// The answer to `adapt`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Candidates; for each context its given mode is one too.
    pub modes: Vec<String>,
    /// Length of a slot, ms.
    pub slot_ms: u64,
    /// How much better a candidate must be to take over, 0..=1.
    pub margin: f64,
    /// The most of the time that trials may take, 0..=1.
    pub share: f64,
    /// The tasks in no context first.
    pub contexts: Vec<ContextState>,
    /// Oldest first.
    pub decisions: Vec<Decision>,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (kept, left) = match self.taken {
            true => (&self.candidate, &self.incumbent),
            false => (&self.incumbent, &self.candidate),
        };
        write!(f, "{}: {kept}, not {left}: {} ", self.context, self.why)?;
        write!(f, "{}", self.why_in_numbers())
    }
}

impl Decision {
    fn why_in_numbers(&self) -> String {
        let (Some(ratio), Some(incumbent), Some(candidate)) =
            (self.ratio, self.incumbent_score, self.candidate_score)
        else {
            return "(nothing was counted)".into();
        };
        let interval = (self.interval).map_or(String::new(), |(low, high)| {
            format!(", {low:.3} .. {high:.3}")
        });
        let (old, new) = (&self.incumbent, &self.candidate);
        format!("(time for work: {old} {incumbent:.3}, {new} {candidate:.3}, ratio {ratio:.3}{interval})")
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(
            f,
            "modes {}; slots of {} ms; kept if better by {:.0}%; trials at most {:.0}% of the time",
            self.modes.join(", "),
            self.slot_ms,
            100.0 * self.margin,
            100.0 * self.share
        )?;
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header([
            "context",
            "mode",
            "given",
            "load",
            "time for work",
            "now",
        ]);
        let number = |n: Option<f64>| n.map_or(String::new(), |n| format!("{n:.3}"));
        for context in &self.contexts {
            table.add_row([
                &context.name,
                &context.mode,
                &context.given,
                &number(context.load),
                &number(context.score),
                &context.state,
            ]);
        }
        writeln!(f, "{table}")?;
        for decision in &self.decisions {
            writeln!(f, "{} {decision}", utc(decision.at))?;
        }
        Ok(())
    }
}
