// SPDX-License-Identifier: GPL-2.0-only
//! A trace in Perfetto's format, for its viewer and its SQL: switches and wake-ups as
//! compact_sched, what else happened as events of ftrace, waits for locks as tracks. Bundles of events are written as
//! they fill up, so that memory does not grow with the trace.

#[cfg(test)]
mod decoded;
mod protobuf;
mod tracks;

use super::format::{Event, Head, MAX_CPUS};
use super::reader::{Item, Trace};
use super::task_names::{Names, MAX_PID};
use super::{Failed, Kind};
use protobuf as pb;
use std::collections::HashMap;
use std::io::{self, Read, Seek, Write};
use tracks::Tracks;

/// Events of a CPU that go into one packet.
const BUNDLE: usize = 4096;
/// Who writes; all packets are of one.
const SEQUENCE: u32 = 1;
/// Nothing is said of the sequence before: its readers want that before track events.
const STATE_CLEARED: u32 = 1;
/// Perfetto's numbers of clocks.
const REALTIME: u32 = 1;
const MONOTONIC: u32 = 3;
const BOOTTIME: u32 = 6;
/// The kernel's priority of nice 0. Traces do not have it, and Perfetto wants one.
const PRIORITY: i32 = 120;
/// The kernel's flag of a thread that is no process of its own.
const CLONE_THREAD: u64 = 0x10000;
/// What cpu_idle says of a CPU that leaves its idle state.
const NOT_IDLE: u32 = u32::MAX;

/// Writes all of the trace.
pub fn write<R: Read + Seek>(trace: Trace<R>, to: &mut impl Write) -> Result<(), Failed> {
    let mut out = Out {
        names: Names::new(&trace.head),
        tracks: Tracks::new(&trace.head),
        now: trace.head.begin_ns,
        lanes: (0..MAX_CPUS).map(|_| Lane::default()).collect(),
        to,
    };
    out.head(&trace.head)?;
    trace.replay(|item| out.take(item).map_err(Failed::from))?;
    out.end()?;
    Ok(())
}

/// What of a CPU is not written yet.
#[derive(Default)]
struct Lane {
    events: Vec<pb::FtraceEvent>,
    compact: pb::CompactSched,
    /// Of names in `compact`.
    interned: HashMap<String, u32>,
    /// Of the last switch and wake-up in `compact`.
    last: [u64; 2],
    /// Who runs by the last switch; none if that is unknown, also to the reader.
    running: Option<u32>,
    lost: bool,
}

impl Lane {
    fn length(&self) -> usize {
        let compact = &self.compact;
        self.events.len() + compact.switch_timestamp.0.len() + compact.waking_timestamp.0.len()
    }

    fn intern(&mut self, name: &str) -> u32 {
        if let Some(index) = self.interned.get(name) {
            return *index;
        }
        let index = self.compact.intern_table.len() as u32;
        self.compact.intern_table.push(name.into());
        self.interned.insert(name.into(), index);
        index
    }

    /// The time since the last event of this column. Those of a CPU come in order but
    /// across chunks, where an interrupt may have swapped two.
    fn since(&mut self, column: usize, time: u64) -> u64 {
        let since = time.saturating_sub(self.last[column]);
        self.last[column] += since;
        since
    }
}

struct Out<'a, W> {
    names: Names,
    tracks: Tracks,
    now: u64,
    lanes: Vec<Lane>,
    to: &'a mut W,
}

impl<W: Write> Out<'_, W> {
    fn packet(&mut self, packet: pb::TracePacket) -> io::Result<()> {
        let packet = pb::TracePacket {
            trusted_packet_sequence_id: SEQUENCE,
            ..packet
        };
        self.to.write_all(&pb::piece(&packet))
    }

    fn packets(&mut self, packets: Vec<pb::TracePacket>) -> io::Result<()> {
        packets.into_iter().try_for_each(|one| self.packet(one))
    }

    /// Clocks, the kernel, tasks, frequencies as it began. Perfetto reads times of ftrace as
    /// those of its boot clock, which ours is but for the time that the machine was suspended.
    fn head(&mut self, head: &Head) -> io::Result<()> {
        let clock = |(clock_id, timestamp)| pb::Clock {
            clock_id,
            timestamp,
        };
        let real = head.begin_utc_s.saturating_mul(1_000_000_000);
        let clocks = [
            (BOOTTIME, head.begin_ns),
            (MONOTONIC, head.begin_ns),
            (REALTIME, real),
        ];
        self.packet(pb::TracePacket {
            clock_snapshot: Some(pb::ClockSnapshot {
                clocks: clocks.map(clock).into(),
                primary_trace_clock: BOOTTIME,
            }),
            timestamp: Some(head.begin_ns),
            sequence_flags: Some(STATE_CLEARED),
            ..Default::default()
        })?;
        let utsname = pb::Utsname {
            sysname: "Linux".into(),
            release: head.release.clone(),
        };
        self.packet(pb::TracePacket {
            system_info: Some(pb::SystemInfo {
                utsname: Some(utsname),
            }),
            timestamp: Some(head.begin_ns),
            ..Default::default()
        })?;
        self.packet(pb::TracePacket {
            process_tree: Some(tasks(head)),
            timestamp: Some(head.begin_ns),
            ..Default::default()
        })?;
        for cpu in &head.cpus {
            if let Some(khz) = cpu.khz {
                let state = pb::CpuState {
                    state: khz,
                    cpu_id: cpu.id.into(),
                };
                let what = pb::What::CpuFrequency(state);
                self.event(usize::from(cpu.id), head.begin_ns, 0, what)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, item: Item) -> io::Result<()> {
        let event = match item {
            Item::Event(event) if event.pid >= MAX_PID => return Ok(()),
            Item::Event(event) => event,
            Item::Gap { cpu } => {
                // Who runs there is not known any more, and the gap is before the next bundle.
                let cpu = usize::from(cpu);
                self.flush(cpu)?;
                self.lanes[cpu].running = None;
                self.lanes[cpu].lost = true;
                let packets = self.tracks.gap(self.now);
                return self.packets(packets);
            }
        };
        self.names.take(&event);
        self.now = event.time;
        let packets = self.tracks.take(&event, &self.names);
        self.packets(packets)?;
        let cpu = usize::from(event.cpu);
        let running = self.lanes[cpu].running.unwrap_or(0);
        let (time, pid) = (event.time, event.pid as i32);
        let (low, high) = (event.low(), event.high());
        let comm = |names: &Names| names.of(event.pid).into_owned();
        let (by, what) = match Kind::from_number(event.kind) {
            Some(Kind::Switch) => return self.switch(cpu, &event),
            Some(Kind::Wakeup) => return self.waking(cpu, &event),
            Some(Kind::WakeupNew) => {
                let new = pb::SchedWakeupNew {
                    comm: comm(&self.names),
                    pid,
                    prio: PRIORITY,
                    target_cpu: high as i32,
                };
                (low, pb::What::SchedWakeupNew(new))
            }
            Some(Kind::Fork) => {
                let is_thread = high != event.pid;
                let new = pb::TaskNewtask {
                    pid,
                    comm: comm(&self.names),
                    clone_flags: if is_thread { CLONE_THREAD } else { 0 },
                };
                (low, pb::What::TaskNewtask(new))
            }
            Some(Kind::Name | Kind::NameRest) => {
                let newcomm = comm(&self.names);
                let what = pb::What::TaskRename(pb::TaskRename { pid, newcomm });
                (event.pid, what)
            }
            Some(Kind::Exec) => {
                let old_pid = low as i32;
                let what = pb::What::SchedProcessExec(pb::SchedProcessExec { pid, old_pid });
                (event.pid, what)
            }
            Some(Kind::Exit) => {
                let comm = comm(&self.names);
                let what = pb::What::SchedProcessExit(pb::SchedProcessExit { comm, pid });
                (event.pid, what)
            }
            Some(Kind::Migrate) => {
                let migrate = pb::SchedMigrateTask {
                    comm: comm(&self.names),
                    pid,
                    prio: PRIORITY,
                    orig_cpu: high as i32,
                    dest_cpu: low as i32,
                };
                (running, pb::What::SchedMigrateTask(migrate))
            }
            Some(Kind::Frequency) => {
                let (state, cpu_id) = (low, high);
                let what = pb::What::CpuFrequency(pb::CpuState { state, cpu_id });
                (running, what)
            }
            Some(kind @ (Kind::Idle | Kind::IdleEnd)) => {
                let state = if kind == Kind::Idle { low } else { NOT_IDLE };
                let cpu_id = event.cpu.into();
                (0, pb::What::CpuIdle(pb::CpuState { state, cpu_id }))
            }
            _ => return Ok(()),
        };
        self.event(cpu, time, by, what)
    }

    fn event(&mut self, cpu: usize, timestamp: u64, pid: u32, what: pb::What) -> io::Result<()> {
        self.lanes[cpu].events.push(pb::FtraceEvent {
            timestamp,
            pid,
            what,
        });
        self.flush_if_full(cpu)
    }

    fn switch(&mut self, cpu: usize, event: &Event) -> io::Result<()> {
        let (prev, next) = (event.low(), event.pid);
        let lane = &mut self.lanes[cpu];
        let known = lane.running.replace(next) == Some(prev);
        let (prev_state, next_pid) = (state(event.high()), next as i32);
        if known {
            let name = lane.intern(&comm(&self.names, next));
            let since = lane.since(0, event.time);
            let compact = &mut lane.compact;
            compact.switch_timestamp.0.push(since);
            compact.switch_prev_state.0.push(prev_state);
            compact.switch_next_pid.0.push(next_pid);
            compact.switch_next_prio.0.push(PRIORITY);
            compact.switch_next_comm_index.0.push(name);
            return self.flush_if_full(cpu);
        }
        // The compact form has no word of who leaves.
        let what = pb::What::SchedSwitch(pb::SchedSwitch {
            prev_comm: comm(&self.names, prev),
            prev_pid: prev as i32,
            prev_prio: PRIORITY,
            prev_state,
            next_comm: comm(&self.names, next),
            next_pid,
            next_prio: PRIORITY,
        });
        self.event(cpu, event.time, prev, what)
    }

    fn waking(&mut self, cpu: usize, event: &Event) -> io::Result<()> {
        let lane = &mut self.lanes[cpu];
        let name = lane.intern(&comm(&self.names, event.pid));
        let since = lane.since(1, event.time);
        let compact = &mut lane.compact;
        compact.waking_timestamp.0.push(since);
        compact.waking_pid.0.push(event.pid as i32);
        compact.waking_target_cpu.0.push(event.high() as i32);
        compact.waking_prio.0.push(PRIORITY);
        compact.waking_comm_index.0.push(name);
        compact.waking_common_flags.0.push(0);
        self.flush_if_full(cpu)
    }

    fn flush_if_full(&mut self, cpu: usize) -> io::Result<()> {
        match self.lanes[cpu].length() {
            BUNDLE.. => self.flush(cpu),
            _ => Ok(()),
        }
    }

    fn flush(&mut self, cpu: usize) -> io::Result<()> {
        let lane = &mut self.lanes[cpu];
        if lane.length() == 0 && !lane.lost {
            return Ok(());
        }
        let compact = std::mem::take(&mut lane.compact);
        lane.interned.clear();
        lane.last = [0; 2];
        let bundle = pb::FtraceEventBundle {
            cpu: cpu as u32,
            event: std::mem::take(&mut lane.events),
            lost_events: std::mem::take(&mut lane.lost),
            compact_sched: Some(compact).filter(|compact| !compact.intern_table.is_empty()),
        };
        self.packet(pb::TracePacket {
            ftrace_events: Some(bundle),
            ..Default::default()
        })
    }

    fn end(mut self) -> io::Result<()> {
        for cpu in 0..self.lanes.len() {
            self.flush(cpu)?;
        }
        self.to.flush()
    }
}

/// As ftrace calls it.
fn comm(names: &Names, pid: u32) -> String {
    match pid {
        0 => "swapper".into(),
        _ => names.of(pid).into_owned(),
    }
}

/// The tasks that there were as it began, by their processes.
fn tasks(head: &Head) -> pb::ProcessTree {
    let known = (head.tasks.iter()).filter(|task| task.pid < MAX_PID && task.tgid < MAX_PID);
    let process = |task: &super::format::Task| pb::Process {
        pid: task.tgid as i32,
        cmdline: vec![task.name.raw().into()],
        cmdline_is_comm: true,
    };
    let thread = |task: &super::format::Task| pb::Thread {
        tid: task.pid as i32,
        name: task.name.raw().into(),
        tgid: task.tgid as i32,
    };
    let leaders = known.clone().filter(|task| task.pid == task.tgid);
    pb::ProcessTree {
        processes: leaders.map(process).collect(),
        threads: known.map(thread).collect(),
    }
}

/// The state of a task that leaves, as the kernel's own tracepoint has it for ftrace, from
/// the kernel's `__state`.
fn state(kernel: u32) -> i64 {
    const UNINTERRUPTIBLE: u32 = 0x2;
    const REPORTED: u32 = 0x7f;
    const DEAD: u32 = 0x80;
    const IDLE: u32 = 0x402;
    const RTLOCK_WAIT: u32 = 0x1000;
    const FROZEN: u32 = 0x8000;
    const REPORT_EXIT_DEAD: i64 = 0x10;
    const REPORT_IDLE: i64 = 0x80;
    if kernel & IDLE == IDLE {
        return REPORT_IDLE;
    }
    if kernel & DEAD != 0 {
        return REPORT_EXIT_DEAD;
    }
    if kernel & (RTLOCK_WAIT | FROZEN) != 0 {
        return UNINTERRUPTIBLE.into();
    }
    match kernel & REPORTED {
        0 => 0,
        some => 1 << some.ilog2(),
    }
}

#[cfg(test)]
mod tests;
