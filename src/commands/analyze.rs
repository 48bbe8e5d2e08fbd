// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock analyze`: what a trace says, as text.

use crate::foreign;
use crate::output;
use crate::trace::analysis::Analysis;
use crate::trace::reader::Trace;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

/// Print what a trace says: time of CPUs, waits, wake-ups by speed
///
/// It also says which tasks waited longest and who ran meanwhile. FILE is of
/// `scx_freqlock record`.
#[derive(Debug, clap::Args)]
pub struct AnalyzeArgs {
    /// The trace
    pub file: PathBuf,
}

/// Reads it and prints.
pub fn print(args: &AnalyzeArgs) -> Result<()> {
    let cannot = || format!("cannot read {}", foreign::path(&args.file));
    let file = File::open(&args.file).with_context(cannot)?;
    let trace = Trace::open(BufReader::new(file)).with_context(cannot)?;
    let analysis = Analysis::of(trace).with_context(cannot)?;
    Ok(output::print(analysis.to_string())?)
}
