// SPDX-License-Identifier: GPL-2.0-only
//! The buffers that bpf/record.bpf.c fills, as the agent has them mapped: one for each
//! CPU, each a power of two of events, with a cursor.

use super::format::{Event, Task, MAX_CPUS};
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

/// Why a CPU has no buffer.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum Without {
    /// It was offline as the recording began.
    Absent = abi::rec_consts_REC_ABSENT,
    /// It is not to be recorded.
    Unwanted = abi::rec_consts_REC_UNWANTED,
}

/// What becomes of events that find a full buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// They are lost, and counted.
    Loses,
    /// They take the places of the oldest.
    BeginsAnew,
}

/// Bytes of all cursors.
pub const CURSORS_BYTES: usize = MAX_CPUS * size_of::<abi::rec_cursor>();

const WORDS: usize = Event::BYTES / 8;
const CURSOR_WORDS: usize = size_of::<abi::rec_cursor>() / 8;

/// The words of a cursor.
mod word {
    use super::abi::rec_cursor;
    use std::mem::offset_of;
    pub const HEAD: usize = offset_of!(rec_cursor, head) / 8;
    pub const STOP: usize = offset_of!(rec_cursor, stop) / 8;
    pub const LOST: usize = offset_of!(rec_cursor, lost) / 8;
    pub const FIRST: usize = offset_of!(rec_cursor, first) / 8;
    pub const MASK: usize = offset_of!(rec_cursor, mask) / 8;
}
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
    full: Full,
    /// By buffer: the CPU whose it is.
    cpus: Vec<usize>,
    /// By buffer: how many events were taken out.
    done: Vec<u64>,
    /// By buffer: up to where events had their places as it was looked at last.
    seen: Vec<u64>,
    /// By buffer: up to where [`Rings::watch`] has returned them.
    watched: Vec<u64>,
}

impl<W: Words> Rings<W> {
    /// Gives `cpus` a buffer each, before anything is written, and the `others` none. `places`: of
    /// each buffer, a power of two.
    pub fn new(
        events: W,
        cursors: W,
        cpus: &[usize],
        others: Without,
        places: u32,
        full: Full,
    ) -> Self {
        let places = u64::from(places);
        for cursor in cursors.words().chunks(CURSOR_WORDS) {
            cursor[word::MASK].store(u64::from(others as u32), Ordering::Relaxed);
        }
        let rings = Self {
            events,
            cursors,
            places,
            full,
            cpus: cpus.to_vec(),
            done: vec![0; cpus.len()],
            seen: vec![0; cpus.len()],
            watched: vec![0; cpus.len()],
        };
        for (buffer, first) in (0..cpus.len()).zip((0..).step_by(places as usize)) {
            let cursor = rings.cursor(buffer);
            cursor[word::FIRST].store(first, Ordering::Relaxed);
            cursor[word::MASK].store(places - 1, Ordering::Relaxed);
            rings.set_stop(buffer);
        }
        rings
    }

    fn cursor(&self, buffer: usize) -> &[AtomicU64] {
        let cursor = self.cpus[buffer] * CURSOR_WORDS;
        &self.cursors.words()[cursor..cursor + CURSOR_WORDS]
    }

    /// From what was taken out on, there is room.
    fn set_stop(&self, buffer: usize) {
        let stop = match self.full {
            Full::Loses => self.done[buffer] + self.places - u64::from(abi::rec_consts_REC_MARGIN),
            Full::BeginsAnew => u64::MAX,
        };
        self.cursor(buffer)[word::STOP].store(stop, Ordering::Release);
    }

    /// Whether one of them is half full.
    pub fn is_half_full(&self) -> bool {
        (0..self.cpus.len()).any(|buffer| {
            let head = self.cursor(buffer)[word::HEAD].load(Ordering::Relaxed);
            head - self.done[buffer] > self.places / 2
        })
    }

    /// Takes out what was there at the last look, so that whoever wrote it has long come to
    /// its end; with `all`, when nobody writes any more, the rest too.
    pub fn take(&mut self, buffer: usize, all: bool) -> Taken {
        let now = self.cursor(buffer)[word::HEAD].load(Ordering::Acquire);
        let upto = if all { now } else { self.seen[buffer] };
        let words = &self.events.words()[buffer * self.places as usize * WORDS..];
        let mut taken = Taken::default();
        let mut done = self.done[buffer];
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
        taken.lost = self.lost(buffer);
        self.done[buffer] = done;
        self.seen[buffer] = now;
        self.set_stop(buffer);
        taken
    }

    fn lost(&self, buffer: usize) -> u64 {
        self.cursor(buffer)[word::LOST].load(Ordering::Relaxed)
    }

    /// What buffers that begin anew have now; they keep it. An event that a program is about
    /// to write may be missing.
    pub fn copies(&self) -> Vec<Taken> {
        let heads = (0..self.cpus.len()).map(|buffer| &self.cursor(buffer)[word::HEAD]);
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
        let head = self.cursor(buffer)[word::HEAD].load(Ordering::Acquire);
        let upto = std::mem::replace(&mut self.seen[buffer], head);
        let from = std::mem::replace(&mut self.watched[buffer], upto);
        self.copy(buffer, from, upto)
    }

    /// Events with these numbers, as far as they are still there while others are written.
    fn copy(&self, buffer: usize, begin: u64, upto: u64) -> Taken {
        let head = &self.cursor(buffer)[word::HEAD];
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
            lost: self.lost(buffer),
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

    /// Of CPUs 1 and 3 of four, with `places` each.
    fn rings_of(places: u32, full: Full) -> Rings<Vec<AtomicU64>> {
        let events = words(2 * places as usize * WORDS);
        let cursors = words(4 * CURSOR_WORDS);
        Rings::new(events, cursors, &[1, 3], Without::Absent, places, full)
    }

    fn rings() -> Rings<Vec<AtomicU64>> {
        rings_of(8, Full::BeginsAnew)
    }

    #[test]
    fn each_cpu_has_a_buffer_of_its_own_or_none() {
        let rings = rings_of(64, Full::Loses);
        let cursor = |cpu: usize| {
            let words = rings.cursors[cpu * CURSOR_WORDS..].iter();
            words
                .map(|word| word.load(Ordering::Relaxed))
                .take(5)
                .collect::<Vec<_>>()
        };
        assert_eq!(cursor(0), [0, 0, 0, 0, 1]);
        assert_eq!(cursor(1), [0, 48, 0, 0, 63]);
        assert_eq!(cursor(2), [0, 0, 0, 0, 1]);
        assert_eq!(cursor(3), [0, 48, 0, 64, 63]);
    }

    #[test]
    fn what_is_taken_out_makes_room() {
        let mut rings = rings_of(64, Full::Loses);
        (1..=40).for_each(|time| put(&rings, 0, time));
        rings.take(0, true);
        let stop = |buffer| rings.cursor(buffer)[word::STOP].load(Ordering::Relaxed);
        assert_eq!((stop(0), stop(1)), (88, 48));
    }

    /// As the BPF side does it.
    fn put(rings: &Rings<Vec<AtomicU64>>, buffer: usize, time: u64) {
        let cursor = rings.cursor(buffer);
        let place = cursor[word::HEAD].fetch_add(1, Ordering::Relaxed);
        let first = cursor[word::FIRST].load(Ordering::Relaxed);
        let at = (first + place % rings.places) as usize * WORDS;
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
        rings.cursor(1)[word::HEAD].fetch_add(1, Ordering::Relaxed);
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
