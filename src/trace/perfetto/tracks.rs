// SPDX-License-Identifier: GPL-2.0-only
//! Waits for locks, as track events: a track for each lock, with who holds it while others
//! wait, and on the track of each thread its waits. From each of these a flow leads to the
//! lock.

use super::super::format::{Event, Head};
use super::super::lock_waits::{Change, Locks};
use super::super::task_names::Names;
use super::super::Kind;
use super::protobuf as pb;
use std::collections::{HashMap, HashSet};

/// Numbers of tracks: of locks and of threads, by lock and by TID.
const LOCKS: u64 = 1 << 32;
const THREADS: u64 = 2 << 32;

/// What is drawn of locks so far.
pub struct Tracks {
    locks: Locks,
    /// Process by thread.
    processes: HashMap<u32, u32>,
    described: HashSet<u64>,
    /// By lock: the holder whose slice has begun.
    shown: HashMap<u32, u32>,
    /// By thread that waits: which flow leads to its lock.
    flows: HashMap<u32, u64>,
    next_flow: u64,
    packets: Vec<pb::TracePacket>,
}

fn packet(timestamp: u64, event: pb::TrackEvent) -> pb::TracePacket {
    pb::TracePacket {
        timestamp: Some(timestamp),
        track_event: Some(event),
        ..Default::default()
    }
}

impl Tracks {
    /// Of a trace with this head.
    pub fn new(head: &Head) -> Self {
        Self {
            locks: Locks::default(),
            processes: head
                .tasks
                .iter()
                .map(|task| (task.pid, task.tgid))
                .collect(),
            described: HashSet::new(),
            shown: HashMap::new(),
            flows: HashMap::new(),
            next_flow: 1,
            packets: Vec::new(),
        }
    }

    /// Takes what comes next, and says what is to be written of it.
    pub fn take(&mut self, event: &Event, names: &Names) -> Vec<pb::TracePacket> {
        match Kind::from_number(event.kind) {
            Some(Kind::Fork) => {
                self.processes.insert(event.pid, event.high());
            }
            Some(Kind::Exit) => {
                self.processes.remove(&event.pid);
            }
            _ => {}
        }
        let (time, pid) = (event.time, event.pid);
        match self.locks.take(event) {
            Some(Change::Begins { lock }) => {
                // Its last wait had no end.
                self.end_wait(time, pid);
                let flow = self.next_flow;
                self.next_flow += 1;
                self.flows.insert(pid, flow);
                let track = self.thread(pid);
                let wait = pb::TrackEvent::begin(track, format!("waits for lock {lock}"), flow);
                self.packets.push(packet(time, wait));
                self.show_holder(time, lock, names);
                let track = self.lock(lock);
                let arrow = pb::TrackEvent::end_of_flow(track, named(names, pid), flow);
                self.packets.push(packet(time, arrow));
            }
            Some(Change::Held { lock }) => self.show_holder(time, lock, names),
            Some(Change::Ends(wait)) => {
                self.end_wait(time, pid);
                self.show_holder(time, wait.lock, names);
            }
            None => {}
        }
        std::mem::take(&mut self.packets)
    }

    /// Events are missing as of then: nobody waits any more, as far as is known.
    pub fn gap(&mut self, time: u64) -> Vec<pb::TracePacket> {
        self.locks.forget();
        let waiting: Vec<u32> = self.flows.keys().copied().collect();
        waiting.into_iter().for_each(|pid| self.end_wait(time, pid));
        for (lock, _) in std::mem::take(&mut self.shown) {
            let end = pb::TrackEvent::end(LOCKS + u64::from(lock));
            self.packets.push(packet(time, end));
        }
        std::mem::take(&mut self.packets)
    }

    fn end_wait(&mut self, time: u64, pid: u32) {
        if self.flows.remove(&pid).is_some() {
            let end = pb::TrackEvent::end(THREADS + u64::from(pid));
            self.packets.push(packet(time, end));
        }
    }

    /// The slice of the lock's track is that of its present holder.
    fn show_holder(&mut self, time: u64, lock: u32, names: &Names) {
        let (holder, shown) = (self.locks.holder(lock), self.shown.get(&lock).copied());
        if holder == shown {
            return;
        }
        let track = self.lock(lock);
        if shown.is_some() {
            self.packets.push(packet(time, pb::TrackEvent::end(track)));
            self.shown.remove(&lock);
        }
        if let Some(holder) = holder {
            self.shown.insert(lock, holder);
            let held = pb::TrackEvent::slice(track, format!("held by {}", named(names, holder)));
            self.packets.push(packet(time, held));
        }
    }

    fn lock(&mut self, lock: u32) -> u64 {
        let uuid = LOCKS + u64::from(lock);
        self.describe(pb::TrackDescriptor {
            uuid,
            name: Some(format!("lock {lock}")),
            thread: None,
        });
        uuid
    }

    fn thread(&mut self, pid: u32) -> u64 {
        let uuid = THREADS + u64::from(pid);
        let process = self.processes.get(&pid).copied().unwrap_or(pid);
        let thread = pb::ThreadDescriptor {
            pid: process as i32,
            tid: pid as i32,
        };
        self.describe(pb::TrackDescriptor {
            uuid,
            name: None,
            thread: Some(thread),
        });
        uuid
    }

    fn describe(&mut self, track: pb::TrackDescriptor) {
        if self.described.insert(track.uuid) {
            self.packets.push(pb::TracePacket {
                track_descriptor: Some(track),
                ..Default::default()
            });
        }
    }
}

fn named(names: &Names, pid: u32) -> String {
    format!("{} ({pid})", names.of(pid))
}
