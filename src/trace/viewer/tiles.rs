// SPDX-License-Identifier: GPL-2.0-only
//! Levels of detail: time in tiles of equal width, and what a CPU did in each. All levels
//! come from the events themselves, since who ran longest in a tile does not follow from
//! who did in its parts.

use super::lanes::{Lane, Lanes, FULL, IDLE, UNKNOWN};

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

/// All that there are, the narrowest first.
pub fn levels(lanes: &Lanes) -> Vec<Level> {
    let cpus = lanes.lanes.len().max(1) as u64;
    let count = (lanes.count / (cpus * EVENTS)).clamp(FEW, 1 << 20);
    let mut width = lanes.span.div_ceil(count).max(1);
    let mut levels = Vec::new();
    loop {
        let of = |lane: &Lane| tiles(lane, width, lanes.span, lanes.tasks.len());
        levels.push(Level {
            width,
            lanes: lanes.lanes.values().map(of).collect(),
        });
        if lanes.span.div_ceil(width) <= FEW {
            return levels;
        }
        width = width.saturating_mul(STEP);
    }
}

/// What is known of a tile so far.
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

fn tiles(lane: &Lane, width: u64, span: u64, tasks: usize) -> Vec<Tile> {
    let count = span.div_ceil(width) as usize;
    let mut found = Vec::with_capacity(count);
    let mut sums = Sums {
        ran: vec![0; tasks],
        who: Vec::new(),
        busy: 0,
        speed: (0, 0),
        bounds: None,
    };
    // The last one is as wide as is left.
    let end_of = |tile: usize| (tile as u64 + 1).saturating_mul(width).min(span);
    lane.spans(span, |mut from, to, task, speed| {
        while from < to {
            let end = end_of(found.len()).min(to);
            sums.add(end - from, task, speed);
            from = end;
            if end == end_of(found.len()) {
                let width = end - found.len() as u64 * width;
                found.push(sums.tile(width));
            }
        }
    });
    for time in &lane.events.time {
        let tile = &mut found[((time / width) as usize).min(count - 1)];
        tile.events = tile.events.saturating_add(1);
    }
    let most = |tile: &mut u8, value: u16| *tile = (*tile).max(value.min(255) as u8);
    peaks(&mut found, &lane.queue, width, span, |tile, value| {
        most(&mut tile.queue, value);
    });
    peaks(&mut found, &lane.locked, width, span, |tile, value| {
        most(&mut tile.locked, value);
    });
    found
}

/// Calls `set` for each tile and value that there is in it, of values that hold from a time on.
fn peaks(
    tiles: &mut [Tile],
    steps: &[(u64, u16)],
    width: u64,
    span: u64,
    set: impl Fn(&mut Tile, u16),
) {
    let count = tiles.len();
    let next = steps.iter().skip(1).map(|(time, _)| *time).chain([span]);
    for ((time, value), until) in steps.iter().zip(next) {
        // Its very end is no time.
        if *time >= span {
            break;
        }
        let first = ((time / width) as usize).min(count - 1);
        let last = (until.saturating_sub(1).max(*time) / width) as usize;
        for tile in &mut tiles[first..=last.min(count - 1)] {
            set(tile, *value);
        }
    }
}
