// SPDX-License-Identifier: GPL-2.0-only
//! The page. All that came from a trace is data: JSON and packed numbers in script elements
//! of no executable type, in which no markup can begin. Which script may run, its digest says.

use super::super::reader::Trace;
use super::super::Kind;
use super::lanes::{Lane, Lanes, FULL};
use super::tiles::{byte, Level};
use crate::foreign;
use crate::units;
use clap::ValueEnum;
use flate2::write::DeflateEncoder;
use flate2::Compression;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io::{self, Write};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
/// In the order in which they use each other; before the last one, where events come from.
const SCRIPTS: [&str; 4] = [
    include_str!("data.js"),
    include_str!("query.js"),
    include_str!("locks.js"),
    include_str!("draw.js"),
];
const PAGE_SCRIPT: &str = include_str!("page.js");
const WHOLE: &str = include_str!("whole.js");
const PARTS: &str = include_str!("parts.js");
/// What each page can show, the first one to begin with.
const VIEWS: [&str; 5] = [
    include_str!("views/frequency.json"),
    include_str!("views/tasks.json"),
    include_str!("views/load.json"),
    include_str!("views/fork-wait.json"),
    include_str!("views/inversions.json"),
];

/// Something that a page can show, as a file has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct View {
    /// Of all views, those of the same name are one: the last.
    pub name: String,
    /// For people.
    title: String,
    colour: Colour,
    /// What the colours mean.
    about: String,
    /// What is looked for at once; nothing if it is empty.
    #[serde(default)]
    find: String,
}

/// What CPUs are coloured by.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Colour {
    Frequency,
    Task,
    Queue,
    Lock,
}

/// Those of each page, and others, which come after them.
fn all_views(others: &[View]) -> io::Result<Vec<View>> {
    let mut views: Vec<View> = Vec::new();
    let ours: Result<Vec<View>, _> = VIEWS
        .iter()
        .map(|view| serde_json::from_str(view))
        .collect();
    for view in ours?.into_iter().chain(others.iter().cloned()) {
        match views.iter_mut().find(|known| known.name == view.name) {
            Some(known) => *known = view,
            None => views.push(view),
        }
    }
    Ok(views)
}

/// What is said of the trace as a whole.
#[derive(Debug, Serialize)]
pub struct About {
    scheduler: Option<String>,
    release: String,
    recorded: String,
    events: u64,
    lost: u64,
    is_whole: bool,
}

impl About {
    /// Of a trace that is not read yet.
    pub fn of<R>(trace: &Trace<R>) -> Self {
        let head = &trace.head;
        let end = trace.end.clone().unwrap_or_default();
        Self {
            scheduler: head.scheduler.as_ref().map(ToString::to_string),
            release: foreign::Escaped(&head.release).to_string(),
            recorded: units::utc(head.begin_utc_s),
            events: trace.events,
            lost: (trace.lost)
                .saturating_add(end.elsewhere)
                .saturating_add(end.recursion),
            is_whole: trace.end.is_some(),
        }
    }
}

#[derive(Serialize)]
struct CpuData {
    id: u16,
    /// What is said is so from then on, ns since the trace began.
    from: u64,
    /// Index of the task that ran then.
    running: u32,
    /// Of 1024; none if it is not known.
    speed: Option<u16>,
    /// Speed of a kHz, of 1024; none where frequencies say nothing.
    per_khz: Option<f64>,
    events: usize,
    queue: usize,
    locked: usize,
    /// Differences of time that no 32 bits hold: the event, and ns to add.
    jumps: Vec<(usize, u64)>,
    queue_jumps: Vec<(usize, u64)>,
    locked_jumps: Vec<(usize, u64)>,
}

#[derive(Serialize)]
struct LevelData {
    width: u64,
    tiles: usize,
}

#[derive(Serialize)]
struct Data<'a> {
    about: &'a About,
    begin: u64,
    span: u64,
    full: u16,
    kinds: Vec<&'static str>,
    cpus: Vec<CpuData>,
    /// PIDs and names, as they are shown.
    tasks: Vec<(u32, String)>,
    levels: Vec<LevelData>,
    views: Vec<View>,
    /// Events that the server gives at a time; none where all are in the page.
    most: Option<u64>,
}

/// Events of a part of the trace, by CPU.
#[derive(Serialize)]
struct Part {
    from: u64,
    to: u64,
    cpus: Vec<CpuData>,
    /// Packed columns.
    lanes: Vec<String>,
}

/// Differences of times, which grow, in 32 bits; and where they are more.
fn differences(times: impl Iterator<Item = u64>) -> (Vec<u32>, Vec<(usize, u64)>) {
    let (mut short, mut jumps, mut before) = (Vec::new(), Vec::new(), 0);
    for (at, time) in times.enumerate() {
        let since = time.saturating_sub(before);
        before = time;
        let part = u32::try_from(since).unwrap_or(u32::MAX);
        if since > u64::from(part) {
            jumps.push((at, since - u64::from(part)));
        }
        short.push(part);
    }
    (short, jumps)
}

/// JSON in which neither an element nor a comment of HTML can begin or end.
fn json(what: &impl Serialize) -> io::Result<String> {
    let text = serde_json::to_string(what)?;
    let text = foreign::json(&text);
    let escaped = |out: &mut String, c| match c {
        '<' | '>' | '&' => *out += &format!("\\u{:04x}", u32::from(c)),
        c => out.push(c),
    };
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| escaped(&mut out, c));
    Ok(out)
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let part = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = part(0) << 16 | part(1) << 8 | part(2);
        for digit in 0..4 {
            match digit <= three.len() {
                true => out.push(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize].into()),
                false => out.push('='),
            }
        }
    }
    out
}

/// Numbers of any width behind each other, the widest first so that each column is aligned.
#[derive(Default)]
struct Columns(Vec<u8>);

impl Columns {
    fn words(&mut self, words: impl IntoIterator<Item = u32>) {
        words
            .into_iter()
            .for_each(|word| self.0.extend(word.to_le_bytes()));
    }

    fn halves(&mut self, halves: impl IntoIterator<Item = u16>) {
        halves
            .into_iter()
            .for_each(|half| self.0.extend(half.to_le_bytes()));
    }

    fn bytes(&mut self, bytes: impl IntoIterator<Item = u8>) {
        self.0.extend(bytes);
    }

    fn packed(&self) -> io::Result<String> {
        let mut packer = DeflateEncoder::new(Vec::new(), Compression::new(3));
        packer.write_all(&self.0)?;
        Ok(base64(&packer.finish()?))
    }

    /// As an element of the page.
    fn write(&self, id: &str, to: &mut impl Write) -> io::Result<()> {
        let packed = self.packed()?;
        writeln!(
            to,
            "<script type=\"text/plain\" id=\"{id}\">{packed}</script>"
        )
    }
}

fn cpu_data(lane: &Lane) -> CpuData {
    let known = lane.cpu.max_khz.filter(|max| *max > 0);
    let capacity = f64::from(lane.cpu.capacity.unwrap_or(FULL.into()));
    CpuData {
        id: lane.cpu.id,
        from: lane.from,
        running: lane.running,
        speed: lane.first_speed,
        per_khz: known.map(|max| capacity / f64::from(max)),
        events: lane.events.time.len(),
        queue: lane.queue.len(),
        locked: lane.locked.len(),
        jumps: differences(lane.events.time.iter().copied()).1,
        queue_jumps: differences(lane.queue.iter().map(|(time, _)| *time)).1,
        locked_jumps: differences(lane.locked.iter().map(|(time, _)| *time)).1,
    }
}

fn write_levels(levels: &[Level], to: &mut impl Write) -> io::Result<()> {
    let mut columns = Columns::default();
    let tiles = || levels.iter().flat_map(|level| level.lanes.iter().flatten());
    columns.words(tiles().map(|tile| tile.task));
    columns.halves(tiles().map(|tile| tile.events));
    columns.bytes(tiles().map(|tile| tile.busy));
    columns.bytes(tiles().map(|tile| tile.mean));
    columns.bytes(tiles().map(|tile| tile.low));
    columns.bytes(tiles().map(|tile| tile.high));
    columns.bytes(tiles().map(|tile| tile.queue));
    columns.bytes(tiles().map(|tile| tile.locked));
    columns.write("tiles", to)
}

fn lane_columns(lane: &Lane) -> Columns {
    let events = &lane.events;
    let mut columns = Columns::default();
    columns.words(differences(events.time.iter().copied()).0);
    columns.words(events.task.iter().copied());
    columns.words(events.low.iter().copied());
    columns.words(events.high.iter().copied());
    columns.words(differences(lane.queue.iter().map(|(time, _)| *time)).0);
    columns.words(differences(lane.locked.iter().map(|(time, _)| *time)).0);
    columns.halves(lane.queue.iter().map(|(_, waiting)| *waiting));
    columns.halves(lane.locked.iter().map(|(_, state)| *state));
    columns.bytes(events.kind.iter().copied());
    columns
}

/// What the server gives for a part of the trace.
pub fn part(lanes: &Lanes, from: u64, to: u64) -> io::Result<String> {
    let packed = |lane: &Lane| lane_columns(lane).packed();
    json(&Part {
        from,
        to,
        cpus: lanes.lanes.values().map(cpu_data).collect(),
        lanes: lanes.lanes.values().map(packed).collect::<Result<_, _>>()?,
    })
}

fn digest(text: &str) -> String {
    base64(&Sha256::digest(text))
}

/// The page, piece by piece; with `most` without events, for a server that gives so many.
pub fn write(
    about: &About,
    lanes: &Lanes,
    levels: &[Level],
    views: &[View],
    most: Option<u64>,
    to: &mut impl Write,
) -> io::Result<()> {
    let name = |kind: &Kind| kind.name();
    let data = Data {
        about,
        begin: lanes.begin,
        span: lanes.span,
        full: byte(Some(FULL)).into(),
        kinds: Kind::value_variants().iter().map(name).collect(),
        cpus: lanes.lanes.values().map(cpu_data).collect(),
        tasks: (lanes.tasks.list.iter())
            .map(|(pid, name)| (*pid, name.to_string()))
            .collect(),
        levels: (levels.iter())
            .map(|level| LevelData {
                width: level.width,
                tiles: level.lanes.first().map_or(0, Vec::len),
            })
            .collect(),
        views: all_views(views)?,
        most,
    };
    let (source, server) = match most {
        Some(_) => (PARTS, " connect-src 'self';"),
        None => (WHOLE, ""),
    };
    let script = SCRIPTS.concat();
    let script = format!("\"use strict\";\n(() => {{\n{script}{source}{PAGE_SCRIPT}}})();\n");
    let mut rest = PAGE;
    for (mark, text) in [
        ("@SERVER@", server.into()),
        ("@SCRIPT-DIGEST@", digest(&script)),
        ("@STYLE-DIGEST@", digest(STYLE)),
        ("@STYLE@", STYLE.into()),
        ("@DATA@", json(&data)?),
    ] {
        let (before, after) = rest.split_once(mark).unwrap_or((rest, ""));
        to.write_all(before.as_bytes())?;
        to.write_all(text.as_bytes())?;
        rest = after;
    }
    let (before, after) = rest.split_once("@COLUMNS@\n").unwrap_or((rest, ""));
    to.write_all(before.as_bytes())?;
    write_levels(levels, to)?;
    for (number, lane) in lanes.lanes.values().enumerate() {
        if most.is_none() {
            lane_columns(lane).write(&format!("lane-{number}"), to)?;
        }
    }
    let (before, after) = after.split_once("@SCRIPT@").unwrap_or((after, ""));
    to.write_all(before.as_bytes())?;
    to.write_all(script.as_bytes())?;
    to.write_all(after.as_bytes())
}
