// SPDX-License-Identifier: GPL-2.0-only
//! The same messages as another crate decodes them, for tests.

#[derive(Clone, PartialEq, prost::Message)]
pub struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TracePacket {
    #[prost(message, optional, tag = "1")]
    pub ftrace_events: Option<FtraceEventBundle>,
    #[prost(message, optional, tag = "2")]
    pub process_tree: Option<ProcessTree>,
    #[prost(message, optional, tag = "6")]
    pub clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "45")]
    pub system_info: Option<SystemInfo>,
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackDescriptor {
    #[prost(uint64, required, tag = "1")]
    pub uuid: u64,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ThreadDescriptor {
    #[prost(int32, required, tag = "1")]
    pub pid: i32,
    #[prost(int32, required, tag = "2")]
    pub tid: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackEvent {
    #[prost(int32, required, tag = "9")]
    pub kind: i32,
    #[prost(uint64, required, tag = "11")]
    pub track_uuid: u64,
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
    #[prost(int32, required, tag = "2")]
    pub primary_trace_clock: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Clock {
    #[prost(uint32, required, tag = "1")]
    pub clock_id: u32,
    #[prost(uint64, required, tag = "2")]
    pub timestamp: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct SystemInfo {
    #[prost(message, optional, tag = "1")]
    pub utsname: Option<Utsname>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Utsname {
    #[prost(string, tag = "1")]
    pub sysname: String,
    #[prost(string, tag = "3")]
    pub release: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub processes: Vec<Process>,
    #[prost(message, repeated, tag = "2")]
    pub threads: Vec<Thread>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Process {
    #[prost(int32, required, tag = "1")]
    pub pid: i32,
    #[prost(string, repeated, tag = "3")]
    pub cmdline: Vec<String>,
    #[prost(bool, required, tag = "9")]
    pub cmdline_is_comm: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Thread {
    #[prost(int32, required, tag = "1")]
    pub tid: i32,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(int32, required, tag = "3")]
    pub tgid: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct FtraceEventBundle {
    #[prost(uint32, required, tag = "1")]
    pub cpu: u32,
    #[prost(message, repeated, tag = "2")]
    pub event: Vec<FtraceEvent>,
    #[prost(bool, required, tag = "3")]
    pub lost_events: bool,
    #[prost(message, optional, tag = "4")]
    pub compact_sched: Option<CompactSched>,
}

/// Switches and wake-ups by columns. Times are differences to the one before in the bundle;
/// who is switched out is who was switched in before.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CompactSched {
    #[prost(uint64, repeated, packed = "true", tag = "1")]
    pub switch_timestamp: Vec<u64>,
    #[prost(int64, repeated, packed = "true", tag = "2")]
    pub switch_prev_state: Vec<i64>,
    #[prost(int32, repeated, packed = "true", tag = "3")]
    pub switch_next_pid: Vec<i32>,
    #[prost(int32, repeated, packed = "true", tag = "4")]
    pub switch_next_prio: Vec<i32>,
    #[prost(string, repeated, tag = "5")]
    pub intern_table: Vec<String>,
    #[prost(uint32, repeated, packed = "true", tag = "6")]
    pub switch_next_comm_index: Vec<u32>,
    #[prost(uint64, repeated, packed = "true", tag = "7")]
    pub waking_timestamp: Vec<u64>,
    #[prost(int32, repeated, packed = "true", tag = "8")]
    pub waking_pid: Vec<i32>,
    #[prost(int32, repeated, packed = "true", tag = "9")]
    pub waking_target_cpu: Vec<i32>,
    #[prost(int32, repeated, packed = "true", tag = "10")]
    pub waking_prio: Vec<i32>,
    #[prost(uint32, repeated, packed = "true", tag = "11")]
    pub waking_comm_index: Vec<u32>,
    #[prost(uint32, repeated, packed = "true", tag = "12")]
    pub waking_common_flags: Vec<u32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct FtraceEvent {
    #[prost(uint64, required, tag = "1")]
    pub timestamp: u64,
    /// Of the task that ran.
    #[prost(uint32, required, tag = "2")]
    pub pid: u32,
    #[prost(oneof = "What", tags = "4, 11, 13, 114, 235, 236, 237, 238, 491")]
    pub what: Option<What>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum What {
    #[prost(message, tag = "4")]
    SchedSwitch(SchedSwitch),
    #[prost(message, tag = "11")]
    CpuFrequency(CpuState),
    #[prost(message, tag = "13")]
    CpuIdle(CpuState),
    #[prost(message, tag = "114")]
    SchedWakeupNew(SchedWakeupNew),
    #[prost(message, tag = "235")]
    TaskNewtask(TaskNewtask),
    #[prost(message, tag = "236")]
    TaskRename(TaskRename),
    #[prost(message, tag = "237")]
    SchedProcessExec(SchedProcessExec),
    #[prost(message, tag = "238")]
    SchedProcessExit(SchedProcessExit),
    #[prost(message, tag = "491")]
    SchedMigrateTask(SchedMigrateTask),
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct SchedSwitch {
    #[prost(string, tag = "1")]
    pub prev_comm: String,
    #[prost(int32, required, tag = "2")]
    pub prev_pid: i32,
    #[prost(int32, required, tag = "3")]
    pub prev_prio: i32,
    #[prost(int64, required, tag = "4")]
    pub prev_state: i64,
    #[prost(string, tag = "5")]
    pub next_comm: String,
    #[prost(int32, required, tag = "6")]
    pub next_pid: i32,
    #[prost(int32, required, tag = "7")]
    pub next_prio: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct CpuState {
    #[prost(uint32, required, tag = "1")]
    pub state: u32,
    #[prost(uint32, required, tag = "2")]
    pub cpu_id: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct SchedWakeupNew {
    #[prost(string, tag = "1")]
    pub comm: String,
    #[prost(int32, required, tag = "2")]
    pub pid: i32,
    #[prost(int32, required, tag = "3")]
    pub prio: i32,
    #[prost(int32, required, tag = "5")]
    pub target_cpu: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TaskNewtask {
    #[prost(int32, required, tag = "1")]
    pub pid: i32,
    #[prost(string, tag = "2")]
    pub comm: String,
    #[prost(uint64, required, tag = "3")]
    pub clone_flags: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TaskRename {
    #[prost(int32, required, tag = "1")]
    pub pid: i32,
    #[prost(string, tag = "3")]
    pub newcomm: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct SchedProcessExec {
    #[prost(int32, required, tag = "2")]
    pub pid: i32,
    #[prost(int32, required, tag = "3")]
    pub old_pid: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct SchedProcessExit {
    #[prost(string, tag = "1")]
    pub comm: String,
    #[prost(int32, required, tag = "2")]
    pub pid: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct SchedMigrateTask {
    #[prost(string, tag = "1")]
    pub comm: String,
    #[prost(int32, required, tag = "2")]
    pub pid: i32,
    #[prost(int32, required, tag = "3")]
    pub prio: i32,
    #[prost(int32, required, tag = "4")]
    pub orig_cpu: i32,
    #[prost(int32, required, tag = "5")]
    pub dest_cpu: i32,
}
