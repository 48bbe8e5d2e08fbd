// SPDX-License-Identifier: GPL-2.0-only
//! The files of a campaign's report: Markdown and a page for people, CSV and JSON for programs.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::archive::Archive;
use super::rows::Table;
use super::{csv, gain_plot, markdown, sortable_page};

const NAME: &str = "BENCHMARKS";

/// Below where the page goes.
const ARCHIVES: &str = "benchmarks";

/// Changes when a reader of the JSON would have to change.
const FORMAT: u32 = 1;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Draw(#[from] gain_plot::Error),
    #[error("cannot write the runs as JSON")]
    Json(#[from] serde_json::Error),
}

/// All that was measured, and what it says.
#[derive(Serialize)]
struct Whole<'a> {
    format: u32,
    method: &'static str,
    #[serde(flatten)]
    table: &'a Table,
}

pub fn write(table: &Table, to: &Path) -> Result<(), Error> {
    let whole = Whole {
        format: FORMAT,
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

/// The Markdown with a line that says which file has the runs of it.
pub fn page(table: &Table, campaign: &str) -> String {
    format!(
        "{}\nAll runs are in [{ARCHIVES}/{campaign}.json]({ARCHIVES}/{campaign}.json), and `cargo test -p freqlock_lab` holds this page against them.\n",
        markdown::text(table)
    )
}

/// What a repository keeps: the page, and the runs that it can be written from again.
pub fn keep(table: &Table, archive: &Archive, campaign: &str, to: &Path) -> Result<(), Error> {
    let runs = to.join(ARCHIVES).join(campaign).with_extension("json");
    let page_path = to.join(NAME).with_extension("md");
    let written = std::fs::create_dir_all(to.join(ARCHIVES));
    written.map_err(|source| Error::Write {
        path: to.join(ARCHIVES),
        source,
    })?;
    for (path, text) in [(runs, archive.text()?), (page_path, page(table, campaign))] {
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
