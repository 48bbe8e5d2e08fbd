// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock analyze`: what a trace says, as text.

use super::trace_files;
use crate::output;
use crate::trace::analysis::Analysis;
use crate::trace::comparison::Comparison;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Print what a trace says: time of CPUs, waits, wake-ups by speed
///
/// It also says which tasks waited longest and who ran meanwhile. FILE is of
/// `scx_freqlock record`.
#[derive(Debug, clap::Args)]
pub struct AnalyzeArgs {
    /// The trace
    #[arg(required_unless_present = "diff")]
    pub file: Option<PathBuf>,

    /// Print the figures of two traces beside each other, with the change from A to B
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with = "file")]
    pub diff: Vec<PathBuf>,
}

/// Reads it and prints.
pub fn print(args: &AnalyzeArgs) -> Result<()> {
    if let [a, b] = &args.diff[..] {
        let (a, b) = (&of(a)?, &of(b)?);
        return Ok(output::print(Comparison { a, b }.to_string())?);
    }
    let file = args.file.as_deref().context("no trace is named")?;
    Ok(output::print(of(file)?.to_string())?)
}

fn of(file: &Path) -> Result<Analysis> {
    let trace = trace_files::open(file)?;
    Analysis::of(trace).with_context(|| trace_files::cannot_read(file))
}
