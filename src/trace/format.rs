// SPDX-License-Identifier: GPL-2.0-only
//! The bytes of a trace, little-endian: docs/TRACE.md. A file is its magic, a version, a
//! head in JSON, and chunks: events of one CPU, a gap of one CPU, or the end.

use crate::foreign::Foreign;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What a trace begins with.
pub const MAGIC: [u8; 8] = *b"FLTRACE\n";
/// Of the format; a reader takes its own alone.
pub const VERSION: u32 = 1;
/// Bytes before the head: magic, version, length of the head, and its checksum.
pub const PREFIX: usize = 20;
/// Bytes of a chunk before its content.
pub const CHUNK: usize = 32;
/// Most events of one chunk.
pub const CHUNK_EVENTS: usize = 8192;
/// CPU ids are below.
pub const MAX_CPUS: usize = crate::intf::fl_consts_FL_MAX_CPUS as usize;

/// One event, as docs/TRACE.md describes each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// ns of CLOCK_MONOTONIC.
    pub time: u64,
    /// The task that it is about; 0 is the idle task of any CPU.
    pub pid: u32,
    /// Number of its [`super::Kind`].
    pub kind: u16,
    /// On which CPU it was recorded.
    pub cpu: u16,
    /// By kind.
    pub arg: u64,
}

impl Event {
    /// Size of one, in memory and in a file.
    pub const BYTES: usize = 24;

    /// From three words, as the BPF side writes them.
    pub fn from_words(words: [u64; 3]) -> Self {
        Self {
            time: words[0],
            pid: words[1] as u32,
            kind: (words[1] >> 32) as u16,
            cpu: (words[1] >> 48) as u16,
            arg: words[2],
        }
    }

    /// The bytes in a file.
    pub fn bytes(&self) -> [u8; Self::BYTES] {
        let second = u64::from(self.pid) | u64::from(self.kind) << 32 | u64::from(self.cpu) << 48;
        let mut bytes = [0; Self::BYTES];
        for (to, word) in bytes.chunks_exact_mut(8).zip([self.time, second, self.arg]) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Each of a chunk; what is left over is no event.
    pub fn all(bytes: &[u8]) -> impl Iterator<Item = Self> + '_ {
        bytes.as_chunks::<{ Self::BYTES }>().0.iter().map(|bytes| {
            let word = |at: usize| u64::from_le_bytes(eight(&bytes[at..]));
            Self::from_words([word(0), word(8), word(16)])
        })
    }

    /// The lower half of its argument.
    pub fn low(&self) -> u32 {
        self.arg as u32
    }

    /// The upper half.
    pub fn high(&self) -> u32 {
        (self.arg >> 32) as u32
    }
}

fn eight(bytes: &[u8]) -> [u8; 8] {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[..8]);
    eight
}

fn four(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// What stands before all events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Which clock the times are of.
    pub clock: String,
    /// When the recording began, by that clock, ns.
    pub begin_ns: u64,
    /// The same in seconds since 1970.
    pub begin_utc_s: u64,
    /// The kernel's.
    pub release: String,
    /// Name of the sched_ext scheduler; none for the kernel's own.
    pub scheduler: Option<Foreign>,
    /// Whether the oldest events made room for the newest.
    pub overwrite: bool,
    /// Names of kinds, by number.
    pub events: Vec<String>,
    /// Which of them were recorded, by name.
    pub wanted: Vec<String>,
    /// Those that were recorded.
    pub cpus: Vec<Cpu>,
    /// Those that there were as the recording began.
    pub tasks: Vec<Task>,
    /// What decisions are made by beside what is recorded of each; none without those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decides_by: Option<DecidesBy>,
}

/// What a decision of mode auto goes by that is the same for all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidesBy {
    /// Values of the knobs that hold for all tasks, by name.
    pub knobs: BTreeMap<String, u64>,
    /// Where speeds come from, by its number.
    pub source: u32,
    /// Whether cores have two threads.
    pub smt: bool,
    /// Speed of each of so many active cores, from one on, 0..1024 of one that is alone; the last
    /// stands for more.
    pub turbo: Vec<u32>,
    /// By CPU, from 0 on.
    pub places: Vec<Place>,
}

/// Where a CPU is, by the scheduler's own numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its core, ...
    pub core: u32,
    /// ... last-level cache, ...
    pub llc: u32,
    /// ... and node.
    pub node: u32,
    /// 0..1024 of the largest.
    pub capacity: u32,
    /// The other thread of its core.
    pub sibling: Option<u16>,
}

impl Head {
    /// The name of the kind with this number. Names are of letters: of a file that lies, or is
    /// newer than its own table, it is the number.
    pub fn kind(&self, number: u16) -> Cow<'_, str> {
        match self.events.get(usize::from(number)) {
            Some(name) if name.bytes().all(|c| c.is_ascii_lowercase() || c == b'-') => name.into(),
            _ => number.to_string().into(),
        }
    }
}

/// A CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// As the kernel numbers them.
    pub id: u16,
    /// 1..1024 of the largest; none if the kernel does not say.
    pub capacity: Option<u32>,
    /// Highest frequency, kHz; none without cpufreq.
    pub max_khz: Option<u32>,
    /// Present frequency as the recording began.
    pub khz: Option<u32>,
    /// Who ran there as the recording began; 0 is the idle task.
    pub running: Option<u32>,
}

impl Cpu {
    /// Whether frequencies tell its speed. Where not, as in virtual machines, the ticks of our
    /// own scheduler do, as it takes the speed to be.
    pub fn has_frequency(&self) -> bool {
        self.max_khz.is_some_and(|max| max > 0)
    }

    /// Speed at this frequency, 0..1024 of the fastest CPU at its best, as far as that is known.
    pub fn speed(&self, khz: Option<u32>) -> u64 {
        const FULL: u32 = 1024;
        let capacity = u64::from(self.capacity.unwrap_or(FULL));
        match (khz, self.max_khz) {
            (Some(now), Some(max)) if max > 0 => capacity * u64::from(now) / u64::from(max),
            _ => capacity,
        }
    }
}

/// A task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its id, as the kernel's own namespace has it.
    pub pid: u32,
    /// Of its process.
    pub tgid: u32,
    /// As others chose it.
    pub name: Foreign,
}

/// What stands after all events, if the recorder came to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// When the recording ended, ns.
    pub end_ns: u64,
    /// By CPU that lost some: its id, and how many events found no place.
    pub lost: Vec<(u16, u64)>,
    /// By CPU: its id, and how many events made room for newer ones.
    pub overwritten: Vec<(u16, u64)>,
    /// Events of CPUs that came later.
    pub elsewhere: u64,
    /// Events that the kernel left out since a hook would have interrupted itself.
    pub recursion: u64,
}

/// What a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The number of events, packed by zstd.
    Events(u32),
    /// How many events of the CPU are missing here.
    Gap(u64),
    /// [`End`] as JSON.
    End,
}

/// A chunk's first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHead {
    /// What it holds.
    pub content: Content,
    /// Of which CPU.
    pub cpu: u16,
    /// Bytes of the content.
    pub length: u32,
    /// Of the other bytes here and of the content.
    pub checksum: u32,
}

impl ChunkHead {
    /// With the checksum that belongs to it.
    pub fn new(content: Content, cpu: u16, payload: &[u8]) -> Self {
        let mut head = Self {
            content,
            cpu,
            length: payload.len() as u32,
            checksum: 0,
        };
        head.checksum = head.sum(payload);
        head
    }

    /// What the checksum is to be.
    pub fn sum(&self, payload: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.bytes()[..CHUNK - 8]);
        hasher.update(payload);
        hasher.finalize()
    }

    /// As they stand in the file.
    pub fn bytes(&self) -> [u8; CHUNK] {
        let (tag, number) = match self.content {
            Content::Events(events) => (b"EVNT", u64::from(events)),
            Content::Gap(lost) => (b"LOST", lost),
            Content::End => (b"END\n", 0),
        };
        let mut bytes = [0; CHUNK];
        bytes[..4].copy_from_slice(tag);
        bytes[4..6].copy_from_slice(&self.cpu.to_le_bytes());
        bytes[8..16].copy_from_slice(&number.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.length.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// None if these bytes begin no chunk.
    pub fn parse(bytes: &[u8; CHUNK]) -> Option<Self> {
        let number = u64::from_le_bytes(eight(&bytes[8..]));
        let content = match &bytes[..4] {
            b"EVNT" if number <= CHUNK_EVENTS as u64 => Content::Events(number as u32),
            b"LOST" => Content::Gap(number),
            b"END\n" => Content::End,
            _ => return None,
        };
        let head = Self {
            content,
            cpu: u16::from_le_bytes([bytes[4], bytes[5]]),
            length: four(&bytes[16..]),
            checksum: four(&bytes[24..]),
        };
        // What is not looked at is 0.
        (head.bytes() == *bytes && usize::from(head.cpu) < MAX_CPUS).then_some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_event_is_24_bytes_and_comes_back(time: u64, pid: u32, kind: u16, cpu: u16, arg: u64) {
            let event = Event { time, pid, kind, cpu, arg };
            let back: Vec<_> = Event::all(&event.bytes()).collect();
            prop_assert_eq!(back, [event]);
            prop_assert_eq!((u64::from(event.high()) << 32) | u64::from(event.low()), arg);
        }

        #[test]
        fn what_is_parsed_as_a_chunk_has_these_bytes(bytes: [u8; CHUNK]) {
            if let Some(head) = ChunkHead::parse(&bytes) {
                prop_assert_eq!(head.bytes(), bytes);
            }
        }
    }

    #[test]
    fn a_chunk_comes_back_and_its_sum_is_of_all_of_it() {
        for content in [Content::Events(7), Content::Gap(u64::MAX), Content::End] {
            let head = ChunkHead::new(content, 3, b"abc");
            assert_eq!(ChunkHead::parse(&head.bytes()), Some(head));
            assert_ne!(head.sum(b"abd"), head.checksum);
            let other = ChunkHead { cpu: 4, ..head };
            assert_ne!(other.sum(b"abc"), head.checksum);
        }
        let most = ChunkHead::new(Content::Events(CHUNK_EVENTS as u32 + 1), 0, b"");
        assert_eq!(ChunkHead::parse(&most.bytes()), None);
        let far = ChunkHead::new(Content::Gap(1), MAX_CPUS as u16, b"");
        assert_eq!(ChunkHead::parse(&far.bytes()), None);
    }
}
