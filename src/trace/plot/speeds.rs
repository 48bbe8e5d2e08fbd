// SPDX-License-Identifier: GPL-2.0-only
//! How fast and how busy each CPU was, in equal parts of the trace's time. How long that is, is
//! known at its end only: as it grows, two parts become one.

use super::super::format::{Cpu, Head};
use super::super::reader::Item;
use super::super::Kind;
use std::collections::BTreeMap;

/// Parts of the time at most; finer than this is not seen.
pub const PARTS: usize = 800;
/// To begin with, ns.
const FINEST: u64 = 1000;

/// What one CPU did in one part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Part {
    /// Speed by time, 0..1024 times ns.
    speed: u128,
    /// ns in which a task ran.
    busy: u64,
    /// ns that are known at all.
    known: u64,
}

impl Part {
    /// Mean speed, 0..1; none if nothing is known.
    pub fn speed(&self) -> Option<f64> {
        const FULL: f64 = 1024.0;
        (self.known > 0).then(|| self.speed as f64 / self.known as f64 / FULL)
    }

    /// Share of the time in which a task ran, 0..1.
    pub fn busy(&self) -> f64 {
        self.busy as f64 / self.known.max(1) as f64
    }

    fn add(&mut self, other: Self) {
        self.speed += other.speed;
        self.busy += other.busy;
        self.known += other.known;
    }
}

struct Lane {
    cpu: Cpu,
    khz: Option<u32>,
    /// Of 1024, by the scheduler's tick, where frequencies do not tell.
    ticked: Option<u32>,
    /// Who runs; none if that is not known.
    running: Option<u32>,
    since: u64,
    parts: Vec<Part>,
}

/// All CPUs.
pub struct Speeds {
    /// When it began, once that is known.
    begin: Option<u64>,
    now: u64,
    width: u64,
    lanes: BTreeMap<u16, Lane>,
}

impl Speeds {
    /// Of a trace with this head.
    pub fn new(head: &Head) -> Self {
        let lane = |cpu: &Cpu| {
            let lane = Lane {
                khz: cpu.khz,
                ticked: None,
                // A flight recorder's first event came long after it began.
                running: cpu.running.filter(|_| !head.overwrite),
                since: 0,
                parts: Vec::new(),
                cpu: cpu.clone(),
            };
            (cpu.id, lane)
        };
        Self {
            begin: (!head.overwrite).then_some(head.begin_ns),
            now: 0,
            width: FINEST,
            lanes: head.cpus.iter().map(lane).collect(),
        }
    }

    /// Takes what comes next.
    pub fn take(&mut self, item: Item) {
        let event = match item {
            Item::Event(event) => event,
            Item::Gap { cpu } => return self.goes_on(cpu, |lane| lane.running = None),
        };
        let begin = *self.begin.get_or_insert(event.time);
        self.now = self.now.max(event.time.saturating_sub(begin));
        match Kind::from_number(event.kind) {
            Some(Kind::Switch) => {
                self.goes_on(event.cpu, |lane| lane.running = Some(event.pid));
            }
            Some(Kind::Frequency) => {
                let khz = Some(event.low());
                self.goes_on(event.high() as u16, |lane| lane.khz = khz);
            }
            Some(Kind::Tick) => {
                let speed = Some(event.low());
                self.goes_on(event.cpu, |lane| {
                    lane.ticked = speed.filter(|_| !lane.cpu.has_frequency());
                });
            }
            _ => {}
        }
    }

    /// Nothing comes any more; `end_ns` is that of the trace's clock, 0 if it is not known.
    pub fn finish(&mut self, end_ns: u64) {
        let begin = self.begin.unwrap_or(end_ns);
        self.now = self.now.max(end_ns.saturating_sub(begin));
        let ids: Vec<u16> = self.lanes.keys().copied().collect();
        ids.into_iter().for_each(|id| self.goes_on(id, |_| ()));
    }

    /// The CPU has been as it was until now, and is changed.
    fn goes_on(&mut self, id: u16, change: impl FnOnce(&mut Lane)) {
        let now = self.now;
        while now.div_ceil(self.width) > PARTS as u64 {
            self.width *= 2;
            self.lanes.values_mut().for_each(Lane::halve);
        }
        if let Some(lane) = self.lanes.get_mut(&id) {
            lane.until(now, self.width);
            change(lane);
        }
    }

    /// Length of all of it, ns.
    pub fn length(&self) -> u64 {
        self.now
    }

    /// Length of a part, ns.
    pub fn width(&self) -> u64 {
        self.width
    }

    /// By id: each CPU and its parts.
    pub fn lanes(&self) -> impl ExactSizeIterator<Item = (u16, &[Part])> {
        self.lanes.iter().map(|(id, lane)| (*id, &lane.parts[..]))
    }
}

impl Lane {
    /// Two parts each become one.
    fn halve(&mut self) {
        let pair = |pair: &[Part]| {
            let mut sum = Part::default();
            pair.iter().for_each(|part| sum.add(*part));
            sum
        };
        self.parts = self.parts.chunks(2).map(pair).collect();
    }

    fn until(&mut self, now: u64, width: u64) {
        let described = || self.cpu.speed(self.khz);
        let speed = self.ticked.map_or_else(described, u64::from).min(1024);
        while self.since < now {
            let at = self.since / width;
            let to = now.min((at + 1) * width);
            let ns = to - self.since;
            self.since = to;
            let Some(running) = self.running else {
                continue;
            };
            let at = at as usize;
            if self.parts.len() <= at {
                self.parts.resize(at + 1, Part::default());
            }
            self.parts[at].add(Part {
                speed: u128::from(speed) * u128::from(ns),
                busy: if running == 0 { 0 } else { ns },
                known: ns,
            });
        }
    }
}
