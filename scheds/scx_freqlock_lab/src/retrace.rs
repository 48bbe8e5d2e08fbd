// SPDX-License-Identifier: GPL-2.0-only
//! The decisions of a trace, which the BPF scheduler made, made again here: do both decide alike?

use crate::choice::{Chooser, Inputs};
use crate::opts::Opts;
use anyhow::{Context, Result};
use freqlock::commands::trace_files;
use freqlock::output;
use freqlock::trace::reader::Item;
use freqlock::trace::weighed::{Weighed, Weighing};
use freqlock::trace::what_if::{self, why, Failed};
use std::fmt::Write;
use std::path::Path;

/// Decisions that are shown one by one.
const SHOWN: usize = 10;

/// What came out.
#[derive(Default)]
struct Beside {
    alike: u64,
    differ: u64,
    /// Taken over from one shortly before.
    again: u64,
    /// The first that differ, a line each.
    shown: String,
}

/// True if all come out as they did.
pub fn retrace(path: &Path, opts: &Opts) -> Result<bool> {
    let cannot = || trace_files::cannot_read(path);
    let trace = trace_files::open(path)?;
    let mut by = what_if::decides_by(&trace.head)
        .with_context(cannot)?
        .clone();
    by.knobs.extend(opts.given());
    let begin = trace.head.begin_ns;
    let mut chooser = Chooser::new(&by, opts.log.as_deref())?;
    let mut weighing = Weighing::default();
    let mut beside = Beside::default();
    trace.replay(|item| {
        match item {
            Item::Gap { cpu } => weighing.gap(cpu),
            Item::Event(event) => {
                if let Some(weighed) = weighing.take(&event) {
                    beside.take(&mut chooser, weighed, begin)?;
                }
            }
        }
        Ok::<_, anyhow::Error>(())
    })?;
    chooser.finish()?;
    let Beside {
        alike,
        differ,
        again,
        shown,
    } = &beside;
    if alike + differ == 0 {
        return Err(Failed::None).with_context(cannot);
    }
    output::print(format!(
        "{} decisions: {alike} come out as they did, {differ} differ\n\
         {again} more were taken over from one shortly before, and {} are incomplete: those are not made again\n{shown}",
        alike + differ,
        weighing.cut
    ))?;
    Ok(*differ == 0)
}

impl Beside {
    fn take(&mut self, chooser: &mut Chooser, weighed: Weighed, begin: u64) -> Result<()> {
        if weighed.is_again() {
            self.again += 1;
            return Ok(());
        }
        let inputs = Inputs {
            at: weighed.time,
            pid: weighed.pid,
            decision: weighed.decision,
            candidates: weighed.candidates,
        };
        let result = chooser.choose(&inputs)?;
        if result.best == weighed.chosen {
            self.alike += 1;
            return Ok(());
        }
        self.differ += 1;
        if self.differ <= SHOWN as u64 {
            writeln!(
                self.shown,
                "  {} ns  task {}: CPU {} was chosen, and here CPU {}, {}",
                weighed.time.saturating_sub(begin),
                weighed.pid,
                weighed.chosen,
                result.best,
                why(result.why)
            )?;
        }
        Ok(())
    }
}
