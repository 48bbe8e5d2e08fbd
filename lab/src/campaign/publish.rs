// SPDX-License-Identifier: GPL-2.0-only
//! The files of a campaign's report: Markdown and a page for people, CSV and JSON for programs.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::rows::Table;
use super::{csv, gain_plot, markdown, sortable_page};

const NAME: &str = "BENCHMARKS";

/// Changes when a reader of the JSON would have to change.
const FORMAT: u32 = 1;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Draw(#[from] gain_plot::Error),
}

/// All that was measured, and what it says.
#[derive(Serialize)]
struct Whole<'a> {
    format: u32,
    version: &'static str,
    method: &'static str,
    #[serde(flatten)]
    table: &'a Table,
}

pub fn write(table: &Table, to: &Path) -> Result<(), Error> {
    let whole = Whole {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION"),
        method: markdown::METHOD,
        table,
    };
    let json = |path: &Path| -> Result<String, Error> {
        serde_json::to_string_pretty(&whole).map_err(|error| Error::Write {
            path: path.into(),
            source: error.into(),
        })
    };
    for kind in ["json", "csv", "md", "html"] {
        let path = to.join(NAME).with_extension(kind);
        let text = match kind {
            "json" => json(&path)? + "\n",
            "csv" => csv::text(table),
            "md" => markdown::text(table),
            _ => sortable_page::text(table)?,
        };
        replace(&path, &text).map_err(|source| Error::Write { path, source })?;
    }
    Ok(())
}

/// What was there stays as a whole where there is no room for the new one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("new");
    let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, path));
    written.inspect_err(|_| {
        std::fs::remove_file(&new).ok();
    })
}
