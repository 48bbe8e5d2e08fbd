// SPDX-License-Identifier: GPL-2.0-only
//! Puts frequencies into a trace whose kernel knew none, where they are known from elsewhere:
//! the simulated machine has what its guest cannot see.

use super::format::{Event, Head};
use super::reader::{Chunk, Error, Trace};
use super::writer::Writer;
use super::{Failed, Kind};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek, Write};

/// Of one CPU.
#[derive(Clone, Debug, Default)]
pub struct Frequencies {
    /// Work per time at the highest one, of 1024.
    pub capacity: u32,
    /// The highest one.
    pub max_khz: u32,
    /// From when on which one, kHz, by the trace's clock in ns; by time.
    pub changes: Vec<(u64, u32)>,
}

impl Frequencies {
    /// The one that there was at that time; none before the first.
    fn at(&self, time: u64) -> Option<u32> {
        let later = self.changes.partition_point(|(since, _)| *since <= time);
        Some(self.changes[later.checked_sub(1)?].1)
    }
}

fn with_frequencies(head: &Head, known: &BTreeMap<u16, Frequencies>) -> Head {
    let mut head = head.clone();
    for cpu in &mut head.cpus {
        if let Some(known) = known.get(&cpu.id) {
            cpu.capacity = Some(known.capacity);
            cpu.max_khz = Some(known.max_khz);
            cpu.khz = known.at(head.begin_ns);
        }
    }
    head
}

fn event(cpu: u16, time: u64, khz: u32) -> Event {
    Event {
        time,
        pid: 0,
        kind: Kind::Frequency as u16,
        cpu,
        arg: u64::from(cpu) << 32 | u64::from(khz),
    }
}

/// Writes the trace with the frequencies of these CPUs, by id, in its head and among its
/// events. Errors if it has no end, too.
pub fn add<R: Read + Seek, W: Write>(
    mut trace: Trace<R>,
    known: &BTreeMap<u16, Frequencies>,
    to: W,
) -> Result<W, Failed> {
    let Some(end) = trace.end.clone() else {
        return Err(Error::NoEnd.into());
    };
    let begin = trace.head.begin_ns;
    let mut writer = Writer::new(to, &with_frequencies(&trace.head, known))?;
    let cpus: BTreeSet<u16> = trace.cpus().chain(known.keys().copied()).collect();
    for cpu in cpus {
        let changes = known.get(&cpu).map_or(&[][..], |known| &known.changes);
        let mut changes = (changes.iter())
            .filter(|(time, _)| (begin + 1..=end.end_ns).contains(time))
            .map(|(time, khz)| event(cpu, *time, *khz))
            .peekable();
        for chunk in trace.of_cpu(cpu) {
            match trace.chunk(chunk)? {
                Chunk::Gap(lost) => writer.gap(cpu, lost)?,
                Chunk::Events(events) => {
                    let mut merged = Vec::with_capacity(events.len());
                    for event in events {
                        while let Some(change) = changes.next_if(|change| change.time < event.time)
                        {
                            merged.push(change);
                        }
                        merged.push(event);
                    }
                    writer.events(cpu, &merged)?;
                }
            }
        }
        writer.events(cpu, &changes.collect::<Vec<_>>())?;
    }
    Ok(writer.end(&end)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::for_a_while;
    use crate::trace::format::{Cpu, End};
    use crate::trace::reader::Item;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::io::Cursor;

    fn head() -> Head {
        let cpu = |id| Cpu {
            id,
            ..Cpu::default()
        };
        Head {
            begin_ns: 100,
            cpus: vec![cpu(0), cpu(1)],
            ..Head::default()
        }
    }

    fn trace(fill: impl FnOnce(&mut Writer<Vec<u8>>)) -> Trace<Cursor<Vec<u8>>> {
        let mut writer = Writer::new(Vec::new(), &head()).unwrap();
        fill(&mut writer);
        let end = End {
            end_ns: 1000,
            ..End::default()
        };
        Trace::open(Cursor::new(writer.end(&end).unwrap())).unwrap()
    }

    /// Without gaps: a frequency where events are missing ends the gap.
    fn events(trace: Trace<Cursor<Vec<u8>>>) -> Vec<Event> {
        let mut events = Vec::new();
        trace
            .replay(|item| {
                if let Item::Event(event) = item {
                    events.push(event);
                }
                Ok::<_, Error>(())
            })
            .unwrap();
        events
    }

    fn added(
        trace: Trace<Cursor<Vec<u8>>>,
        known: &BTreeMap<u16, Frequencies>,
    ) -> Trace<Cursor<Vec<u8>>> {
        let bytes = add(trace, known, Vec::new()).unwrap();
        Trace::open(Cursor::new(bytes)).unwrap()
    }

    #[test]
    fn they_are_in_the_head_and_among_the_events_and_nothing_else_changes() {
        let any_events = vec((0..2u16, vec(100..1000u64, 0..5), any::<bool>()), 0..6);
        let any_changes = vec((0..1200u64, 1..5u32), 0..20);
        for_a_while((any_events, any_changes), |(chunks, mut changes)| {
            changes.sort();
            let mut times = [Vec::new(), Vec::new()];
            for (cpu, chunk, _) in &chunks {
                times[usize::from(*cpu)].extend(chunk);
            }
            times
                .iter_mut()
                .for_each(|times: &mut Vec<u64>| times.sort());
            let make = || {
                let mut times = times.clone().map(|times| times.into_iter());
                trace(|writer| {
                    for (cpu, chunk, gap) in &chunks {
                        let next = times[usize::from(*cpu)].by_ref().take(chunk.len());
                        let event = |time| Event {
                            kind: 2,
                            ..event(*cpu, time, 7)
                        };
                        writer
                            .events(*cpu, &next.map(event).collect::<Vec<_>>())
                            .unwrap();
                        if *gap {
                            writer.gap(*cpu, 3).unwrap();
                        }
                    }
                })
            };
            let known = Frequencies {
                capacity: 512,
                max_khz: 4,
                changes: changes.clone(),
            };
            let with = added(make(), &BTreeMap::from([(1, known)]));
            let cpus = &with.head.cpus;
            prop_assert_eq!(&cpus[0], &head().cpus[0]);
            prop_assert_eq!((cpus[1].capacity, cpus[1].max_khz), (Some(512), Some(4)));
            let before = changes.iter().rfind(|(time, _)| *time <= 100);
            prop_assert_eq!(cpus[1].khz, before.map(|(_, khz)| *khz));
            prop_assert_eq!(with.lost, make().lost);
            prop_assert_eq!(with.end.as_ref().unwrap().end_ns, 1000);
            let is_new = |event: &Event| event.kind == Kind::Frequency as u16;
            let (new, old): (Vec<_>, Vec<_>) = events(with).into_iter().partition(is_new);
            prop_assert_eq!(old, events(make()));
            let wanted = changes
                .iter()
                .filter(|(time, _)| *time > 100 && *time <= 1000);
            let wanted: Vec<_> = wanted.map(|(time, khz)| event(1, *time, *khz)).collect();
            prop_assert_eq!(new, wanted);
            Ok(())
        });
    }

    #[test]
    fn a_trace_without_an_end_is_refused() {
        let bytes = Writer::new(Vec::new(), &head()).unwrap();
        let whole = bytes.end(&End::default()).unwrap();
        let cut = Trace::open(Cursor::new(whole[..whole.len() - 1].to_vec())).unwrap();
        let refused = add(cut, &BTreeMap::new(), Vec::new()).unwrap_err();
        assert!(refused.to_string().contains("no end"), "{refused}");
    }
}
