// SPDX-License-Identifier: GPL-2.0-only
//! A trace of any length, of which a page has the levels of detail and asks for events where
//! people look at few. One pass makes the levels and remembers, now and then, who was where:
//! from there a part is read on. Memory depends on the number of tasks and CPUs, not of events.

use super::html::{self, About, View};
use super::lanes::{Builder, Lanes, Tasks};
use super::tiles::{Level, Making};
use super::{Failed, Written};
use crate::trace::reader::{Error, Position, Trace};
use std::io::{self, Read, Seek, Write};
use std::mem;

/// How much there is in memory and goes to a page at a time.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Events between two places from which parts are read, at first.
    pub step: u64,
    /// Entries that all places together have: some hundred bytes each.
    pub remembered: usize,
    /// Tiles of all CPUs at the lowest level.
    pub tiles: u64,
    /// Events of a part.
    pub most: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            step: 1 << 20,
            remembered: 1 << 20,
            tiles: 1 << 20,
            most: 1 << 20,
        }
    }
}

/// A place in the trace: who was where.
struct Place {
    position: Position,
    /// Without names, which are the same in all.
    builder: Builder,
}

/// A trace that is read in parts.
pub struct Parts<R> {
    trace: Trace<R>,
    about: About,
    /// All that there were, without events.
    lanes: Lanes,
    levels: Vec<Level>,
    places: Vec<Place>,
    sizes: Sizes,
}

impl<R: Read + Seek> Parts<R> {
    /// Reads all of it once.
    pub fn new(mut trace: Trace<R>, sizes: Sizes) -> Result<Self, Error> {
        let about = About::of(&trace);
        let mut builder = Builder::new(&trace.head);
        let last = trace.last_ns()?;
        let end_ns = trace.end.as_ref().map_or(last, |end| end.end_ns.max(last));
        let mut replay = trace.go_on(&Position::default())?;
        let mut places = vec![Place {
            position: replay.position(),
            builder: nameless(&mut builder),
        }];
        let (mut step, mut remembered) = (sizes.step, 0);
        let mut making = None;
        let mut next = step;
        let cpus = builder.lanes.lanes.len();
        while let Some(item) = replay.read()? {
            builder.take(item);
            let making =
                making.get_or_insert_with(|| Making::new(builder.span(end_ns), sizes.tiles, cpus));
            if builder.lanes.count < next {
                continue;
            }
            making.take(&builder.lanes, builder.now);
            builder.cut();
            remembered += builder.size();
            places.push(Place {
                position: replay.position(),
                builder: nameless(&mut builder),
            });
            if remembered > sizes.remembered {
                step *= 2;
                let mut keep = false;
                places.retain(|_| {
                    keep = !keep;
                    keep
                });
                remembered = places.iter().map(|place| place.builder.size()).sum();
            }
            next = builder.lanes.count + step;
        }
        let span = builder.span(end_ns);
        let mut making = making.unwrap_or_else(|| Making::new(span, sizes.tiles, cpus));
        making.take(&builder.lanes, span);
        builder.cut();
        Ok(Self {
            about,
            levels: making.finish(),
            lanes: builder.finish(end_ns),
            places,
            sizes,
            trace,
        })
    }

    /// How much there is.
    pub fn size(&self) -> Written {
        Written {
            events: self.lanes.count,
            cpus: self.lanes.lanes.len(),
        }
    }

    /// Levels of detail, the narrowest first.
    #[cfg(test)]
    pub(super) fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// The page, which asks for parts.
    pub fn page(&self, views: &[View], to: &mut impl Write) -> io::Result<()> {
        let most = Some(self.sizes.most);
        html::write(&self.about, &self.lanes, &self.levels, views, most, to)
    }

    /// The events from one time to another, ns since the trace began, as the page takes them:
    /// less than asked for if there are too many.
    pub fn part(&mut self, from: u64, to: u64) -> Result<String, Failed> {
        let (lanes, to) = self.events(from, to)?;
        Ok(html::part(&lanes, from, to)?)
    }

    /// The same by CPU, and up to when.
    pub(super) fn events(&mut self, from: u64, mut to: u64) -> Result<(Lanes, u64), Error> {
        let later = |place: &Place| place.builder.now < from;
        // An event at the very time of a place may stand before it.
        let at = self.places.partition_point(later).saturating_sub(1);
        let place = &self.places[at];
        let mut builder = place.builder.clone();
        builder.lanes.tasks = mem::take(&mut self.lanes.tasks);
        let mut first = None;
        let mut replay = self.trace.go_on(&place.position)?;
        let mut read = || -> Result<(), Error> {
            while let Some(item) = replay.read()? {
                let time = builder.time(&item);
                if time > to {
                    break;
                }
                if first.is_none() && time >= from {
                    builder.cut();
                    first = Some(builder.lanes.count);
                }
                builder.take(item);
                if first.is_some_and(|first| builder.lanes.count - first >= self.sizes.most) {
                    to = builder.now;
                    break;
                }
            }
            Ok(())
        };
        let read = read();
        if first.is_none() {
            builder.cut();
        }
        self.lanes.tasks = mem::take(&mut builder.lanes.tasks);
        read.map(|()| (builder.lanes, to))
    }
}

/// A copy, whose names stay where they are.
fn nameless(builder: &mut Builder) -> Builder {
    let tasks: Tasks = mem::take(&mut builder.lanes.tasks);
    let copy = builder.clone();
    builder.lanes.tasks = tasks;
    copy
}
