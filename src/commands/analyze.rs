// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock analyze`: what a trace says, as text.

use super::trace_files;
use crate::foreign;
use crate::output;
use crate::trace::analysis::Analysis;
use crate::trace::comparison::Comparison;
use crate::trace::plot::{self, bars, Picture, Speeds};
use crate::trace::replay::Change;
use crate::trace::what_if::WhatIf;
use anyhow::{Context, Result};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Print what a trace says: time of CPUs, waits, wake-ups by speed
///
/// It also says which tasks waited longest and who ran meanwhile. FILE is of
/// `scx_freqlock record`.
#[derive(Debug, clap::Args)]
pub struct AnalyzeArgs {
    /// The trace
    #[arg(required_unless_present_any = ["diff", "compared"])]
    pub file: Option<PathBuf>,

    /// Print the figures of two traces beside each other, with the change from A to B
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with = "file")]
    pub diff: Vec<PathBuf>,

    /// Print which decisions of mode auto would have been others with this value of a knob, and what
    /// was predicted of both; may be given several times. It takes a trace of `record --what-if`
    #[arg(long, value_name = "KNOB=VALUE", value_parser = Change::parse, conflicts_with_all = ["diff", "plot"])]
    pub what_if: Vec<Change>,

    /// Draw as well, into SVG and PNG files of this directory: speeds of CPUs, waits for CPUs and locks
    #[arg(long, value_name = "DIR", conflicts_with = "diff")]
    pub plot: Option<PathBuf>,

    /// Draw the ratios of a comparison as bars instead: the JSON that `compare --json` wrote
    #[arg(long, value_name = "JSON", requires = "plot", conflicts_with = "file")]
    pub compared: Option<PathBuf>,
}

/// Reads it and prints.
pub fn print(args: &AnalyzeArgs) -> Result<()> {
    if let [a, b] = &args.diff[..] {
        let (a, b) = (&of(a)?, &of(b)?);
        return Ok(output::print(Comparison { a, b }.to_string())?);
    }
    if let (Some(file), Some(dir)) = (&args.compared, &args.plot) {
        return draw_bars(file, dir);
    }
    let file = args.file.as_deref().context("no trace is named")?;
    if !args.what_if.is_empty() {
        let trace = trace_files::open(file)?;
        let said = WhatIf::of(trace, &args.what_if);
        let said = said.with_context(|| trace_files::cannot_read(file))?;
        return Ok(output::print(said.to_string())?);
    }
    match &args.plot {
        None => Ok(output::print(of(file)?.to_string())?),
        Some(dir) => draw(file, dir),
    }
}

fn draw(file: &Path, dir: &Path) -> Result<()> {
    let trace = trace_files::open(file)?;
    let end_ns = trace.end.as_ref().map_or(0, |end| end.end_ns);
    let mut speeds = Speeds::new(&trace.head);
    let analysis = Analysis::with(trace, |item| speeds.take(item))
        .with_context(|| trace_files::cannot_read(file))?;
    speeds.finish(end_ns);
    output::print(analysis.to_string())?;
    write(file, dir, &plot::pictures(&analysis, &speeds)?)
}

fn draw_bars(file: &Path, dir: &Path) -> Result<()> {
    let cannot = || trace_files::cannot_read(file);
    let json = fs::read_to_string(file).with_context(cannot)?;
    let picture = bars::picture(&json).with_context(cannot)?;
    let picture = picture.context("nothing stands beside the baseline")?;
    write(file, dir, &[picture])
}

/// Each picture as two files, of what was read from `file`.
fn write(file: &Path, dir: &Path, pictures: &[Picture]) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| trace_files::cannot_write(dir))?;
    for picture in pictures {
        for (end, bytes) in [("svg", picture.svg.as_bytes()), ("png", &picture.png)] {
            let to = dir.join(picture.name).with_extension(end);
            trace_files::write(file, &to, |out| {
                out.write_all(bytes)
                    .with_context(|| trace_files::cannot_write(&to))
            })?;
            output::say(format_args!("{} is drawn", foreign::path(&to)));
        }
    }
    Ok(())
}

fn of(file: &Path) -> Result<Analysis> {
    let trace = trace_files::open(file)?;
    Analysis::of(trace).with_context(|| trace_files::cannot_read(file))
}
