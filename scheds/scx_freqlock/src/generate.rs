// SPDX-License-Identifier: GPL-2.0-only
//! Manual pages and shell completions, made of the command line's definitions
//! and of the table of knobs. `meson install` calls this; users need not.

use crate::opts::{self, GenerateOpts, Generated};
use crate::{contexts_page, examples};
use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;
use clap_mangen::roff::{bold, italic, roman, Roff};
use clap_mangen::Man;
use freqlock::knobs::KNOBS;
use freqlock::output;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

const NAME: &str = env!("CARGO_PKG_NAME");

pub fn run(opts: &GenerateOpts) -> Result<()> {
    match &opts.what {
        Generated::Man { dir } => {
            let mut cmd = opts::command();
            cmd.build();
            let [commands, files] = ["man1", "man5"].map(|section| dir.join(section));
            for dir in [&commands, &files] {
                let cannot = || format!("cannot make {}", dir.display());
                std::fs::create_dir_all(dir).with_context(cannot)?;
            }
            write_pages(&cmd, &commands)?;
            let page = contexts_page::page();
            write(&files.join(format!("{NAME}-contexts.5")), |to| {
                page.to_writer(to)
            })
        }
        Generated::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(
                *shell,
                &mut without_hidden(&opts::command()),
                NAME,
                &mut text,
            );
            if *shell == Shell::Fish {
                text.extend(fish_values().into_bytes());
            }
            Ok(output::pass_on(&text)?)
        }
    }
}

/// Values of arguments without a flag, which the completions of fish leave out.
fn fish_values() -> String {
    let cmd = opts::command();
    let mut text = String::new();
    for sub in shown(&cmd) {
        let values = sub
            .get_positionals()
            .flat_map(|arg| arg.get_possible_values());
        let values: Vec<String> = values.map(|value| value.get_name().into()).collect();
        if !values.is_empty() {
            text += &format!(
                "complete -c {NAME} -n \"__fish_{NAME}_using_subcommand {}\" -f -a \"{}\"\n",
                sub.get_name(),
                values.join(" ")
            );
        }
    }
    text
}

/// The same command for completions, which name hidden commands and flags otherwise.
fn without_hidden(cmd: &Command) -> Command {
    Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .args(cmd.get_arguments().filter(|arg| !arg.is_hide_set()))
        .subcommands(shown(cmd))
}

fn shown(cmd: &Command) -> impl Iterator<Item = &Command> {
    cmd.get_subcommands().filter(|cmd| !cmd.is_hide_set())
}

fn write_pages(cmd: &Command, dir: &Path) -> Result<()> {
    let name = cmd.get_display_name().unwrap_or(NAME);
    write(&dir.join(format!("{name}.1")), |to| page(cmd, name, to))?;
    shown(cmd).try_for_each(|cmd| write_pages(cmd, dir))
}

fn write(path: &Path, page: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let mut to = BufWriter::new(File::create(path).with_context(cannot)?);
    page(&mut to).and_then(|()| to.flush()).with_context(cannot)
}

fn page(cmd: &Command, name: &str, to: &mut dyn Write) -> io::Result<()> {
    let man = Man::new(cmd.clone());
    // By hand: no date, so that each build makes the same, and the manual's own
    // writer cannot leave one out.
    let version = env!("CARGO_PKG_VERSION");
    writeln!(
        to,
        r#".TH {name} 1 "" "scx_freqlock {version}" "scx_freqlock""#
    )?;
    man.render_name_section(to)?;
    synopsis(cmd).to_writer(to)?;
    man.render_description_section(to)?;
    if cmd.get_arguments().any(|arg| !arg.is_hide_set()) {
        man.render_options_section(to)?;
    }
    if shown(cmd).next().is_some() {
        man.render_subcommands_section(to)?;
    }
    if name == "scx_freqlock-knobs" {
        knobs().to_writer(to)?;
    }
    if let Some(text) = (cmd.get_after_long_help()).or(cmd.get_after_help()) {
        after(&text.to_string()).to_writer(to)?;
    }
    if name == NAME {
        files().to_writer(to)?;
    }
    examples(name).to_writer(to)?;
    see_also(cmd, name).to_writer(to)
}

/// The usage, without what fifty flags of knobs would make of it.
fn synopsis(cmd: &Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    let usage = cmd.clone().render_usage().to_string();
    for (number, line) in usage.trim_start_matches("Usage:").lines().enumerate() {
        if number > 0 {
            roff.control("br", []);
        }
        roff.text([bold(line.trim())]);
    }
    roff
}

/// The table of bpf/knobs.h.
fn knobs() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["KNOBS"]);
    roff.text([roman(
        "Each is a flag of scx_freqlock too, with dashes for underscores. Those that are \
         live can be changed while the scheduler runs.",
    )]);
    for knob in KNOBS {
        let when = if knob.live { "live" } else { "read at start" };
        let values = format!(
            " ({}, {} to {}, default {}, {when})",
            knob.unit, knob.min, knob.max, knob.default
        );
        roff.control("TP", []);
        roff.text([bold(knob.name), roman(values)]);
        roff.text([roman(format!("{}.", knob.meaning))]);
    }
    roff
}

/// What stands at the end of --help: a heading or none, paragraphs, and lines of
/// values that are set in by two.
fn after(text: &str) -> Roff {
    let (heading, text) = match text.strip_prefix("Exit status:") {
        Some(text) => ("EXIT STATUS", text),
        None => ("NOTES", text),
    };
    let mut roff = Roff::new();
    roff.control("SH", [heading]);
    for line in text.lines() {
        match line
            .strip_prefix("  ")
            .and_then(|line| line.split_once("  "))
        {
            Some((value, meaning)) => {
                roff.control("TP", []);
                roff.text([bold(value)]);
                roff.text([roman(meaning)]);
            }
            None if !line.trim().is_empty() => {
                roff.text([roman(line.trim())]);
            }
            // The first line is what stood beside the heading.
            None if roff.to_roff().lines().count() > 1 => {
                roff.control("PP", []);
            }
            None => {}
        }
    }
    roff
}

fn files() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["FILES"]);
    for (path, what) in [
        (
            "/etc/default/scx_freqlock",
            "SCX_FLAGS, the flags with which scx_freqlock.service starts the scheduler.",
        ),
        (
            freqlock::context::DEFAULT_FILE,
            "Contexts, where --contexts names no other file.",
        ),
        (
            freqlock::control::SOCKET,
            "Where the running scheduler is asked for its knobs, by root alone.",
        ),
        (
            "/run/scx/root/stats",
            "Its statistics, for --monitor and other clients of scx_stats, by root alone.",
        ),
    ] {
        roff.control("TP", []);
        roff.text([italic(path)]);
        roff.text([roman(what)]);
    }
    roff
}

/// Nothing for a page without any.
fn examples(name: &str) -> Roff {
    let mut roff = Roff::new();
    let examples = examples::of(name);
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]);
    }
    for (line, what) in examples {
        roff.control("TP", []);
        roff.text([bold(*line)]);
        roff.text([roman(*what)]);
    }
    roff
}

/// Pages that are about the file of contexts.
const OF_CONTEXTS: [&str; 4] = [
    NAME,
    "scx_freqlock-contexts",
    "scx_freqlock-explain",
    "scx_freqlock-reload",
];

fn see_also(cmd: &Command, name: &str) -> Roff {
    let mut pages: Vec<_> = shown(cmd)
        .filter_map(Command::get_display_name)
        .map(|name| (name, 1))
        .collect();
    if name != NAME {
        pages.insert(0, (NAME, 1));
    }
    if OF_CONTEXTS.contains(&name) {
        pages.push(("scx_freqlock-contexts", 5));
    }
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"]);
    for (number, (name, section)) in pages.iter().enumerate() {
        let comma = if number + 1 < pages.len() { "," } else { "" };
        roff.text([bold(*name), roman(format!("({section}){comma}"))]);
    }
    roff
}
