// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock contexts`: what a file of contexts says.

use crate::context::{Contexts, DEFAULT_FILE};
use crate::foreign::Foreign;
use crate::output::{self, Format};
use crate::settings::text;
use comfy_table::{presets, ContentArrangement, Table};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The command line of `contexts`.
#[derive(Debug, clap::Args)]
pub struct ContextsArgs {
    /// The file to read.
    #[arg(default_value = DEFAULT_FILE, value_name = "FILE", help = None)]
    pub file: PathBuf,

    /// Text or JSON.
    #[command(flatten)]
    pub format: Format,
}

/// A context as it is listed.
#[derive(Debug, Serialize)]
struct Listed {
    /// By which `explain` names it.
    number: usize,
    line: usize,
    name: Option<Foreign>,
    /// Which tasks it is for, in words.
    r#match: Foreign,
    values: BTreeMap<&'static str, String>,
}

/// Reads a file and prints what it says, as the scheduler would take it.
pub fn print(args: &ContextsArgs) -> anyhow::Result<()> {
    let Contexts(contexts) = Contexts::load(&args.file)?;
    let listed = (1..).zip(&contexts).map(|(number, context)| Listed {
        number,
        line: context.line,
        name: context.name.clone(),
        r#match: context.rule.to_string().into(),
        values: (context.values.iter())
            .map(|value| (value.key, text(value.key, value.value)))
            .collect(),
    });
    output::show(args.format.json, &listed.collect::<Vec<_>>(), |listed| {
        table(listed)
    })
}

fn table(listed: &[Listed]) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(["", "line", "name", "match", "values"]);
    for context in listed {
        let values = context
            .values
            .iter()
            .map(|(key, value)| format!("{key}={value}"));
        table.add_row([
            context.number.to_string(),
            context.line.to_string(),
            (context.name.as_ref()).map_or(String::new(), ToString::to_string),
            context.r#match.to_string(),
            values.collect::<Vec<_>>().join(" "),
        ]);
    }
    format!("{table}\n")
}
