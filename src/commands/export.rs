// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock export`: the events of a trace, for other programs.

use crate::foreign;
use crate::output;
use crate::trace::format::Head;
use crate::trace::reader::{Item, Trace};
use anyhow::{Context, Result};
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

/// What is printed at a time, bytes.
const PART: usize = 1 << 16;

/// Print the events of a trace as CSV, by time
///
/// FILE is of `scx_freqlock record`; what `low` and `high` hold of each event, docs/TRACE.md
/// says. A gap is where events of the CPU are missing.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// Comma-separated values, with a line of names first
    #[arg(long, required = true)]
    pub csv: bool,

    /// The trace
    pub file: PathBuf,
}

/// Reads it and prints.
pub fn print(args: &ExportArgs) -> Result<()> {
    let cannot = || format!("cannot read {}", foreign::path(&args.file));
    let file = File::open(&args.file).with_context(cannot)?;
    let trace = Trace::open(BufReader::new(file)).with_context(cannot)?;
    let head = trace.head.clone();
    let mut text = String::from("time_ns,cpu,event,pid,low,high\n");
    trace.replay(|item| -> Result<()> {
        text += &line(&head, item);
        if text.len() >= PART {
            output::print(&text)?;
            text.clear();
        }
        Ok(())
    })?;
    Ok(output::print(&text)?)
}

fn line(head: &Head, item: Item) -> String {
    let event = match item {
        Item::Gap { cpu } => return format!(",{cpu},gap,,,\n"),
        Item::Event(event) => event,
    };
    let kind = match head.events.get(usize::from(event.kind)) {
        // Names are of letters; of a file that lies, the number.
        Some(name) if name.bytes().all(|c| c.is_ascii_lowercase() || c == b'-') => name.clone(),
        _ => event.kind.to_string(),
    };
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
