// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock export`: the events of a trace, for other programs.

use super::trace_files;
use crate::foreign;
use crate::output;
use crate::trace::format::Head;
use crate::trace::reader::Item;
use crate::trace::{parquet, perfetto};
use anyhow::{Context, Result};
use std::io::Write;
use std::path::{Path, PathBuf};

/// What is printed at a time, bytes.
const PART: usize = 1 << 16;

/// Write the events of a trace as CSV, as Parquet, or for Perfetto
///
/// FILE is of `scx_freqlock record`; what `low` and `high` hold of each event, docs/TRACE.md
/// says. In CSV and Parquet a gap is where events of the CPU are missing. Perfetto's file is for
/// ui.perfetto.dev and its trace_processor.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("form").required(true))]
pub struct ExportArgs {
    /// Comma-separated values by time, with a line of names first
    #[arg(long, group = "form")]
    pub csv: bool,

    /// Perfetto's protobuf: switches, wake-ups, frequencies, names of tasks
    #[arg(long, group = "form")]
    pub perfetto: bool,

    /// A table in Apache Parquet's format, with the columns of CSV
    #[arg(long, group = "form")]
    pub parquet: bool,

    /// The trace
    pub file: PathBuf,

    /// The file to write, for its owner alone [default: standard output]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
}

/// Reads it and writes.
pub fn print(args: &ExportArgs) -> Result<()> {
    match (args.csv, &args.output) {
        (true, None) => csv(&args.file, |text| Ok(output::print(text)?)),
        (true, Some(to)) => trace_files::write(&args.file, to, |out| {
            csv(&args.file, |text| {
                out.write_all(text.as_bytes())
                    .with_context(|| trace_files::cannot_write(to))
            })
        }),
        (false, None) => trace_files::write_out(|out| packed(args, out, "standard output")),
        (false, Some(to)) => {
            trace_files::write(&args.file, to, |out| packed(args, out, &foreign::path(to)))
        }
    }
}

/// What is no text.
fn packed(args: &ExportArgs, out: &mut impl Write, to: &str) -> Result<()> {
    let trace = trace_files::open(&args.file)?;
    let done = match args.parquet {
        true => parquet::write(trace, out),
        false => perfetto::write(trace, out),
    };
    done.map_err(|failed| trace_files::explain(failed, &args.file, to))
}

fn csv(file: &Path, mut take: impl FnMut(&str) -> Result<()>) -> Result<()> {
    let trace = trace_files::open(file)?;
    let head = trace.head.clone();
    let mut text = String::from("time_ns,cpu,event,pid,low,high\n");
    trace.replay(|item| -> Result<()> {
        text += &line(&head, item);
        if text.len() >= PART {
            take(&text)?;
            text.clear();
        }
        Ok(())
    })?;
    take(&text)
}

fn line(head: &Head, item: Item) -> String {
    let event = match item {
        Item::Gap { cpu } => return format!(",{cpu},gap,,,\n"),
        Item::Event(event) => event,
    };
    let kind = head.kind(event.kind);
    let (time, cpu, pid) = (event.time, event.cpu, event.pid);
    format!(
        "{time},{cpu},{kind},{pid},{},{}\n",
        event.low(),
        event.high()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::format::Event;

    #[test]
    fn an_event_is_a_line_of_six_fields_whatever_its_name_is() {
        let event = Event {
            time: 12,
            pid: 3,
            kind: 1,
            cpu: 4,
            arg: 5 << 32 | 6,
        };
        let with = |names: &[&str]| Head {
            events: names.iter().map(ToString::to_string).collect(),
            ..Head::default()
        };
        let of = |names: &[&str]| line(&with(names), Item::Event(event));
        assert_eq!(of(&["fork", "idle-end"]), "12,4,idle-end,3,6,5\n");
        assert_eq!(of(&["fork", "a,\"b\n"]), "12,4,1,3,6,5\n");
        assert_eq!(of(&[]), "12,4,1,3,6,5\n");
        assert_eq!(line(&with(&[]), Item::Gap { cpu: 7 }), ",7,gap,,,\n");
    }
}
