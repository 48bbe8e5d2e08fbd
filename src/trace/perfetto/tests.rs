// SPDX-License-Identifier: GPL-2.0-only
//! Tests of what Perfetto gets: each event once, with its time, CPU, PID and name.

use super::super::format::{Cpu, End, Task};
use super::super::writer::Writer;
use super::decoded as pb;
use super::*;
use crate::foreign::tests::HOSTILE;
use crate::fuzz::for_a_while;
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;
use std::io::Cursor;

const BEGIN: u64 = 1_000_000;

fn head() -> Head {
    let task = |pid, tgid, name: &str| Task {
        pid,
        tgid,
        name: name.into(),
    };
    let cpu = |id, khz| Cpu {
        id,
        khz,
        ..Cpu::default()
    };
    Head {
        begin_ns: BEGIN,
        begin_utc_s: 5,
        release: "6.18".into(),
        cpus: vec![cpu(0, Some(800_000)), cpu(3, None)],
        tasks: vec![
            task(10, 10, HOSTILE),
            task(11, 10, "<b>&\""),
            task(MAX_PID, 1, "no"),
        ],
        ..Head::default()
    }
}

fn event(time: u64, cpu: u16, kind: Kind, pid: u32, high: u32, low: u32) -> Event {
    Event {
        time: BEGIN + time,
        pid,
        kind: kind as u16,
        cpu,
        arg: u64::from(high) << 32 | u64::from(low),
    }
}

fn file(fill: impl FnOnce(&mut Writer<Vec<u8>>)) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &head()).unwrap();
    fill(&mut writer);
    writer.end(&End::default()).unwrap()
}

/// Keeps what was written, and how much at once.
#[derive(Default)]
struct Kept(Vec<u8>, usize);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend(bytes);
        self.1 = self.1.max(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn written(bytes: &[u8]) -> (Vec<pb::TracePacket>, usize) {
    let mut kept = Kept::default();
    write(Trace::open(Cursor::new(bytes)).unwrap(), &mut kept).unwrap();
    (pb::Trace::decode(&kept.0[..]).unwrap().packet, kept.1)
}

fn bundles(packets: Vec<pb::TracePacket>) -> Vec<pb::FtraceEventBundle> {
    packets
        .into_iter()
        .filter_map(|packet| packet.ftrace_events)
        .collect()
}

#[test]
fn the_head_has_clocks_tasks_and_frequencies() {
    let (packets, _) = written(&file(|_| ()));
    assert!(packets
        .iter()
        .all(|packet| packet.trusted_packet_sequence_id == Some(SEQUENCE)));
    let clocks = packets[0].clock_snapshot.clone().unwrap();
    let times: Vec<_> = (clocks.clocks.iter())
        .map(|clock| (clock.clock_id, clock.timestamp))
        .collect();
    assert_eq!(times, [(6, BEGIN), (3, BEGIN), (1, 5_000_000_000)]);
    let tree = packets[2].process_tree.clone().unwrap();
    assert_eq!((tree.processes.len(), tree.processes[0].pid), (1, 10));
    assert_eq!(tree.processes[0].cmdline, [HOSTILE]);
    let threads: Vec<_> = (tree.threads.iter())
        .map(|thread| (thread.tid, thread.tgid, thread.name.as_str()))
        .collect();
    assert_eq!(threads, [(10, 10, HOSTILE), (11, 10, "<b>&\"")]);
    let bundles = bundles(packets);
    let state = pb::CpuState {
        state: 800_000,
        cpu_id: 0,
    };
    assert_eq!(bundles[0].event[0].timestamp, BEGIN);
    assert_eq!(
        bundles[0].event[0].what,
        Some(pb::What::CpuFrequency(state))
    );
}

#[test]
fn switches_are_compact_where_who_leaves_is_known_to_the_reader() {
    let (packets, _) = written(&file(|writer| {
        let all = [
            event(10, 3, Kind::Switch, 11, 0, 10),
            event(20, 3, Kind::Wakeup, 10, 0, 11),
            event(30, 3, Kind::Switch, 10, 2, 11),
            event(45, 3, Kind::Switch, 0, 1, 10),
            // 11 came without a switch: events are missing.
            event(60, 3, Kind::Switch, 0, 0x402, 11),
        ];
        writer.events(3, &all).unwrap();
    }));
    let bundle = &bundles(packets)[1];
    assert_eq!((bundle.cpu, bundle.lost_events), (3, false));
    let compact = bundle.compact_sched.clone().unwrap();
    assert_eq!(compact.switch_timestamp, [BEGIN + 30, 15]);
    assert_eq!(compact.switch_next_pid, [10, 0]);
    assert_eq!(compact.switch_prev_state, [2, 1]);
    assert_eq!(compact.waking_timestamp, [BEGIN + 20]);
    assert_eq!(
        (compact.waking_pid, compact.waking_target_cpu),
        (vec![10], vec![0])
    );
    assert_eq!(compact.intern_table, [HOSTILE, "swapper"]);
    assert_eq!(compact.switch_next_comm_index, [0, 1]);
    assert_eq!(compact.waking_comm_index, [0]);
    let plain: Vec<_> = (bundle.event.iter())
        .map(|event| match &event.what {
            Some(pb::What::SchedSwitch(switch)) => (
                event.timestamp,
                switch.prev_pid,
                switch.next_pid,
                switch.prev_state,
            ),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(plain, [(BEGIN + 10, 10, 11, 0), (BEGIN + 60, 11, 0, 0x80)]);
}

#[test]
fn what_else_happened_is_an_event_of_ftrace() {
    let name = u64::from_le_bytes(*b"cc1\"<i>\0");
    let (packets, _) = written(&file(|writer| {
        let all = [
            event(1, 3, Kind::Fork, 20, 20, 11),
            event(2, 3, Kind::Fork, 21, 20, 20),
            event(3, 3, Kind::WakeupNew, 21, 3, 20),
            event(4, 3, Kind::Name, 20, (name >> 32) as u32, name as u32),
            event(5, 3, Kind::Migrate, 21, 3, 0),
            event(6, 3, Kind::Exit, 20, 0, 0),
            event(7, 3, Kind::Idle, 0, 0, 2),
            event(8, 3, Kind::IdleEnd, 0, 0, 0),
            event(9, 3, Kind::Frequency, 0, 0, 3_000_000),
            event(10, 3, Kind::Exec, 21, 0, 22),
            event(11, 3, Kind::Exit, MAX_PID, 0, 0),
        ];
        writer.events(3, &all).unwrap();
    }));
    let events = bundles(packets)[1].event.clone();
    let times: Vec<_> = events.iter().map(|event| event.timestamp - BEGIN).collect();
    assert_eq!(times, Vec::from_iter(1..=10));
    let whats: Vec<_> = events.into_iter().filter_map(|event| event.what).collect();
    let expected = [
        pb::What::TaskNewtask(pb::TaskNewtask {
            pid: 20,
            comm: "<b>&\"".into(),
            clone_flags: 0,
        }),
        pb::What::TaskNewtask(pb::TaskNewtask {
            pid: 21,
            comm: "<b>&\"".into(),
            clone_flags: 0x10000,
        }),
        pb::What::SchedWakeupNew(pb::SchedWakeupNew {
            comm: "<b>&\"".into(),
            pid: 21,
            prio: 120,
            target_cpu: 3,
        }),
        pb::What::TaskRename(pb::TaskRename {
            pid: 20,
            newcomm: "cc1\"<i>".into(),
        }),
        pb::What::SchedMigrateTask(pb::SchedMigrateTask {
            comm: "<b>&\"".into(),
            pid: 21,
            prio: 120,
            orig_cpu: 3,
            dest_cpu: 0,
        }),
        pb::What::SchedProcessExit(pb::SchedProcessExit {
            comm: "cc1\"<i>".into(),
            pid: 20,
        }),
        pb::What::CpuIdle(pb::CpuState {
            state: 2,
            cpu_id: 3,
        }),
        pb::What::CpuIdle(pb::CpuState {
            state: u32::MAX,
            cpu_id: 3,
        }),
        pb::What::CpuFrequency(pb::CpuState {
            state: 3_000_000,
            cpu_id: 0,
        }),
        pb::What::SchedProcessExec(pb::SchedProcessExec {
            pid: 21,
            old_pid: 22,
        }),
    ];
    assert_eq!(whats, expected);
}

#[test]
fn waits_for_locks_are_slices_with_a_flow_to_the_lock() {
    let bytes = file(|writer| {
        let on = |time, kind, pid, low| event(time, 0, kind, pid, 0, low);
        let events = [
            on(1, Kind::LockWait, 11, 5),
            on(1, Kind::LockHold, 10, 5),
            on(2, Kind::LockWait, 12, 5),
            on(4, Kind::Handoff, 11, 5),
            on(4, Kind::LockHold, 11, 5),
            on(6, Kind::LockLeft, 12, 5),
            on(7, Kind::LockWait, 12, 6),
        ];
        writer.events(0, &events).unwrap();
        writer.gap(0, 1).unwrap();
    });
    let (packets, _) = written(&bytes);
    let mut tracks = std::collections::HashMap::new();
    let mut seen = Vec::new();
    for packet in packets {
        if let Some(track) = packet.track_descriptor {
            let name = match &track.thread {
                Some(thread) => format!("{}/{}", thread.pid, thread.tid),
                None => track.name.unwrap(),
            };
            assert_eq!(tracks.insert(track.uuid, name), None);
        }
        if let Some(event) = packet.track_event {
            let time = packet.timestamp.unwrap() - BEGIN;
            let track = tracks[&event.track_uuid].clone();
            let flow = (
                event.flow_ids.first().copied(),
                event.terminating_flow_ids.first().copied(),
            );
            seen.push((
                time,
                track,
                event.kind,
                event.name.unwrap_or_default(),
                flow,
            ));
        }
    }
    let no = (None, None);
    let expected = [
        (1, "10/11", 1, "waits for lock 5", (Some(1), None)),
        (1, "lock 5", 3, "<b>&\" (11)", (None, Some(1))),
        (1, "lock 5", 1, "held by NAME (10)", no),
        (2, "12/12", 1, "waits for lock 5", (Some(2), None)),
        (2, "lock 5", 3, " (12)", (None, Some(2))),
        (4, "10/11", 2, "", no),
        (4, "lock 5", 2, "", no),
        (4, "lock 5", 1, "held by <b>&\" (11)", no),
        (6, "12/12", 2, "", no),
        (6, "lock 5", 2, "", no),
        (7, "12/12", 1, "waits for lock 6", (Some(3), None)),
        (7, "lock 6", 3, " (12)", (None, Some(3))),
        // What it waits for is not known behind the gap.
        (7, "12/12", 2, "", no),
    ];
    let expected = expected.map(|(time, track, kind, name, flow)| {
        (
            time,
            track.into(),
            kind,
            name.replace("NAME", HOSTILE),
            flow,
        )
    });
    assert_eq!(seen, expected);
}

#[test]
fn a_gap_is_lost_events_and_nobody_is_known_to_run_after_it() {
    let (packets, _) = written(&file(|writer| {
        let switch = |time, next, prev| [event(time, 0, Kind::Switch, next, 0, prev)];
        writer.events(0, &switch(1, 10, 0)).unwrap();
        writer.gap(0, 5).unwrap();
        writer.events(0, &switch(9, 11, 10)).unwrap();
        writer.gap(0, 1).unwrap();
    }));
    let bundles = bundles(packets);
    let lost: Vec<_> = bundles.iter().map(|bundle| bundle.lost_events).collect();
    assert_eq!(lost.iter().filter(|lost| **lost).count(), 3, "{lost:?}");
    assert!(!lost[0], "before the first one there is no gap");
    assert!(bundles.iter().all(|bundle| bundle.compact_sched.is_none()));
}

#[test]
fn memory_does_not_grow_with_the_trace() {
    let count = 20 * BUNDLE as u64;
    let (packets, most) = written(&file(|writer| {
        let all: Vec<_> = (0..count)
            .map(|at| {
                event(
                    at * 100,
                    0,
                    Kind::Switch,
                    (at % 2) as u32,
                    0,
                    ((at + 1) % 2) as u32,
                )
            })
            .collect();
        writer.events(0, &all).unwrap();
    }));
    let bundles = bundles(packets);
    let switches = |bundle: &pb::FtraceEventBundle| {
        let compact = bundle.compact_sched.as_ref();
        bundle.event.len() + compact.map_or(0, |compact| compact.switch_timestamp.len())
    };
    let all: usize = bundles.iter().map(switches).sum();
    assert_eq!(all as u64, count + 1, "and the first frequency");
    assert!(bundles.iter().all(|bundle| switches(bundle) <= BUNDLE));
    assert!(most < 16 * BUNDLE, "{most} bytes at once");
}

#[test]
fn states_are_those_that_ftrace_reports() {
    for (kernel, reported) in [
        (0, 0),
        (1, 1),
        (2, 2),
        (0x102, 2),
        (0x402, 0x80),
        (0x80, 0x10),
        (0x8000, 2),
        (0x1000, 2),
        (0x20, 0x20),
    ] {
        assert_eq!(state(kernel), reported, "{kernel:#x}");
    }
}

#[test]
fn whatever_events_there_are_each_is_written_once() {
    let any_event = (0..50u64, 0..3u16, 0..14u16, 0..4u32, any::<u32>(), 0..4u32);
    for_a_while(vec(any_event, 0..200), |events| {
        let mut count = 1;
        let bytes = file(|writer| {
            for (time, cpu, kind, pid, high, low) in &events {
                let mut event = event(*time, *cpu, Kind::Exit, *pid, *high, *low);
                event.kind = *kind;
                if high % 7 == 0 {
                    event.time = u64::MAX - time;
                }
                count += usize::from(*kind < Kind::Tick as u16);
                // Its first part may be missing.
                writer.events(*cpu, &[event]).unwrap();
            }
        });
        let (packets, _) = written(&bytes);
        let all = |bundle: &pb::FtraceEventBundle| {
            let compact = bundle.compact_sched.clone().unwrap_or_default();
            bundle.event.len() + compact.switch_timestamp.len() + compact.waking_timestamp.len()
        };
        prop_assert_eq!(bundles(packets).iter().map(all).sum::<usize>(), count);
        Ok(())
    });
}
