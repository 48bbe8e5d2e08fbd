// SPDX-License-Identifier: GPL-2.0-only
//! One decision: what it is made by, wherever that comes from, and what comes out. Both the
//! scheduler and --replay decide here and nowhere else.

use crate::choice_log::ChoiceLog;
use anyhow::Result;
use freqlock::trace::format::DecidesBy;
use freqlock::trace::replay::{abi, Knobs, Machine};
use std::path::Path;

/// What a decision is made by.
pub struct Inputs {
    /// When, ns of CLOCK_MONOTONIC.
    pub at: u64,
    /// About which task.
    pub pid: u32,
    /// All but the candidates.
    pub decision: abi::rec_decision,
    /// Where the task could go.
    pub candidates: Vec<abi::rec_candidate>,
}

/// Decides on one machine, with one set of values of knobs.
pub struct Chooser {
    pub machine: Machine,
    pub knobs: Knobs,
    log: Option<ChoiceLog>,
}

impl Chooser {
    /// `log`: where each decision is written to.
    pub fn new(by: &DecidesBy, log: Option<&Path>) -> Result<Self> {
        Ok(Self {
            machine: Machine::new(by),
            knobs: Knobs::new(by),
            log: log.map(ChoiceLog::create).transpose()?,
        })
    }

    /// Makes it, and writes it down.
    pub fn choose(&mut self, inputs: &Inputs) -> Result<abi::replay_result> {
        let result = self
            .machine
            .decide(&self.knobs, &inputs.decision, &inputs.candidates);
        if let Some(log) = &mut self.log {
            log.write(inputs, &result)?;
        }
        Ok(result)
    }

    /// Writes out what is left of the log.
    pub fn finish(self) -> Result<()> {
        self.log.map_or(Ok(()), ChoiceLog::finish)
    }
}
