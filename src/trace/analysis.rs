// SPDX-License-Identifier: GPL-2.0-only
//! What a trace says: where CPUs spent their time, how long tasks waited for one and who
//! ran meanwhile, and which wake-ups went to a slow CPU although a fast one was soon idle.
//!
//! Where events are missing, what a CPU did is unknown up to its next switch, and waits
//! that began before are not counted.

use super::decided::{histogram, Decisions};
use super::format::{Cpu as Described, Event, Head};
use super::phases::{band, Doing, Phases, BANDS, FULL, UNTOLD};
use super::reader::{Error, Item, Trace};
use super::task_names::MAX_PID;
use super::Kind;
use crate::foreign::Foreign;
use hdrhistogram::Histogram;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io::{Read, Seek};

/// A CPU that goes idle within this time of a wake-up could have taken it, ns.
const INVERSION_NS: u64 = 1_000_000;
/// Runs of a CPU that are remembered, to say who ran while a task waited.
const RUNS: usize = 64;
/// Longest waits that are kept.
const WAITS: usize = 5;
/// TASK_DEAD of the kernel.
const DEAD: u32 = 0x80;

#[derive(Clone, Copy, Debug)]
enum State {
    Unknown,
    Runnable {
        since: u64,
        epoch: u64,
        woken: bool,
        cpu: u16,
    },
    Running,
    Asleep,
}

struct Task {
    name: Foreign,
    state: State,
}

/// One CPU's time, ns, and what happened there.
#[derive(Clone, Debug, Default)]
pub struct CpuTimes {
    /// A task ran.
    pub busy: u64,
    /// None did.
    pub idle: u64,
    /// What it did is not in the trace.
    pub unknown: u64,
    /// Switches.
    pub switches: u64,
    /// Wake-ups for it.
    pub wakeups: u64,
}

#[derive(Default)]
struct Cpu {
    described: Described,
    /// Who runs; none if that is unknown.
    running: Option<u32>,
    since: u64,
    khz: Option<u32>,
    /// Of 1024, by the scheduler's last tick, where frequencies do not tell.
    ticked: Option<u64>,
    times: CpuTimes,
    runs: VecDeque<(u32, u64, u64)>,
    /// Wake-ups of late, with the speed that the CPU had.
    woken: VecDeque<(u64, u64)>,
    /// As `Analysis::phases` has it.
    doing: Doing,
}

impl Cpu {
    /// 0..1024 of the fastest at its best; none where nothing tells.
    fn speed(&self) -> Option<u64> {
        let is_described = self.described.has_frequency() || self.described.capacity.is_some();
        let described = is_described.then(|| self.described.speed(self.khz));
        self.ticked.or(described)
    }

    fn does(&self) -> Doing {
        match self.running {
            None => Doing::Unknown,
            Some(0) => Doing::Idle,
            Some(_) => Doing::Busy(self.speed().map_or(UNTOLD, band)),
        }
    }

    /// What it does may be another thing from now on.
    fn follow(&mut self, now: u64, phases: &mut Phases) {
        let doing = self.does();
        phases.change(now, self.doing, doing);
        self.doing = doing;
    }
}

/// A wait, with who ran meanwhile on the CPU where it began, the longest first.
#[derive(Clone, Debug)]
pub struct Wait {
    /// How long, ns.
    pub ns: u64,
    /// When it began, ns since the trace did.
    pub at: u64,
    /// Who.
    pub pid: u32,
    /// Its name.
    pub name: Foreign,
    /// Where.
    pub cpu: u16,
    /// Whether it was woken; else it was preempted.
    pub woken: bool,
    /// PID, name and ns of those that ran.
    pub meanwhile: Vec<(u32, Foreign, u64)>,
}

/// What a trace says.
pub struct Analysis {
    /// Of the trace.
    pub head: Head,
    /// Events in it.
    pub events: u64,
    /// Events that are missing in it.
    pub lost: u64,
    /// Events that made room for newer ones.
    pub overwritten: u64,
    /// Whether the recorder came to its end.
    pub is_whole: bool,
    /// From begin to end, ns.
    pub elapsed: u64,
    /// By CPU id.
    pub cpus: BTreeMap<u16, CpuTimes>,
    /// Events by kind's number.
    pub kinds: BTreeMap<u16, u64>,
    /// From wake-up to run, ns.
    pub wake_waits: Histogram<u64>,
    /// From preemption to run, ns.
    pub preempted_waits: Histogram<u64>,
    /// Waits that were not counted, for events are missing meanwhile.
    pub uncounted: u64,
    /// Whether CPUs are known to differ in speed.
    pub speeds_known: bool,
    /// Whether some speeds are what our own scheduler took them to be.
    pub speeds_ticked: bool,
    /// How many CPUs ran a task at a time, and how fast.
    pub phases: Phases,
    /// Wake-ups by the speed of the CPU, in eighths of full speed.
    pub by_speed: [u64; BANDS],
    /// Wake-ups for a CPU slower than one that went idle within 1 ms.
    pub inversions: u64,
    /// The longest, the longest first.
    pub longest: Vec<Wait>,
    /// What our own scheduler decided, if it was in charge.
    pub(super) decisions: Decisions,
    tasks: HashMap<u32, Task>,
    running: BTreeMap<u16, Cpu>,
    epoch: u64,
    /// CPUs whose events are missing up to their next one.
    blind: BTreeSet<u16>,
    now: u64,
}

impl Analysis {
    /// Reads all of the trace.
    pub fn of<R: Read + Seek>(trace: Trace<R>) -> Result<Self, Error> {
        Self::with(trace, |_| ())
    }

    /// Reads all of the trace, and passes it on.
    pub fn with<R: Read + Seek>(
        trace: Trace<R>,
        mut also: impl FnMut(Item),
    ) -> Result<Self, Error> {
        let end = trace.end.clone();
        let mut this = Self::new(trace.head.clone());
        this.is_whole = end.is_some();
        this.events = trace.events;
        this.lost = trace.lost;
        trace.replay(|item| {
            this.take(item);
            also(item);
            Ok::<_, Error>(())
        })?;
        let end = end.unwrap_or_default();
        this.lost = (this.lost)
            .saturating_add(end.elsewhere)
            .saturating_add(end.recursion);
        let over = end.overwritten.iter().map(|(_, n)| *n);
        this.overwritten = over.fold(0, u64::saturating_add);
        this.finish(end.end_ns);
        Ok(this)
    }

    fn new(head: Head) -> Self {
        let cpu = |described: &Described| {
            let mut cpu = Cpu {
                described: described.clone(),
                // A flight recorder's first event came long after it began.
                running: described.running.filter(|_| !head.overwrite),
                since: head.begin_ns,
                khz: described.khz,
                ..Cpu::default()
            };
            cpu.doing = cpu.does();
            (described.id, cpu)
        };
        let running: BTreeMap<u16, Cpu> = head.cpus.iter().map(cpu).collect();
        let mut capacities = head.cpus.iter().map(|cpu| cpu.capacity);
        let first = capacities.next();
        let tasks = head.tasks.iter().map(|task| {
            let (name, state) = (task.name.clone(), State::Unknown);
            (task.pid, Task { name, state })
        });
        Self {
            tasks: tasks.collect(),
            phases: Phases::new(head.begin_ns, running.values().map(|cpu| cpu.doing)),
            running,
            speeds_known: capacities.any(|capacity| Some(capacity) != first),
            speeds_ticked: false,
            now: head.begin_ns,
            head,
            events: 0,
            lost: 0,
            overwritten: 0,
            is_whole: false,
            elapsed: 0,
            cpus: BTreeMap::new(),
            kinds: BTreeMap::new(),
            wake_waits: histogram(),
            preempted_waits: histogram(),
            uncounted: 0,
            by_speed: [0; BANDS],
            inversions: 0,
            longest: Vec::new(),
            decisions: Decisions::default(),
            epoch: 0,
            blind: BTreeSet::new(),
        }
    }

    /// Takes what comes next.
    pub fn take(&mut self, item: Item) {
        match item {
            Item::Event(event) => self.event(event),
            Item::Gap { cpu } => {
                self.epoch += 1;
                self.blind.insert(cpu);
                self.decisions.gap();
                self.account(cpu, self.now, None);
            }
        }
    }

    fn event(&mut self, event: Event) {
        self.blind.remove(&event.cpu);
        *self.kinds.entry(event.kind).or_default() += 1;
        self.now = self.now.max(event.time);
        let now = self.now;
        if event.pid >= MAX_PID {
            return;
        }
        match Kind::from_number(event.kind) {
            Some(Kind::Fork) => {
                let name = self.name(event.low());
                let state = State::Asleep;
                self.tasks.insert(event.pid, Task { name, state });
            }
            Some(Kind::Name) => self.task(event.pid).name = named(&event.arg.to_le_bytes()),
            Some(Kind::NameRest) => {
                let task = self.task(event.pid);
                let mut bytes = task.name.raw().as_bytes().to_vec();
                bytes.extend(event.arg.to_le_bytes());
                task.name = named(&bytes);
            }
            Some(Kind::Wakeup | Kind::WakeupNew) => self.woken(now, event),
            Some(Kind::Migrate) => {
                let to = event.low() as u16;
                if let State::Runnable { cpu, .. } = &mut self.task(event.pid).state {
                    *cpu = to;
                }
            }
            Some(Kind::Frequency) => {
                self.speeds_known = true;
                if let Some(cpu) = self.running.get_mut(&(event.high() as u16)) {
                    cpu.khz = Some(event.low());
                    cpu.follow(now, &mut self.phases);
                }
            }
            Some(Kind::Tick) => {
                if let Some(cpu) = self.running.get_mut(&event.cpu) {
                    if !cpu.described.has_frequency() {
                        cpu.ticked = Some(u64::from(event.low()).min(FULL));
                        cpu.follow(now, &mut self.phases);
                        (self.speeds_known, self.speeds_ticked) = (true, true);
                    }
                }
            }
            Some(Kind::Switch) => self.switched(now, event),
            Some(_) => self.decisions.take(&event),
            None => {}
        }
    }

    fn task(&mut self, pid: u32) -> &mut Task {
        self.tasks.entry(pid).or_insert_with(|| Task {
            name: Foreign::default(),
            state: State::Unknown,
        })
    }

    fn name(&self, pid: u32) -> Foreign {
        self.tasks
            .get(&pid)
            .map(|t| t.name.clone())
            .unwrap_or_default()
    }

    fn woken(&mut self, now: u64, event: Event) {
        let to = event.high() as u16;
        let epoch = self.epoch;
        let task = self.task(event.pid);
        // Woken before it could sleep: it never left.
        if let State::Running | State::Runnable { .. } = task.state {
            return;
        }
        task.state = State::Runnable {
            since: now,
            epoch,
            woken: true,
            cpu: to,
        };
        if let Some(cpu) = self.running.get_mut(&to) {
            cpu.times.wakeups += 1;
            let Some(speed) = cpu.speed() else { return };
            self.by_speed[band(speed)] += 1;
            cpu.woken.push_back((now, speed));
            while cpu
                .woken
                .front()
                .is_some_and(|(at, _)| at + INVERSION_NS < now)
            {
                cpu.woken.pop_front();
            }
        }
    }

    /// What the CPU has done since it was looked at last; from now on `next` runs.
    fn account(&mut self, id: u16, now: u64, next: Option<u32>) {
        let Some(cpu) = self.running.get_mut(&id) else {
            return;
        };
        let ns = now.saturating_sub(cpu.since);
        match cpu.running {
            None => cpu.times.unknown += ns,
            Some(0) => cpu.times.idle += ns,
            Some(pid) => {
                cpu.times.busy += ns;
                if cpu.runs.len() == RUNS {
                    cpu.runs.pop_front();
                }
                cpu.runs.push_back((pid, cpu.since, now));
            }
        }
        cpu.running = next;
        cpu.since = now;
        cpu.follow(now, &mut self.phases);
    }

    fn switched(&mut self, now: u64, event: Event) {
        let (next, prev, state) = (event.pid, event.low(), event.high());
        let id = event.cpu;
        if let Some(cpu) = self.running.get_mut(&id) {
            cpu.times.switches += 1;
            // Where the one that leaves came without a switch, it ran since the last one.
            if cpu.running.is_some_and(|running| running != prev) {
                cpu.running = None;
            }
        }
        self.account(id, now, Some(next));
        if prev != 0 && prev < MAX_PID {
            let epoch = self.epoch;
            if state & DEAD != 0 {
                // Its PID may come again.
                self.task(prev).state = State::Asleep;
            } else {
                self.task(prev).state = match state {
                    0 => State::Runnable {
                        since: now,
                        epoch,
                        woken: false,
                        cpu: id,
                    },
                    _ => State::Asleep,
                };
            }
        }
        if next != 0 {
            self.runs(now, next);
        } else {
            self.went_idle(now, id);
        }
    }

    fn runs(&mut self, now: u64, pid: u32) {
        let epoch = self.epoch;
        let task = self.task(pid);
        let State::Runnable {
            since,
            epoch: began,
            woken,
            cpu,
        } = std::mem::replace(&mut task.state, State::Running)
        else {
            return;
        };
        // On a CPU whose events are missing it may have run and been woken again.
        if began != epoch || !self.blind.is_empty() {
            self.uncounted += 1;
            return;
        }
        let ns = now.saturating_sub(since);
        let waits = match woken {
            true => &mut self.wake_waits,
            false => &mut self.preempted_waits,
        };
        waits.saturating_record(ns);
        if self.longest.len() == WAITS && self.longest.last().is_some_and(|l| l.ns >= ns) {
            return;
        }
        let at = self.longest.partition_point(|longer| longer.ns >= ns);
        self.longest.insert(
            at,
            Wait {
                ns,
                at: since.saturating_sub(self.head.begin_ns),
                pid,
                name: self.name(pid),
                cpu,
                woken,
                meanwhile: self.meanwhile(cpu, since, now),
            },
        );
        self.longest.truncate(WAITS);
    }

    fn meanwhile(&self, cpu: u16, since: u64, now: u64) -> Vec<(u32, Foreign, u64)> {
        let mut sums = HashMap::<u32, u64>::new();
        let Some(cpu) = self.running.get(&cpu) else {
            return Vec::new();
        };
        let present = cpu.running.filter(|pid| *pid != 0);
        let present = present.map(|pid| (pid, cpu.since, now));
        for (pid, from, to) in cpu.runs.iter().copied().chain(present) {
            let ns = to.min(now).saturating_sub(from.max(since));
            if ns > 0 {
                *sums.entry(pid).or_default() += ns;
            }
        }
        let mut sums: Vec<_> = (sums.into_iter())
            .map(|(pid, ns)| (pid, self.name(pid), ns))
            .collect();
        sums.sort_by_key(|(pid, _, ns)| (std::cmp::Reverse(*ns), *pid));
        sums
    }

    /// Wake-ups of late that went to slower CPUs could have come here.
    fn went_idle(&mut self, now: u64, id: u16) {
        let Some(speed) = self.running.get(&id).and_then(Cpu::speed) else {
            return;
        };
        for (other, cpu) in &mut self.running {
            let within = |at: u64| at.saturating_add(INVERSION_NS) >= now;
            if *other != id && cpu.woken.back().is_some_and(|(at, _)| within(*at)) {
                let before = cpu.woken.len();
                cpu.woken
                    .retain(|(at, slow)| !(within(*at) && *slow < speed));
                self.inversions += (before - cpu.woken.len()) as u64;
            }
        }
    }

    fn finish(&mut self, end_ns: u64) {
        self.now = self.now.max(end_ns);
        self.phases.advance(self.now);
        let ids: Vec<u16> = self.running.keys().copied().collect();
        for id in ids {
            self.account(id, self.now, None);
        }
        self.elapsed = self.now.saturating_sub(self.head.begin_ns);
        let cpus = std::mem::take(&mut self.running);
        self.cpus = cpus.into_iter().map(|(id, cpu)| (id, cpu.times)).collect();
    }
}

fn named(bytes: &[u8]) -> Foreign {
    crate::raw::text(bytes)
}

#[cfg(test)]
#[path = "analysis_tests.rs"]
mod tests;
