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

#[derive(Clone, Copy, Debug)]
struct Place {
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
    chunks: Vec<VecDeque<Place>>,
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
            chunks: vec![VecDeque::new(); MAX_CPUS],
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
                trace.chunks[usize::from(head.cpu)].push_back(place);
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
    fn unpack(&mut self, place: Place, count: u32) -> Result<VecDeque<Item>, Error> {
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
        Ok(events.into_iter().map(Item::Event).collect())
    }

    /// Passes on all that there is, the earliest first.
    pub fn replay<E: From<Error>>(
        mut self,
        mut take: impl FnMut(Item) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut lanes: Vec<Lane> = vec![Lane::default(); MAX_CPUS];
        let mut next = BinaryHeap::new();
        for (cpu, lane) in lanes.iter_mut().enumerate() {
            if self.fill(lane, cpu)? {
                next.push(Reverse((lane.time(), cpu)));
            }
        }
        while let Some(Reverse((_, cpu))) = next.pop() {
            let lane = &mut lanes[cpu];
            if let Some(item) = lane.items.pop_front() {
                if let Item::Event(event) = item {
                    lane.last = event.time;
                }
                take(item)?;
            }
            if self.fill(&mut lanes[cpu], cpu)? {
                next.push(Reverse((lanes[cpu].time(), cpu)));
            }
        }
        Ok(())
    }

    /// Sees to it that the lane has something, if the CPU has.
    fn fill(&mut self, lane: &mut Lane, cpu: usize) -> Result<bool, Error> {
        while lane.items.is_empty() {
            let Some(place) = self.chunks[cpu].pop_front() else {
                return Ok(false);
            };
            let gap = Item::Gap { cpu: cpu as u16 };
            match place.head.content {
                Content::Events(count) => {
                    lane.items = self.unpack(place, count)?;
                    if std::mem::take(&mut lane.after_gap) {
                        lane.items.push_front(gap);
                    }
                }
                _ => {
                    lane.items.push_back(gap);
                    lane.after_gap = true;
                }
            }
        }
        Ok(true)
    }
}

/// What of a CPU is in memory.
#[derive(Clone, Default)]
struct Lane {
    items: VecDeque<Item>,
    /// Of its last event, ns.
    last: u64,
    after_gap: bool,
}

impl Lane {
    /// Of its next item: a gap begins with the event before, and ends with that behind it.
    fn time(&self) -> u64 {
        let mut events = self.items.iter().take(2).filter_map(|item| match item {
            Item::Event(event) => Some(event.time),
            Item::Gap { .. } => None,
        });
        events.next().unwrap_or(self.last)
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
