// SPDX-License-Identifier: GPL-2.0-only
//! Those messages of Perfetto's trace format that we write, with its numbers of fields
//! (protos/perfetto/trace there). They are never changed; tests/vm/perfetto.test decodes
//! with Perfetto's own.

use micropb::{PbEncoder, Tag, WIRE_TYPE_I64, WIRE_TYPE_LEN, WIRE_TYPE_VARINT};
use std::convert::Infallible;

/// Bytes of a message, as they grow.
pub type To = PbEncoder<Vec<u8>>;
type Done = Result<(), Infallible>;

/// What has fields.
pub trait Message {
    fn fields(&self, to: &mut To) -> Done;
}

/// What a field can hold.
trait Field {
    fn write(&self, number: u32, to: &mut To) -> Done;
}

/// Numbers one after the other, under one tag.
#[derive(Debug, Default)]
pub struct Packed<T>(pub Vec<T>);

/// A number of eight bytes, whatever it is.
#[derive(Debug)]
pub struct Fixed(pub u64);

impl Field for Fixed {
    fn write(&self, number: u32, to: &mut To) -> Done {
        to.encode_tag(Tag::from_parts(number, WIRE_TYPE_I64))?;
        to.encode_fixed64(self.0)
    }
}

fn bytes_of(message: &impl Message) -> Vec<u8> {
    let mut to = PbEncoder::new(Vec::new());
    match message.fields(&mut to) {
        Ok(()) => to.into_writer(),
        Err(never) => match never {},
    }
}

fn write_bytes(bytes: &[u8], number: u32, to: &mut To) -> Done {
    to.encode_tag(Tag::from_parts(number, WIRE_TYPE_LEN))?;
    to.encode_bytes(bytes)
}

macro_rules! numbers {
    ($($type:ty => $encode:ident,)*) => {$(
        impl Field for $type {
            fn write(&self, number: u32, to: &mut To) -> Done {
                to.encode_tag(Tag::from_parts(number, WIRE_TYPE_VARINT))?;
                to.$encode(*self)
            }
        }

        impl Field for Packed<$type> {
            fn write(&self, number: u32, to: &mut To) -> Done {
                if self.0.is_empty() {
                    return Ok(());
                }
                let mut column = PbEncoder::new(Vec::new());
                self.0.iter().try_for_each(|one| column.$encode(*one))?;
                write_bytes(&column.into_writer(), number, to)
            }
        }
    )*};
}

numbers! {
    bool => encode_bool,
    u32 => encode_varint32,
    u64 => encode_varint64,
    i32 => encode_int32,
    i64 => encode_int64,
}

impl Field for String {
    fn write(&self, number: u32, to: &mut To) -> Done {
        write_bytes(self.as_bytes(), number, to)
    }
}

impl<M: Message> Field for M {
    fn write(&self, number: u32, to: &mut To) -> Done {
        write_bytes(&bytes_of(self), number, to)
    }
}

impl<F: Field> Field for Option<F> {
    fn write(&self, number: u32, to: &mut To) -> Done {
        self.iter().try_for_each(|one| one.write(number, to))
    }
}

impl<F: Field> Field for Vec<F> {
    fn write(&self, number: u32, to: &mut To) -> Done {
        self.iter().try_for_each(|one| one.write(number, to))
    }
}

macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty = $number:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub struct $name {
            $(pub $field: $type,)*
        }

        impl Message for $name {
            fn fields(&self, to: &mut To) -> Done {
                $(self.$field.write($number, to)?;)*
                Ok(())
            }
        }
    )*};
}

messages! {
    TracePacket {
        ftrace_events: Option<FtraceEventBundle> = 1,
        process_tree: Option<ProcessTree> = 2,
        clock_snapshot: Option<ClockSnapshot> = 6,
        timestamp: Option<u64> = 8,
        trusted_packet_sequence_id: u32 = 10,
        track_event: Option<TrackEvent> = 11,
        sequence_flags: Option<u32> = 13,
        system_info: Option<SystemInfo> = 45,
        track_descriptor: Option<TrackDescriptor> = 60,
    }

    ClockSnapshot {
        clocks: Vec<Clock> = 1,
        primary_trace_clock: u32 = 2,
    }

    Clock {
        clock_id: u32 = 1,
        timestamp: u64 = 2,
    }

    SystemInfo {
        utsname: Option<Utsname> = 1,
    }

    Utsname {
        sysname: String = 1,
        release: String = 3,
    }

    ProcessTree {
        processes: Vec<Process> = 1,
        threads: Vec<Thread> = 2,
    }

    Process {
        pid: i32 = 1,
        cmdline: Vec<String> = 3,
        cmdline_is_comm: bool = 9,
    }

    Thread {
        tid: i32 = 1,
        name: String = 2,
        tgid: i32 = 3,
    }

    TrackDescriptor {
        uuid: u64 = 1,
        name: Option<String> = 2,
        thread: Option<ThreadDescriptor> = 4,
    }

    ThreadDescriptor {
        pid: i32 = 1,
        tid: i32 = 2,
    }

    /// Flows have the same number where they begin and where they end.
    TrackEvent {
        kind: i32 = 9,
        track_uuid: u64 = 11,
        name: Option<String> = 23,
        flow_ids: Option<Fixed> = 47,
        terminating_flow_ids: Option<Fixed> = 48,
    }

    FtraceEventBundle {
        cpu: u32 = 1,
        event: Vec<FtraceEvent> = 2,
        lost_events: bool = 3,
        compact_sched: Option<CompactSched> = 4,
    }

    /// Switches and wake-ups by columns. Times are differences to the one before in the
    /// bundle; who is switched out is who was switched in before.
    CompactSched {
        switch_timestamp: Packed<u64> = 1,
        switch_prev_state: Packed<i64> = 2,
        switch_next_pid: Packed<i32> = 3,
        switch_next_prio: Packed<i32> = 4,
        intern_table: Vec<String> = 5,
        switch_next_comm_index: Packed<u32> = 6,
        waking_timestamp: Packed<u64> = 7,
        waking_pid: Packed<i32> = 8,
        waking_target_cpu: Packed<i32> = 9,
        waking_prio: Packed<i32> = 10,
        waking_comm_index: Packed<u32> = 11,
        waking_common_flags: Packed<u32> = 12,
    }

    SchedSwitch {
        prev_comm: String = 1,
        prev_pid: i32 = 2,
        prev_prio: i32 = 3,
        prev_state: i64 = 4,
        next_comm: String = 5,
        next_pid: i32 = 6,
        next_prio: i32 = 7,
    }

    CpuState {
        state: u32 = 1,
        cpu_id: u32 = 2,
    }

    SchedWakeupNew {
        comm: String = 1,
        pid: i32 = 2,
        prio: i32 = 3,
        target_cpu: i32 = 5,
    }

    TaskNewtask {
        pid: i32 = 1,
        comm: String = 2,
        clone_flags: u64 = 3,
    }

    TaskRename {
        pid: i32 = 1,
        newcomm: String = 3,
    }

    SchedProcessExec {
        pid: i32 = 2,
        old_pid: i32 = 3,
    }

    SchedProcessExit {
        comm: String = 1,
        pid: i32 = 2,
    }

    SchedMigrateTask {
        comm: String = 1,
        pid: i32 = 2,
        prio: i32 = 3,
        orig_cpu: i32 = 4,
        dest_cpu: i32 = 5,
    }
}

/// What a track event is.
const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const INSTANT: i32 = 3;

impl TrackEvent {
    /// A slice begins.
    pub fn slice(track_uuid: u64, name: String) -> Self {
        Self {
            kind: SLICE_BEGIN,
            track_uuid,
            name: Some(name),
            ..Self::default()
        }
    }

    /// A slice begins, and a flow with it.
    pub fn begin(track_uuid: u64, name: String, flow: u64) -> Self {
        Self {
            flow_ids: Some(Fixed(flow)),
            ..Self::slice(track_uuid, name)
        }
    }

    /// The track's slice ends.
    pub fn end(track_uuid: u64) -> Self {
        Self {
            kind: SLICE_END,
            track_uuid,
            ..Self::default()
        }
    }

    /// Something to which a flow leads.
    pub fn end_of_flow(track_uuid: u64, name: String, flow: u64) -> Self {
        Self {
            kind: INSTANT,
            terminating_flow_ids: Some(Fixed(flow)),
            ..Self::slice(track_uuid, name)
        }
    }
}

/// One event.
#[derive(Debug)]
pub struct FtraceEvent {
    pub timestamp: u64,
    /// Of the task that ran.
    pub pid: u32,
    pub what: What,
}

/// Of an event there is one of these.
#[derive(Debug)]
pub enum What {
    SchedSwitch(SchedSwitch),
    CpuFrequency(CpuState),
    CpuIdle(CpuState),
    SchedWakeupNew(SchedWakeupNew),
    TaskNewtask(TaskNewtask),
    TaskRename(TaskRename),
    SchedProcessExec(SchedProcessExec),
    SchedProcessExit(SchedProcessExit),
    SchedMigrateTask(SchedMigrateTask),
}

impl Message for FtraceEvent {
    fn fields(&self, to: &mut To) -> Done {
        self.timestamp.write(1, to)?;
        self.pid.write(2, to)?;
        match &self.what {
            What::SchedSwitch(one) => one.write(4, to),
            What::CpuFrequency(one) => one.write(11, to),
            What::CpuIdle(one) => one.write(13, to),
            What::SchedWakeupNew(one) => one.write(114, to),
            What::TaskNewtask(one) => one.write(235, to),
            What::TaskRename(one) => one.write(236, to),
            What::SchedProcessExec(one) => one.write(237, to),
            What::SchedProcessExit(one) => one.write(238, to),
            What::SchedMigrateTask(one) => one.write(491, to),
        }
    }
}

/// A trace is packets one behind the other: so this is a piece of one.
pub fn piece(packet: &TracePacket) -> Vec<u8> {
    let mut to = PbEncoder::new(Vec::new());
    match packet.write(1, &mut to) {
        Ok(()) => to.into_writer(),
        Err(never) => match never {},
    }
}
