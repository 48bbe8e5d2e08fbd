// SPDX-License-Identifier: GPL-2.0-only
//! The events of a trace by CPU, as columns: who runs, how fast, and how many wait.

use super::super::format::{Cpu, Event, Head, MAX_CPUS};
use super::super::lock_waits::Locks;
use super::super::reader::Item;
use super::super::task_names::{Names, MAX_PID};
use super::super::Kind;
use crate::foreign::Foreign;
use std::collections::{BTreeMap, HashMap};

/// Index of the idle task.
pub const IDLE: u32 = 0;
/// Index of whoever runs where events are missing.
pub const UNKNOWN: u32 = 1;
/// The kind of a gap, which no event has.
pub const GAP: u8 = 255;
/// The task that runs waits for a lock, as those that spin do.
pub const WAITS: u16 = 1;
/// The task that runs holds a lock for which others wait.
pub const HOLDS: u16 = 2;
/// What a browser's numbers count to without a loss, ns.
const LONGEST: u64 = 1 << 53;
/// Full speed.
pub const FULL: u16 = 1024;

/// The events of one CPU, each a row of these columns, by time.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// ns since the trace began.
    pub time: Vec<u64>,
    /// Number of its kind, or [`GAP`].
    pub kind: Vec<u8>,
    /// Index of its task.
    pub task: Vec<u32>,
    /// Lower half of its argument.
    pub low: Vec<u32>,
    /// Upper half.
    pub high: Vec<u32>,
}

/// From that time on it is so much.
fn step(steps: &mut Vec<(u64, u16)>, time: u64, value: u16) {
    match steps.last_mut() {
        Some(last) if last.0 >= time => last.1 = value,
        _ => steps.push((time, value)),
    }
}

/// One CPU, from a time on.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    /// As it was described.
    pub cpu: Cpu,
    /// ns since the trace began.
    pub from: u64,
    /// Index of who ran then.
    pub running: u32,
    /// Its speed then; none if it is not known.
    pub first_speed: Option<u16>,
    /// What happened there; changes of its frequency, wherever they were recorded.
    pub events: Columns,
    /// How many runnable tasks wait there from a time on.
    pub queue: Vec<(u64, u16)>,
    /// What the task that runs has to do with locks from a time on: 0, [`WAITS`] or [`HOLDS`].
    pub locked: Vec<(u64, u16)>,
    waiting: u16,
    running_pid: u32,
}

impl Lane {
    fn push(&mut self, time: u64, kind: u8, task: u32, low: u32, high: u32) {
        let events = &mut self.events;
        // An interrupt between two events may have swapped their times.
        let time = time.max(events.time.last().copied().unwrap_or(self.from));
        events.time.push(time);
        events.kind.push(kind);
        events.task.push(task);
        events.low.push(low);
        events.high.push(high);
    }

    fn waits(&mut self, time: u64, waiting: u16) {
        self.waiting = waiting;
        step(&mut self.queue, time, waiting);
    }

    fn lock(&mut self, time: u64, locks: &Locks) {
        let state = match self.running_pid {
            0 => 0,
            pid if locks.is_awaited(pid) => HOLDS,
            pid if locks.waits(pid) => WAITS,
            _ => 0,
        };
        if self.locked.last().map_or(0, |last| last.1) != state {
            step(&mut self.locked, time, state);
        }
    }

    /// Speed by that frequency; none if it is not known.
    pub fn speed(&self, khz: Option<u32>) -> Option<u16> {
        let known = self.cpu.capacity.is_some() || (khz.is_some() && self.cpu.max_khz.is_some());
        known.then(|| self.cpu.speed(khz).min(FULL.into()) as u16)
    }

    /// What runs from when to when, and how fast, without anything between. What runs at the
    /// end, and how fast.
    pub fn spans(
        &self,
        end: u64,
        mut take: impl FnMut(u64, u64, u32, Option<u16>),
    ) -> (u32, Option<u16>) {
        let (mut from, mut running, mut speed) = (self.from, self.running, self.first_speed);
        for at in 0..self.events.time.len() {
            let next = match self.events.kind[at] {
                GAP => (UNKNOWN, speed),
                kind if kind == Kind::Switch as u8 => (self.events.task[at], speed),
                kind if kind == Kind::Frequency as u8 => {
                    (running, self.speed(Some(self.events.low[at])))
                }
                kind if kind == Kind::Tick as u8 && !self.cpu.has_frequency() => {
                    let speed = self.events.low[at].min(FULL.into());
                    (running, Some(speed as u16))
                }
                _ => continue,
            };
            let time = self.events.time[at].min(end);
            if next != (running, speed) {
                if time > from {
                    take(from, time, running, speed);
                }
                from = time.max(from);
                (running, speed) = next;
            }
        }
        if end > from {
            take(from, end, running, speed);
        }
        (running, speed)
    }

    /// Forgets what was before, but not what it led to.
    fn cut(&mut self, now: u64) {
        (self.running, self.first_speed) = self.spans(now, |_, _, _, _| ());
        self.from = now;
        self.events = Columns::default();
        for steps in [&mut self.queue, &mut self.locked] {
            if let Some((_, value)) = steps.pop() {
                *steps = vec![(now, value)];
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Waits(u16),
    Runs,
    Other,
}

/// PIDs with names: one for each name that a task had.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    /// By index.
    pub list: Vec<(u32, Foreign)>,
    indices: HashMap<(u32, String), u32>,
}

impl Tasks {
    /// [`IDLE`] and [`UNKNOWN`].
    fn new() -> Self {
        Self {
            list: vec![(0, "idle".into()), (0, "unknown".into())],
            indices: HashMap::new(),
        }
    }

    fn index(&mut self, pid: u32, name: String) -> u32 {
        let list = &mut self.list;
        let index = |(pid, name): &(u32, String)| {
            list.push((*pid, name.as_str().into()));
            list.len() as u32 - 1
        };
        *self.indices.entry((pid, name)).or_insert_with_key(index)
    }
}

/// A trace by CPU.
#[derive(Clone, Debug)]
pub struct Lanes {
    /// By id.
    pub lanes: BTreeMap<u16, Lane>,
    /// All that there were so far.
    pub tasks: Tasks,
    /// When it began, ns of its clock.
    pub begin: u64,
    /// How long it is, ns.
    pub span: u64,
    /// Events, gaps not counted.
    pub count: u64,
}

/// Makes them.
#[derive(Clone, Debug)]
pub struct Builder {
    /// As far as they are known.
    pub lanes: Lanes,
    /// Time of the latest event so far, ns since the trace began.
    pub now: u64,
    names: Names,
    indices: HashMap<u32, u32>,
    states: HashMap<u32, State>,
    locks: Locks,
    has_begun: bool,
    /// Up to when all is forgotten.
    from: u64,
}

impl Builder {
    /// Of a trace with this head.
    pub fn new(head: &Head) -> Self {
        let lanes = Lanes {
            lanes: BTreeMap::new(),
            tasks: Tasks::new(),
            begin: head.begin_ns,
            span: 0,
            count: 0,
        };
        let mut this = Self {
            lanes,
            names: Names::new(head),
            indices: HashMap::from([(0, IDLE)]),
            states: HashMap::new(),
            locks: Locks::default(),
            // A flight recorder's first event came long after it began.
            has_begun: !head.overwrite,
            now: 0,
            from: 0,
        };
        for cpu in &head.cpus {
            let running = match cpu.running.filter(|_| !head.overwrite) {
                Some(pid) if pid < MAX_PID => this.index(pid),
                _ => UNKNOWN,
            };
            let mut lane = Lane {
                cpu: cpu.clone(),
                running,
                running_pid: this.lanes.tasks.list[running as usize].0,
                ..Lane::default()
            };
            lane.first_speed = lane.speed(cpu.khz);
            this.lanes.lanes.insert(cpu.id, lane);
        }
        this
    }

    /// Of the task with the name that it has now.
    fn index(&mut self, pid: u32) -> u32 {
        if let Some(index) = self.indices.get(&pid) {
            return *index;
        }
        let name = self.names.of(pid).into_owned();
        let index = self.lanes.tasks.index(pid, name);
        self.indices.insert(pid, index);
        index
    }

    fn lane(&mut self, id: u16) -> &mut Lane {
        let from = self.from;
        self.lanes.lanes.entry(id).or_insert_with(|| Lane {
            from,
            cpu: Cpu {
                id,
                ..Cpu::default()
            },
            running: UNKNOWN,
            ..Lane::default()
        })
    }

    /// When that is, ns since the trace began.
    pub fn time(&self, item: &Item) -> u64 {
        match item {
            Item::Event(event) if self.has_begun => {
                event.time.saturating_sub(self.lanes.begin).min(LONGEST)
            }
            _ => self.now,
        }
    }

    /// Forgets the events so far, but not what they led to.
    pub fn cut(&mut self) {
        self.from = self.now;
        for lane in self.lanes.lanes.values_mut() {
            lane.cut(self.now);
        }
    }

    /// What it remembers of tasks and CPUs: entries.
    pub fn size(&self) -> usize {
        self.names.size() + self.indices.len() + self.states.len() + self.lanes.lanes.len()
    }

    /// Takes what comes next.
    pub fn take(&mut self, item: Item) {
        let event = match item {
            Item::Event(event) if event.pid >= MAX_PID => return,
            Item::Event(event) => event,
            Item::Gap { cpu } => return self.gap(cpu),
        };
        if !self.has_begun {
            self.has_begun = true;
            self.lanes.begin = event.time;
        }
        self.lanes.count += 1;
        let time = self.time(&item);
        self.now = self.now.max(time);
        if self.names.take(&event) {
            self.indices.remove(&event.pid);
        }
        if self.locks.take(&event).is_some() {
            self.lock_all();
        }
        let task = self.index(event.pid);
        let kind = u8::try_from(event.kind).unwrap_or(GAP - 1).min(GAP - 1);
        let (low, high) = (event.low(), event.high());
        let mut on = event.cpu;
        match Kind::from_number(event.kind) {
            Some(Kind::Switch) => self.switched(&event),
            Some(Kind::Wakeup | Kind::WakeupNew) => self.woken(event.pid, high),
            Some(Kind::Migrate) => {
                if let Some(State::Waits(_)) = self.states.get(&event.pid) {
                    self.set(event.pid, waits_on(low));
                }
            }
            Some(Kind::Frequency) if (high as usize) < MAX_CPUS => on = high as u16,
            Some(Kind::Frequency) => return,
            _ => {}
        }
        self.lane(on).push(time, kind, task, low, high);
    }

    /// Who ran and who waited there is not known any more.
    fn gap(&mut self, cpu: u16) {
        let now = self.now;
        self.states.retain(|_, state| *state != State::Waits(cpu));
        self.locks.forget();
        self.lock_all();
        let lane = self.lane(cpu);
        lane.push(now, GAP, UNKNOWN, 0, 0);
        if lane.waiting > 0 {
            lane.waits(now, 0);
        }
    }

    fn woken(&mut self, pid: u32, on: u32) {
        // Woken before it could sleep, it never left.
        if !matches!(self.states.get(&pid), Some(State::Waits(_) | State::Runs)) {
            self.set(pid, waits_on(on));
        }
    }

    fn switched(&mut self, event: &Event) {
        let (prev, state) = (event.low(), event.high());
        if prev != 0 && prev < MAX_PID {
            let waits = state == 0;
            self.set(
                prev,
                if waits {
                    State::Waits(event.cpu)
                } else {
                    State::Other
                },
            );
        }
        if event.pid != 0 {
            self.set(event.pid, State::Runs);
        }
        self.lane(event.cpu).running_pid = event.pid;
        let now = self.now;
        if let Some(lane) = self.lanes.lanes.get_mut(&event.cpu) {
            lane.lock(now, &self.locks);
        }
    }

    /// A wait for a lock began or is over: it may be that of a task that runs anywhere.
    fn lock_all(&mut self) {
        for lane in self.lanes.lanes.values_mut() {
            lane.lock(self.now, &self.locks);
        }
    }

    fn set(&mut self, pid: u32, state: State) {
        let now = self.now;
        let before = self.states.insert(pid, state).unwrap_or(State::Other);
        if before == state {
            return;
        }
        if let State::Waits(cpu) = before {
            let lane = self.lane(cpu);
            lane.waits(now, lane.waiting.saturating_sub(1));
        }
        if let State::Waits(cpu) = state {
            let lane = self.lane(cpu);
            lane.waits(now, lane.waiting.saturating_add(1));
        }
    }

    /// How long the trace is, ns, if it ends then by its clock, or has ended before.
    pub fn span(&self, end_ns: u64) -> u64 {
        let end = end_ns.saturating_sub(self.lanes.begin).min(LONGEST);
        self.now.max(end).max(1)
    }

    /// All of them; `end_ns` is that of the trace's clock, 0 if it is not known.
    pub fn finish(mut self, end_ns: u64) -> Lanes {
        self.lanes.span = self.span(end_ns);
        self.lanes
    }
}

fn waits_on(cpu: u32) -> State {
    match u16::try_from(cpu) {
        Ok(cpu) if usize::from(cpu) < MAX_CPUS => State::Waits(cpu),
        _ => State::Other,
    }
}
