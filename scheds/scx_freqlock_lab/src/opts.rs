// SPDX-License-Identifier: GPL-2.0-only
//! The command line, and the knobs that it sets.

use anyhow::{bail, Result};
use clap::Parser;
use freqlock::knobs::{Knob, KnobArgs, Tunables, KNOBS};
use freqlock::mode::Mode;
use freqlock::trace::replay;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The knob that the lab has itself, beside those that placing goes by.
pub const SLICE: &str = "slice_us";

const EXIT_STATUS: &str = "\
Exit status:
  0  ended by a signal; with --replay, all decisions came out as they did
  1  with --replay, some came out otherwise
  2  wrong usage, or it could not be loaded, or the kernel ended it";

/// scx_freqlock's placement by predicted finish in user space, to step through it with a debugger
/// and to log each decision: for who changes it, and slow.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_STATUS)]
pub struct Opts {
    /// Write each decision to FILE, a line of JSON: what it was made by, what each candidate costs,
    /// and what came out
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,

    /// Schedule nothing, but make the decisions of this trace of `scx_freqlock record --what-if`
    /// again, and print whether they come out as they did
    #[arg(long, value_name = "TRACE")]
    pub replay: Option<PathBuf>,

    #[command(flatten)]
    pub knobs: KnobArgs,
}

impl Opts {
    /// Refuses knobs that would change nothing.
    pub fn check(&self) -> Result<()> {
        for knob in KNOBS {
            let is_read = replay::has_part(knob) || (knob.name == SLICE && self.replay.is_none());
            if self.knobs.has(knob.name) && !is_read {
                bail!("--{} changes nothing here", knob.flag);
            }
        }
        Ok(())
    }

    /// Those given, by name.
    pub fn given(&self) -> BTreeMap<String, u64> {
        self.values(|knob| self.knobs.has(knob.name))
    }

    /// All, by name.
    pub fn all(&self) -> BTreeMap<String, u64> {
        self.values(|_| true)
    }

    fn values(&self, is_wanted: impl Fn(&Knob) -> bool) -> BTreeMap<String, u64> {
        let mut tunables = Tunables::new(Mode::Auto);
        self.knobs.apply(&mut tunables);
        let wanted = KNOBS.iter().filter(|knob| is_wanted(knob));
        wanted
            .filter_map(|knob| Some((knob.name.to_string(), tunables.knob(knob.name)?)))
            .collect()
    }
}
