// SPDX-License-Identifier: GPL-2.0-only
//! Levels of detail: time in tiles of equal width, and what a CPU did in each. The lowest
//! level comes from the events, each other one from the sums of the one below: who ran for how
//! long, since who ran longest does not follow from who did in the parts.

use super::lanes::{Lane, Lanes, FULL, IDLE, UNKNOWN};
use std::collections::BTreeMap;

/// A level has tiles that are so many times as wide as those of the one below.
const STEP: u64 = 4;
/// Events of a CPU in a tile of the lowest level, on average: where there are fewer in sight,
/// the page draws the events themselves.
const EVENTS: u64 = 8;
/// The highest level has no more tiles than this, and the lowest this at least.
const FEW: u64 = 256;
/// A speed that is not known; others are 0..=254.
pub const NO_SPEED: u8 = 255;

/// What a CPU did in a part of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Index of who ran longest.
    pub task: u32,
    /// Events, 65535 at most.
    pub events: u16,
    /// Share of the time in which a task ran, of 255.
    pub busy: u8,
    /// Mean speed.
    pub mean: u8,
    /// Lowest speed.
    pub low: u8,
    /// Highest speed.
    pub high: u8,
    /// Most tasks that waited, 255 at most.
    pub queue: u8,
    /// What those that ran had to do with locks at most.
    pub locked: u8,
}

/// Of one width.
#[derive(Debug)]
pub struct Level {
    /// ns.
    pub width: u64,
    /// By CPU, in the order of lanes, each with as many.
    pub lanes: Vec<Vec<Tile>>,
}

/// Levels that are being made.
pub struct Making {
    span: u64,
    /// Tiles of all CPUs at the lowest level.
    most: u64,
    /// The narrowest first, ns.
    widths: Vec<u64>,
    cpus: BTreeMap<u16, Maker>,
}

impl Making {
    /// Of a trace so long, ns, with so many tiles at the lowest level, of so many CPUs together.
    pub fn new(span: u64, most: u64, cpus: usize) -> Self {
        let tiles = most / cpus.max(1) as u64;
        let lowest = span.div_ceil(tiles.max(1)).max(1);
        let next = |width: &u64| (span.div_ceil(*width) > FEW).then(|| width * STEP);
        Self {
            span,
            most,
            widths: std::iter::successors(Some(lowest), next).collect(),
            cpus: BTreeMap::new(),
        }
    }

    /// Takes what there is of each CPU, up to a time.
    pub fn take(&mut self, lanes: &Lanes, end: u64) {
        let end = end.min(self.span);
        for (id, lane) in &lanes.lanes {
            let maker = self.cpus.entry(*id);
            let maker = maker.or_insert_with(|| Maker::new(&self.widths, self.span));
            maker.take(lane, end, lanes.tasks.list.len());
            // There are more CPUs than was said.
            while self.widths.len() > 1 && self.tiles() > self.most * STEP {
                self.widths.remove(0);
                self.cpus.values_mut().for_each(Maker::forget_lowest);
            }
        }
    }

    /// At the lowest level, of all CPUs.
    fn tiles(&self) -> u64 {
        self.cpus.len() as u64 * self.span.div_ceil(self.widths[0])
    }

    /// All that there are, the narrowest first.
    pub fn finish(self) -> Vec<Level> {
        let level = |width: &u64| Level {
            width: *width,
            lanes: Vec::new(),
        };
        let mut levels: Vec<Level> = self.widths.iter().map(level).collect();
        for maker in self.cpus.into_values() {
            for (level, tiles) in levels.iter_mut().zip(maker.finish()) {
                level.lanes.push(tiles);
            }
        }
        levels
    }
}

/// Of all that there is.
pub fn levels(lanes: &Lanes) -> Vec<Level> {
    let cpus = lanes.lanes.len().max(1) as u64;
    let count = (lanes.count / (cpus * EVENTS)).clamp(FEW, 1 << 20);
    let mut making = Making::new(lanes.span, count * cpus, lanes.lanes.len());
    making.take(lanes, lanes.span);
    making.finish()
}

/// What is known of a tile so far.
#[derive(Default)]
struct Sums {
    /// By task: ns.
    ran: Vec<u64>,
    /// Those that have some.
    who: Vec<u32>,
    busy: u64,
    /// Speed by ns, and ns of known speed.
    speed: (u128, u64),
    bounds: Option<(u16, u16)>,
}

impl Sums {
    fn add(&mut self, ns: u64, task: u32, speed: Option<u16>) {
        let ran = &mut self.ran[task as usize];
        if *ran == 0 {
            self.who.push(task);
        }
        *ran += ns;
        if task != IDLE && task != UNKNOWN {
            self.busy += ns;
        }
        if let Some(speed) = speed {
            self.speed.0 += u128::from(speed) * u128::from(ns);
            self.speed.1 += ns;
            let (low, high) = self.bounds.unwrap_or((speed, speed));
            self.bounds = Some((low.min(speed), high.max(speed)));
        }
    }

    fn add_all(&mut self, part: &Self) {
        for task in &part.who {
            let ran = &mut self.ran[*task as usize];
            if *ran == 0 {
                self.who.push(*task);
            }
            *ran += part.ran[*task as usize];
        }
        self.busy += part.busy;
        self.speed.0 += part.speed.0;
        self.speed.1 += part.speed.1;
        if let Some((low, high)) = part.bounds {
            let (lowest, highest) = self.bounds.unwrap_or((low, high));
            self.bounds = Some((lowest.min(low), highest.max(high)));
        }
    }

    /// The tile, after which it begins anew.
    fn tile(&mut self, width: u64) -> Tile {
        let ran = &self.ran;
        let longest = self.who.iter().copied();
        let task = longest.max_by_key(|task| (ran[*task as usize], std::cmp::Reverse(*task)));
        for task in self.who.drain(..) {
            self.ran[task as usize] = 0;
        }
        let (speed, known) = std::mem::take(&mut self.speed);
        let mean = (known > 0).then(|| (speed / u128::from(known.max(1))) as u16);
        let bounds = self.bounds.take();
        Tile {
            task: task.unwrap_or(UNKNOWN),
            events: 0,
            busy: (u128::from(std::mem::take(&mut self.busy)) * 255 / u128::from(width)) as u8,
            mean: byte(mean),
            low: byte(bounds.map(|(low, _)| low)),
            high: byte(bounds.map(|(_, high)| high)),
            queue: 0,
            locked: 0,
        }
    }
}

/// A speed in 255 steps.
pub fn byte(speed: Option<u16>) -> u8 {
    speed.map_or(NO_SPEED, |speed| {
        (u32::from(speed) * u32::from(NO_SPEED - 1) / u32::from(FULL)) as u8
    })
}

/// The tiles of one width.
struct Row {
    width: u64,
    sums: Sums,
    /// The one that is being made.
    at: usize,
    tiles: Vec<Tile>,
}

impl Row {
    /// What the row below has beside what ran.
    fn take_peaks(&mut self, below: &Self) {
        let parts = below.tiles.chunks(STEP as usize);
        for (tile, parts) in self.tiles.iter_mut().zip(parts) {
            for part in parts {
                tile.events = tile.events.saturating_add(part.events);
                tile.queue = tile.queue.max(part.queue);
                tile.locked = tile.locked.max(part.locked);
            }
        }
    }
}

/// The tiles of one CPU.
struct Maker {
    span: u64,
    /// Up to when what ran is known, ns.
    done: u64,
    /// The narrowest first.
    rows: Vec<Row>,
}

impl Maker {
    fn new(widths: &[u64], span: u64) -> Self {
        let row = |width: &u64| {
            let mut sums = Sums::default();
            Row {
                width: *width,
                at: 0,
                tiles: vec![sums.tile(*width); span.div_ceil(*width) as usize],
                sums,
            }
        };
        Self {
            span,
            done: 0,
            rows: widths.iter().map(row).collect(),
        }
    }

    /// Of the tile of that row that is being made: the last one is as wide as is left.
    fn end(&self, row: usize) -> u64 {
        let row = &self.rows[row];
        ((row.at as u64 + 1) * row.width).min(self.span)
    }

    fn add(&mut self, mut from: u64, to: u64, task: u32, speed: Option<u16>) {
        while from < to {
            let end = self.end(0).min(to);
            self.rows[0].sums.add(end - from, task, speed);
            from = end;
            if end == self.end(0) {
                self.complete(0);
            }
        }
    }

    /// A tile of that row is over; so may be those above.
    fn complete(&mut self, number: usize) {
        let end = self.end(number);
        let (rows, above) = self.rows.split_at_mut(number + 1);
        let row = &mut rows[number];
        if let Some(above) = above.first_mut() {
            above.sums.add_all(&row.sums);
        }
        // Events and what waits may stand there already.
        let tile = &mut row.tiles[row.at];
        let (events, queue, locked) = (tile.events, tile.queue, tile.locked);
        *tile = Tile {
            events,
            queue,
            locked,
            ..row.sums.tile(end - row.at as u64 * row.width)
        };
        row.at += 1;
        if number + 1 < self.rows.len() && end == self.end(number + 1) {
            self.complete(number + 1);
        }
    }

    /// The row above the lowest one is that, from now on.
    fn forget_lowest(&mut self) {
        let lowest = self.rows.remove(0);
        self.rows[0].take_peaks(&lowest);
        self.rows[0].sums.add_all(&lowest.sums);
    }

    /// The tiles of each row, the narrowest first.
    fn finish(mut self) -> Vec<Vec<Tile>> {
        for number in 1..self.rows.len() {
            let (below, row) = self.rows.split_at_mut(number);
            row[0].take_peaks(&below[number - 1]);
        }
        self.rows.into_iter().map(|row| row.tiles).collect()
    }

    /// Takes what there is from the lane's begin to that time, with so many tasks.
    fn take(&mut self, lane: &Lane, end: u64, tasks: usize) {
        for row in &mut self.rows {
            row.sums.ran.resize(tasks, 0);
        }
        // The CPU was not there before. In a file whose events are in disorder it may come late.
        self.add(self.done, lane.from.min(self.span), UNKNOWN, None);
        self.done = self.done.max(end);
        lane.spans(end, |from, to, task, speed| self.add(from, to, task, speed));
        let Row { width, tiles, .. } = &mut self.rows[0];
        let last = tiles.len() - 1;
        for time in &lane.events.time {
            let tile = &mut tiles[((time / *width) as usize).min(last)];
            tile.events = tile.events.saturating_add(1);
        }
        let most = |tile: &mut u8, value: u16| *tile = (*tile).max(value.min(255) as u8);
        peaks(&mut self.rows[0], &lane.queue, end, |tile, value| {
            most(&mut tile.queue, value);
        });
        peaks(&mut self.rows[0], &lane.locked, end, |tile, value| {
            most(&mut tile.locked, value);
        });
    }
}

/// Calls `set` for each tile and value that there is in it, of values that hold from a time on.
fn peaks(row: &mut Row, steps: &[(u64, u16)], end: u64, set: impl Fn(&mut Tile, u16)) {
    let last = row.tiles.len() - 1;
    let next = steps.iter().skip(1).map(|(time, _)| *time).chain([end]);
    for ((time, value), until) in steps.iter().zip(next) {
        // Its very end is no time.
        if *time >= end {
            break;
        }
        let first = ((time / row.width) as usize).min(last);
        let until = (until.saturating_sub(1).max(*time) / row.width) as usize;
        for tile in &mut row.tiles[first..=until.min(last)] {
            set(tile, *value);
        }
    }
}
