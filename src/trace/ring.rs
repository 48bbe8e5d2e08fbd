// SPDX-License-Identifier: GPL-2.0-only
//! The buffers that bpf/record.bpf.c fills, as the agent has them mapped: one for each
//! CPU, each a power of two of events, with a cursor.

use super::format::{Event, Task};
use crate::raw;
use memmap2::{MmapOptions, MmapRaw};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{fence, AtomicU64, Ordering};
use std::time::Duration;

pub(super) mod abi {
    //! Bindings of bpf/record.h.
    #![allow(non_camel_case_types, non_upper_case_globals, dead_code)]
    #![allow(clippy::all)]
    #![allow(missing_docs)] // generated: what they mean stands in the header
    include!(concat!(env!("OUT_DIR"), "/record.rs"));
}

/// Number of a buffer that no CPU has: the CPU is not to be recorded.
pub const UNWANTED: u16 = abi::rec_consts_REC_UNWANTED as u16;
/// The same of a CPU that was offline.
pub const ABSENT: u16 = abi::rec_consts_REC_ABSENT as u16;

const WORDS: usize = Event::BYTES / 8;
const CURSOR_WORDS: usize = size_of::<abi::rec_cursor>() / 8;
const _: () = assert!(size_of::<abi::rec_event>() == Event::BYTES);

/// Fewest places of a buffer: many times the margin that stays free.
pub const FEWEST: u32 = 64 * abi::rec_consts_REC_MARGIN;

/// No program takes as long to write an event.
const SETTLE: Duration = Duration::from_millis(1);

/// Words that others write meanwhile.
pub trait Words {
    /// All of them.
    fn words(&self) -> &[AtomicU64];
}

/// An array of the BPF side that is mapped.
pub struct Mapped(MmapRaw);

impl Mapped {
    /// Maps `bytes` of it.
    pub fn new(map: &impl AsFd, bytes: usize) -> io::Result<Self> {
        let fd = map.as_fd().as_raw_fd();
        Ok(Self(MmapOptions::new().len(bytes).map_raw(fd)?))
    }
}

impl Words for Mapped {
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping lives as long as `self`, begins at a page, and is written to by
        // others in whole words alone, which atomics are made for.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() / 8) }
    }
}

impl Words for Vec<AtomicU64> {
    fn words(&self) -> &[AtomicU64] {
        self
    }
}

/// What was taken out of one buffer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// In the order in which they got their places.
    pub events: Vec<Event>,
    /// How many the CPU has lost since the recording began.
    pub lost: u64,
    /// How many made room for newer ones, in buffers that begin anew.
    pub overwritten: u64,
}

/// All buffers.
pub struct Rings<W: Words> {
    events: W,
    cursors: W,
    places: u64,
    /// By buffer: up to where events had their places as it was looked at last.
    seen: Vec<u64>,
    /// By buffer: up to where [`Rings::watch`] has returned them.
    watched: Vec<u64>,
}

impl<W: Words> Rings<W> {
    /// `places`: of each buffer, a power of two.
    pub fn new(events: W, cursors: W, buffers: usize, places: u32) -> Self {
        Self {
            events,
            cursors,
            places: u64::from(places),
            seen: vec![0; buffers],
            watched: vec![0; buffers],
        }
    }

    fn cursor(&self, buffer: usize) -> [&AtomicU64; 3] {
        let words = &self.cursors.words()[buffer * CURSOR_WORDS..];
        [&words[0], &words[1], &words[2]]
    }

    /// Whether one of them is half full.
    pub fn is_half_full(&self) -> bool {
        (0..self.seen.len()).any(|buffer| {
            let [head, tail, _] = self.cursor(buffer);
            let used = head.load(Ordering::Relaxed) - tail.load(Ordering::Relaxed);
            used > self.places / 2
        })
    }

    /// Takes out what was there at the last look, so that whoever wrote it has long come to
    /// its end; with `all`, when nobody writes any more, the rest too.
    pub fn take(&mut self, buffer: usize, all: bool) -> Taken {
        let [head, tail, lost] = self.cursor(buffer);
        let now = head.load(Ordering::Acquire);
        let upto = if all { now } else { self.seen[buffer] };
        let words = &self.events.words()[buffer * self.places as usize * WORDS..];
        let mut taken = Taken::default();
        let mut done = tail.load(Ordering::Relaxed);
        while done < upto {
            let at = (done % self.places) as usize * WORDS;
            let time = words[at].load(Ordering::Acquire);
            if time == 0 && !all {
                break;
            }
            // A hook that began and never wrote is none that there could be.
            if time != 0 {
                let word = |word: usize| words[at + word].load(Ordering::Relaxed);
                taken
                    .events
                    .push(Event::from_words([time, word(1), word(2)]));
                words[at].store(0, Ordering::Relaxed);
            }
            done += 1;
        }
        tail.store(done, Ordering::Release);
        taken.lost = lost.load(Ordering::Relaxed);
        self.seen[buffer] = now;
        taken
    }

    /// What buffers that begin anew have now; they keep it. An event that a program is about
    /// to write may be missing.
    pub fn copies(&self) -> Vec<Taken> {
        let heads = (0..self.seen.len()).map(|buffer| self.cursor(buffer)[0]);
        let heads: Vec<u64> = heads.map(|head| head.load(Ordering::Acquire)).collect();
        // Programs that had begun come to their end.
        std::thread::sleep(SETTLE);
        let all = heads.into_iter().enumerate();
        all.map(|(buffer, head)| self.copy(buffer, 0, head))
            .collect()
    }

    /// What came since the call before, as of the look before that; it stays in the buffer.
    /// `overwritten` counts those that came and went in between.
    pub fn watch(&mut self, buffer: usize) -> Taken {
        let head = self.cursor(buffer)[0].load(Ordering::Acquire);
        let upto = std::mem::replace(&mut self.seen[buffer], head);
        let from = std::mem::replace(&mut self.watched[buffer], upto);
        self.copy(buffer, from, upto)
    }

    /// Events with these numbers, as far as they are still there while others are written.
    fn copy(&self, buffer: usize, begin: u64, upto: u64) -> Taken {
        let [head, _, lost] = self.cursor(buffer);
        let words = &self.events.words()[buffer * self.places as usize * WORDS..];
        let oldest = |head: u64| head.saturating_sub(self.places).clamp(begin, upto);
        let from = oldest(head.load(Ordering::Acquire));
        let mut events: Vec<Event> = (from..upto)
            .map(|number| {
                let at = (number % self.places) as usize * WORDS;
                let word = |word: usize| words[at + word].load(Ordering::Acquire);
                Event::from_words([word(0), word(1), word(2)])
            })
            .collect();
        // A place is taken before it is written to: what was overwritten meanwhile is known.
        fence(Ordering::Acquire);
        let kept = oldest(head.load(Ordering::Acquire));
        events.drain(..(kept - from) as usize);
        // A place that is not written yet has the time of a round before, or none.
        let first = events.first().map_or(0, |event| event.time);
        events.retain(|event| event.time != 0 && event.time >= first);
        Taken {
            events,
            lost: lost.load(Ordering::Relaxed),
            overwritten: kept - begin,
        }
    }
}

/// A task that there was as the recording began.
#[derive(Clone, Debug)]
pub struct Present {
    /// Its id, of the kernel's own namespace.
    pub pid: u32,
    /// Of its process.
    pub tgid: u32,
    /// The CPU that it ran on.
    pub running_on: Option<u16>,
    /// As others chose it.
    pub name: crate::foreign::Foreign,
}

impl Present {
    /// As a file has it.
    pub fn task(&self) -> Task {
        Task {
            pid: self.pid,
            tgid: self.tgid,
            name: self.name.clone(),
        }
    }
}

/// The tasks that the BPF side lists.
pub fn present(bytes: &[u8]) -> Vec<Present> {
    let structs = bytes.chunks_exact(size_of::<abi::rec_task>());
    structs
        .filter_map(raw::read::<abi::rec_task>)
        .map(|task| Present {
            pid: task.pid,
            tgid: task.tgid,
            running_on: task.running_on.try_into().ok(),
            name: raw::text(&task.comm),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(n: usize) -> Vec<AtomicU64> {
        (0..n).map(|_| AtomicU64::new(0)).collect()
    }

    fn rings() -> Rings<Vec<AtomicU64>> {
        Rings::new(words(2 * 8 * WORDS), words(2 * CURSOR_WORDS), 2, 8)
    }

    /// As the BPF side does it.
    fn put(rings: &Rings<Vec<AtomicU64>>, buffer: usize, time: u64) {
        let place = rings.cursor(buffer)[0].fetch_add(1, Ordering::Relaxed);
        let at = (buffer * 8 + (place % 8) as usize) * WORDS;
        rings.events[at].store(time, Ordering::Relaxed);
    }

    fn times(taken: &Taken) -> Vec<u64> {
        taken.events.iter().map(|event| event.time).collect()
    }

    #[test]
    fn what_was_there_at_the_last_look_is_taken_once() {
        let mut rings = rings();
        put(&rings, 1, 5);
        put(&rings, 1, 6);
        assert_eq!(times(&rings.take(1, false)), [0; 0]);
        put(&rings, 1, 7);
        assert_eq!(times(&rings.take(1, false)), [5, 6]);
        assert!(!rings.is_half_full());
        (8..=11).for_each(|time| put(&rings, 1, time));
        assert!(rings.is_half_full());
        assert_eq!(times(&rings.take(1, true)), [7, 8, 9, 10, 11]);
        assert!(!rings.is_half_full());
        assert_eq!(times(&rings.take(1, true)), [0; 0]);
        assert_eq!(times(&rings.take(0, true)), [0; 0]);
    }

    #[test]
    fn an_event_that_is_being_written_is_waited_for() {
        let mut rings = rings();
        put(&rings, 0, 1);
        put(&rings, 0, 0);
        put(&rings, 0, 3);
        rings.take(0, false);
        assert_eq!(times(&rings.take(0, false)), [1]);
        rings.events[WORDS].store(2, Ordering::Relaxed);
        assert_eq!(times(&rings.take(0, false)), [2, 3]);
    }

    #[test]
    fn a_copy_leaves_all_there_and_has_no_event_that_is_being_written() {
        let rings = rings();
        for time in 1..=20 {
            put(&rings, 1, time);
        }
        // Its place is taken, and has the event of the round before.
        rings.cursor(1)[0].fetch_add(1, Ordering::Relaxed);
        for _ in 0..2 {
            let mut all = rings.copies();
            assert_eq!(all[0], Taken::default());
            let taken = all.remove(1);
            assert_eq!(times(&taken), (14..=20).collect::<Vec<_>>());
            assert_eq!(taken.overwritten, 13);
        }
    }

    #[test]
    fn who_watches_sees_each_event_once_and_how_many_were_too_fast() {
        let mut rings = rings();
        put(&rings, 1, 5);
        put(&rings, 1, 6);
        assert_eq!(times(&rings.watch(1)), [0; 0]);
        put(&rings, 1, 7);
        assert_eq!(times(&rings.watch(1)), [5, 6]);
        assert_eq!(times(&rings.watch(1)), [7]);
        for time in 8..=25 {
            put(&rings, 1, time);
        }
        assert_eq!(times(&rings.watch(1)), [0; 0]);
        let taken = rings.watch(1);
        assert_eq!(times(&taken), (18..=25).collect::<Vec<_>>());
        assert_eq!(taken.overwritten, 10);
        assert_eq!(times(&rings.copies()[1]), (18..=25).collect::<Vec<_>>());
    }
}
