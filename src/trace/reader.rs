// SPDX-License-Identifier: GPL-2.0-only
//! Reads a trace, whatever is in the file: what cannot be right is an error that says where,
//! and what was cut off is read as far as it goes. Events come merged by time, with one
//! chunk of each CPU in memory.

use super::format::{
    ChunkHead, Content, End, Event, Head, CHUNK, CHUNK_EVENTS, MAGIC, MAX_CPUS, PREFIX, VERSION,
};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, Read, Seek, SeekFrom};

/// Why there is nothing to be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// By its first bytes.
    #[error("it is no trace of scx_freqlock record")]
    Foreign,
    /// With the version that it has.
    #[error("it is a trace of version {0}, and this program reads version {VERSION}: read it with the scx_freqlock that recorded it")]
    Version(u32),
    /// Shorter than its head.
    #[error("it ends within its head: nothing was recorded")]
    NoHead,
    /// The recorder did not come to its end.
    #[error("it has no end: what recorded it was ended before")]
    NoEnd,
    /// Where, in bytes from its begin, and what is wrong.
    #[error("it is damaged at byte {0}: {1}")]
    Damaged(u64, String),
    /// The file itself.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// An event.
    Event(Event),
    /// Events of a CPU are missing, from its last event or up to its next one.
    Gap {
        /// Which CPU.
        cpu: u16,
    },
}

/// A part of what one CPU recorded.
#[derive(Debug)]
pub enum Chunk {
    /// Events, by time.
    Events(Vec<Event>),
    /// How many events are missing; 0 if that was said before.
    Gap(u64),
}

/// Where it is in the file.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    head: ChunkHead,
    offset: u64,
}

/// A trace whose head has been read.
pub struct Trace<R> {
    from: R,
    /// What stands before all events.
    pub head: Head,
    /// What stands after them; none where the recorder did not come to its end.
    pub end: Option<End>,
    /// Events in the file.
    pub events: u64,
    /// Events that found no place as they were recorded.
    pub lost: u64,
    /// By CPU.
    chunks: Vec<Vec<Place>>,
}

impl<R: Read + Seek> Trace<R> {
    /// Reads the head, and where the chunks are.
    pub fn open(mut from: R) -> Result<Self, Error> {
        let size = from.seek(SeekFrom::End(0))?;
        from.rewind()?;
        let mut prefix = Vec::new();
        from.by_ref().take(PREFIX as u64).read_to_end(&mut prefix)?;
        if !prefix.starts_with(&MAGIC) {
            return Err(Error::Foreign);
        }
        let Ok(prefix) = <[u8; PREFIX]>::try_from(prefix) else {
            return Err(Error::NoHead);
        };
        let number = |at| u32::from_le_bytes([0, 1, 2, 3].map(|byte: usize| prefix[at + byte]));
        let (version, length, checksum) = (number(8), number(12), number(16));
        if version != VERSION {
            return Err(Error::Version(version));
        }
        let mut offset = PREFIX as u64 + u64::from(length);
        if offset > size {
            return Err(Error::NoHead);
        }
        let mut bytes = vec![0; length as usize];
        from.read_exact(&mut bytes)?;
        let damaged = |what: &str| Error::Damaged(PREFIX as u64, what.into());
        if crc32fast::hash(&bytes) != checksum {
            return Err(damaged("the checksum of the head is another"));
        }
        let head: Head = serde_json::from_slice(&bytes)
            .map_err(|why| damaged(&format!("the head has no meaning: {why}")))?;
        if head.cpus.iter().any(|cpu| usize::from(cpu.id) >= MAX_CPUS) {
            return Err(damaged("a CPU has an id that none can have"));
        }
        let mut trace = Self {
            from,
            head,
            end: None,
            events: 0,
            lost: 0,
            chunks: vec![Vec::new(); MAX_CPUS],
        };
        while trace.end.is_none() && offset + CHUNK as u64 <= size {
            let mut bytes = [0; CHUNK];
            trace.from.seek(SeekFrom::Start(offset))?;
            trace.from.read_exact(&mut bytes)?;
            let head = ChunkHead::parse(&bytes)
                .ok_or_else(|| Error::Damaged(offset, "no chunk begins here".into()))?;
            let next = offset + CHUNK as u64 + u64::from(head.length);
            if next > size {
                break;
            }
            let place = Place { head, offset };
            match head.content {
                Content::Events(events) => trace.events += u64::from(events),
                Content::Gap(lost) => trace.lost = trace.lost.saturating_add(lost),
                Content::End => {
                    let end = trace.payload(place)?;
                    let end = serde_json::from_slice(&end)
                        .map_err(|why| Error::Damaged(offset, why.to_string()))?;
                    trace.end = Some(end);
                }
            }
            if head.content != Content::End {
                trace.chunks[usize::from(head.cpu)].push(place);
            }
            offset = next;
        }
        Ok(trace)
    }

    fn payload(&mut self, place: Place) -> Result<Vec<u8>, Error> {
        self.from
            .seek(SeekFrom::Start(place.offset + CHUNK as u64))?;
        let mut bytes = vec![0; place.head.length as usize];
        self.from.read_exact(&mut bytes)?;
        match place.head.sum(&bytes) == place.head.checksum {
            true => Ok(bytes),
            false => Err(Error::Damaged(
                place.offset,
                "the checksum of the chunk is another".into(),
            )),
        }
    }

    /// The chunk's events, by time; an interrupt between two of them may have swapped them.
    fn unpack(&mut self, place: Place, count: u32) -> Result<Vec<Event>, Error> {
        let payload = self.payload(place)?;
        let bytes = zstd::bulk::decompress(&payload, CHUNK_EVENTS * Event::BYTES)
            .map_err(|why| Error::Damaged(place.offset, why.to_string()))?;
        if bytes.len() != count as usize * Event::BYTES {
            let what = "the chunk has another length than it says";
            return Err(Error::Damaged(place.offset, what.into()));
        }
        let mut events: Vec<Event> = Event::all(&bytes).collect();
        if events.iter().any(|event| event.cpu != place.head.cpu) {
            let what = "the chunk has events of another CPU";
            return Err(Error::Damaged(place.offset, what.into()));
        }
        events.sort_by_key(|event| event.time);
        Ok(events)
    }

    /// The CPUs of which it has something.
    pub fn cpus(&self) -> impl Iterator<Item = u16> + '_ {
        (0..MAX_CPUS as u16).filter(|cpu| !self.chunks[usize::from(*cpu)].is_empty())
    }

    /// Where what that CPU recorded is, in its order.
    pub fn of_cpu(&self, cpu: u16) -> Vec<Place> {
        self.chunks
            .get(usize::from(cpu))
            .cloned()
            .unwrap_or_default()
    }

    /// What is there.
    pub fn chunk(&mut self, place: Place) -> Result<Chunk, Error> {
        match place.head.content {
            Content::Events(count) => Ok(Chunk::Events(self.unpack(place, count)?)),
            Content::Gap(lost) => Ok(Chunk::Gap(lost)),
            Content::End => Ok(Chunk::Gap(0)),
        }
    }

    /// Passes on all that there is, the earliest first.
    pub fn replay<E: From<Error>>(
        mut self,
        mut take: impl FnMut(Item) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut replay = self.go_on(&Position::default())?;
        while let Some(item) = replay.read()? {
            take(item)?;
        }
        Ok(())
    }

    /// Reads on from where a replay was.
    pub fn go_on(&mut self, from: &Position) -> Result<Replay<'_, R>, Error> {
        let mut replay = Replay {
            trace: self,
            lanes: vec![Lane::default(); MAX_CPUS],
            next: BinaryHeap::new(),
        };
        for (cpu, at) in &from.0 {
            replay.lanes[*cpu].at = *at;
        }
        for cpu in 0..MAX_CPUS {
            replay.find(cpu)?;
            replay.fill(cpu)?;
        }
        Ok(replay)
    }

    /// Of the last event, ns; 0 if there is none.
    pub fn last_ns(&mut self) -> Result<u64, Error> {
        let mut last = 0;
        for cpu in 0..MAX_CPUS {
            let events = |place: &Place| match place.head.content {
                Content::Events(count) if count > 0 => Some((*place, count)),
                _ => None,
            };
            if let Some((place, count)) = self.chunks[cpu].iter().rev().find_map(events) {
                if let Some(event) = self.unpack(place, count)?.last() {
                    last = last.max(event.time);
                }
            }
        }
        Ok(last)
    }
}

/// Where a replay is in the chunks of a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct At {
    /// The chunk of which something is in memory, or that comes next.
    chunk: usize,
    /// Items of it that were read.
    read: usize,
    /// Whether what is missing ends with it.
    after_gap: bool,
    /// Of the last event that was read, ns.
    last: u64,
}

/// Where a replay is in a trace; by default at its begin.
#[derive(Clone, Debug, Default)]
pub struct Position(Vec<(usize, At)>);

/// The items of a trace, the earliest first.
pub struct Replay<'a, R> {
    trace: &'a mut Trace<R>,
    lanes: Vec<Lane>,
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<R: Read + Seek> Replay<'_, R> {
    /// What comes next; none at the end.
    pub fn read(&mut self) -> Result<Option<Item>, Error> {
        let Some(Reverse((_, cpu))) = self.next.pop() else {
            return Ok(None);
        };
        let lane = &mut self.lanes[cpu];
        let item = lane.items.pop_front();
        lane.at.read += 1;
        if let Some(Item::Event(event)) = item {
            lane.at.last = event.time;
        }
        self.fill(cpu)?;
        Ok(item)
    }

    /// Where it is now.
    pub fn position(&self) -> Position {
        let has_begun = |(_, at): &(usize, At)| at.chunk > 0 || at.read > 0;
        let lanes = self.lanes.iter().enumerate();
        Position(
            lanes
                .map(|(cpu, lane)| (cpu, lane.at))
                .filter(has_begun)
                .collect(),
        )
    }

    /// Sees to it that the lane has what is left of its chunk.
    fn find(&mut self, cpu: usize) -> Result<(), Error> {
        let read = self.lanes[cpu].at.read;
        self.lanes[cpu].items = self.chunk(cpu)?.into_iter().skip(read).collect();
        Ok(())
    }

    /// Sees to it that the lane has something, if the CPU has.
    fn fill(&mut self, cpu: usize) -> Result<(), Error> {
        while self.lanes[cpu].items.is_empty() {
            let Some(place) = self.trace.chunks[cpu].get(self.lanes[cpu].at.chunk) else {
                return Ok(());
            };
            let at = &mut self.lanes[cpu].at;
            (at.chunk, at.read) = (at.chunk + 1, 0);
            at.after_gap = !matches!(place.head.content, Content::Events(_));
            self.find(cpu)?;
        }
        self.next.push(Reverse((self.lanes[cpu].time(), cpu)));
        Ok(())
    }

    /// All items of the lane's chunk; none behind the last one.
    fn chunk(&mut self, cpu: usize) -> Result<VecDeque<Item>, Error> {
        let at = self.lanes[cpu].at;
        let Some(place) = self.trace.chunks[cpu].get(at.chunk).copied() else {
            return Ok(VecDeque::new());
        };
        let gap = Item::Gap { cpu: cpu as u16 };
        let Chunk::Events(events) = self.trace.chunk(place)? else {
            return Ok(VecDeque::from([gap]));
        };
        let mut items: VecDeque<Item> = events.into_iter().map(Item::Event).collect();
        if at.after_gap {
            items.push_front(gap);
        }
        Ok(items)
    }
}

/// What of a CPU is in memory.
#[derive(Clone, Default)]
struct Lane {
    items: VecDeque<Item>,
    at: At,
}

impl Lane {
    /// Of its next item: a gap begins with the event before, and ends with that behind it.
    fn time(&self) -> u64 {
        let mut events = self.items.iter().take(2).filter_map(|item| match item {
            Item::Event(event) => Some(event.time),
            Item::Gap { .. } => None,
        });
        events.next().unwrap_or(self.at.last)
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
