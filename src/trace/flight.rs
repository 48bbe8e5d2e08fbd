// SPDX-License-Identifier: GPL-2.0-only
//! What the buffers of a flight recorder have at one time, as a trace: it begins where the
//! oldest event of the CPUs whose buffers have begun anew is.

use super::format::{End, Event, Head};
use super::ring::Taken;
use super::writer::Writer;
use super::Kind;
use std::io::{self, Write};

/// A trace that is not written yet.
pub struct Flight {
    head: Head,
    /// By CPU.
    lanes: Vec<(u16, Taken)>,
}

impl Flight {
    /// `head` as of the begin of the recording; `lanes` by CPU.
    pub fn new(head: Head, lanes: Vec<(u16, Taken)>) -> Self {
        let mut this = Self { head, lanes };
        let anew = this.lanes.iter().filter(|lane| lane.1.overwritten > 0);
        let oldest = anew.filter_map(|(_, taken)| Some(taken.events.first()?.time));
        if let Some(begin_ns) = oldest.min() {
            this.begin_at(begin_ns);
        }
        this
    }

    /// Leaves out what was before, but for what is known from it.
    fn begin_at(&mut self, begin_ns: u64) {
        let later = begin_ns.saturating_sub(self.head.begin_ns);
        self.head.begin_ns = begin_ns;
        self.head.begin_utc_s += later / 1_000_000_000;
        let mut before: Vec<Event> = Vec::new();
        for (id, taken) in &mut self.lanes {
            if taken.overwritten > 0 {
                let cpus = self.head.cpus.iter_mut().filter(|cpu| cpu.id == *id);
                cpus.for_each(|cpu| cpu.running = None);
            }
            before.extend(taken.events.extract_if(.., |event| event.time < begin_ns));
        }
        before.sort_by_key(|event| event.time);
        for event in before {
            let (kind, of) = match Kind::from_number(event.kind) {
                Some(kind @ Kind::Switch) => (kind, event.cpu),
                Some(kind @ Kind::Frequency) => (kind, event.high() as u16),
                _ => continue,
            };
            for cpu in self.head.cpus.iter_mut().filter(|cpu| cpu.id == of) {
                match kind {
                    Kind::Switch => cpu.running = Some(event.pid),
                    _ => cpu.khz = Some(event.low()),
                }
            }
        }
    }

    /// Events that it has.
    pub fn events(&self) -> u64 {
        self.lanes.iter().map(|(_, t)| t.events.len() as u64).sum()
    }

    /// Writes it; `end` but for what is counted by CPU.
    pub fn write<W: Write>(&self, to: W, mut end: End) -> io::Result<W> {
        let mut writer = Writer::new(to, &self.head)?;
        for (cpu, taken) in &self.lanes {
            if taken.overwritten > 0 {
                // Its first event may be long after those of others.
                writer.gap(*cpu, 0)?;
            }
            writer.events(*cpu, &taken.events)?;
            if taken.overwritten > 0 {
                end.overwritten.push((*cpu, taken.overwritten));
            }
        }
        writer.end(&end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::format::Cpu;
    use crate::trace::reader::{Error, Item, Trace};
    use std::io::Cursor;

    fn event(time: u64, kind: Kind, cpu: u16, pid: u32, arg: u64) -> Event {
        let kind = kind as u16;
        Event {
            time,
            pid,
            kind,
            cpu,
            arg,
        }
    }

    #[test]
    fn it_begins_where_a_busy_cpu_is_known_and_a_quiet_one_has_what_it_had() {
        let cpu = |id| Cpu {
            id,
            running: Some(7),
            khz: Some(800),
            ..Cpu::default()
        };
        let head = Head {
            begin_ns: 1_000,
            overwrite: true,
            cpus: vec![cpu(0), cpu(1)],
            ..Head::default()
        };
        let quiet = Taken {
            events: vec![
                event(1_500, Kind::Switch, 0, 70, 0),
                event(1_600, Kind::Frequency, 0, 0, 1 << 32 | 900),
                event(3_000, Kind::Switch, 0, 71, 70),
            ],
            ..Taken::default()
        };
        let busy = Taken {
            events: vec![event(2_000, Kind::Switch, 1, 8, 9)],
            overwritten: 5,
            ..Taken::default()
        };
        let flight = Flight::new(head, vec![(0, quiet), (1, busy)]);
        assert_eq!(flight.events(), 2);
        let bytes = flight.write(Vec::new(), End::default()).unwrap();
        let trace = Trace::open(Cursor::new(bytes)).unwrap();
        assert_eq!(trace.head.begin_ns, 2_000);
        let known: Vec<_> = (trace.head.cpus.iter())
            .map(|cpu| (cpu.running, cpu.khz))
            .collect();
        assert_eq!(known, [(Some(70), Some(800)), (None, Some(900))]);
        assert_eq!(trace.end.as_ref().unwrap().overwritten, [(1, 5)]);
        let mut items = Vec::new();
        trace
            .replay(|item| {
                items.push(item);
                Ok::<_, Error>(())
            })
            .unwrap();
        let times: Vec<_> = (items.iter())
            .map(|item| match item {
                Item::Event(event) => event.time,
                Item::Gap { cpu } => u64::from(*cpu),
            })
            .collect();
        // A gap comes twice: where it is found, and before the next event.
        assert_eq!(times, [1, 1, 2_000, 3_000]);
    }
}
