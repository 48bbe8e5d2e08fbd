// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock view`: a trace as a page, for a browser.

use super::trace_files;
use super::trace_server;
use crate::foreign;
use crate::http::Address;
use crate::output;
use crate::trace::viewer::{self, View};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Make a page of a trace for a browser: CPUs over time
///
/// They are coloured by speed, task or load. The page is one file that needs no network. It
/// zooms from all of the trace to single events, finds events, follows a task across CPUs, and
/// tells the time between two points. FILE is of `scx_freqlock record`. With --serve a trace of
/// any length is shown by a server, which gives the page the events of what is in sight.
#[derive(Debug, clap::Args)]
pub struct ViewArgs {
    /// The trace
    pub file: PathBuf,

    /// Offer this view in the page, too: a JSON file, as docs/TRACE.md describes
    #[arg(long = "view", value_name = "JSON")]
    pub views: Vec<PathBuf>,

    /// The page to write, for its owner alone [default: FILE.html]
    #[arg(short, long, value_name = "PAGE")]
    pub output: Option<PathBuf>,

    /// Serve the page by HTTP until Ctrl-C, at a secret address [default: a port of this machine that is free]
    #[arg(
        long,
        value_name = "ADDRESS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "0",
        conflicts_with = "output"
    )]
    pub serve: Option<Address>,
}

fn view(file: &Path) -> Result<View> {
    let cannot = || trace_files::cannot_read(file);
    let text = fs::read_to_string(file).with_context(cannot)?;
    serde_json::from_str(&text).with_context(cannot)
}

/// Reads it and writes, or serves.
pub fn make(args: &ViewArgs) -> Result<()> {
    let views: Result<Vec<View>> = args.views.iter().map(|file| view(file)).collect();
    let views = views?;
    let trace = trace_files::open(&args.file)?;
    if let Some(address) = &args.serve {
        return trace_server::serve(&args.file, trace, &views, address);
    }
    let to = args.output.clone().unwrap_or_else(|| {
        let mut name = OsString::from(&args.file);
        name.push(".html");
        name.into()
    });
    let mut done = None;
    trace_files::write(&args.file, &to, |out| {
        let written = viewer::write(trace, &views, out)
            .map_err(|failed| trace_files::explain(failed, &args.file, &foreign::path(&to)))?;
        done = Some(written);
        Ok(())
    })?;
    if let Some(done) = done {
        output::say(format_args!(
            "{} events of {} CPUs are in {}: open it in a browser",
            done.events,
            done.cpus,
            foreign::path(&to)
        ));
    }
    Ok(())
}
