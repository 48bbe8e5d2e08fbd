// SPDX-License-Identifier: GPL-2.0-only
//! Tests of the reader: files as they are written, and as they should never be.

use super::super::analysis::Analysis;
use super::super::format::{Cpu, Task};
use super::super::writer::Writer;
use super::super::Kind;
use super::*;
use crate::fuzz::{changed, for_a_while};
use proptest::collection::vec;
use proptest::prelude::*;
use std::io::Cursor;

fn event(time: u64, cpu: u16, kind: Kind, pid: u32, arg: u64) -> Event {
    Event {
        time,
        pid,
        kind: kind as u16,
        cpu,
        arg,
    }
}

fn head() -> Head {
    let cpu = |id| Cpu {
        id,
        capacity: Some(1024),
        ..Cpu::default()
    };
    Head {
        cpus: vec![cpu(0), cpu(1)],
        tasks: vec![Task {
            pid: 7,
            tgid: 7,
            name: "seven".into(),
        }],
        ..Head::default()
    }
}

fn file(fill: impl FnOnce(&mut Writer<Vec<u8>>)) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &head()).unwrap();
    fill(&mut writer);
    writer.end(&End::default()).unwrap()
}

fn replay(bytes: &[u8]) -> Result<Vec<Item>, Error> {
    let mut items = Vec::new();
    Trace::open(Cursor::new(bytes))?.replay(|item| {
        items.push(item);
        Ok::<_, Error>(())
    })?;
    Ok(items)
}

fn sample() -> Vec<u8> {
    file(|writer| {
        let one = [
            event(10, 0, Kind::Switch, 7, 0),
            event(30, 0, Kind::Switch, 0, 7),
        ];
        writer.events(0, &one).unwrap();
        // An interrupt wrote the second between time and place of the first.
        let two = [
            event(25, 1, Kind::Wakeup, 7, 0),
            event(20, 1, Kind::Exit, 7, 0),
        ];
        writer.events(1, &two).unwrap();
    })
}

#[test]
fn events_come_by_time_over_all_cpus() {
    let times: Vec<_> = (replay(&sample()).unwrap().iter())
        .map(|item| match item {
            Item::Event(event) => event.time,
            Item::Gap { .. } => 0,
        })
        .collect();
    assert_eq!(times, [10, 20, 25, 30]);
    let trace = Trace::open(Cursor::new(sample())).unwrap();
    assert_eq!((trace.events, trace.head), (4, head()));
    assert_eq!(trace.end, Some(End::default()));
}

#[test]
fn a_gap_begins_with_the_event_before_and_ends_with_the_one_behind_it() {
    let bytes = file(|writer| {
        writer.events(0, &[event(10, 0, Kind::Exit, 1, 0)]).unwrap();
        writer.gap(0, 5).unwrap();
        writer.events(0, &[event(40, 0, Kind::Exit, 2, 0)]).unwrap();
        writer.events(1, &[event(20, 1, Kind::Exit, 3, 0)]).unwrap();
    });
    let (a, b, c) = (
        Item::Event(event(10, 0, Kind::Exit, 1, 0)),
        Item::Event(event(20, 1, Kind::Exit, 3, 0)),
        Item::Event(event(40, 0, Kind::Exit, 2, 0)),
    );
    let gap = Item::Gap { cpu: 0 };
    assert_eq!(replay(&bytes).unwrap(), [a, gap, b, gap, c]);
    assert_eq!(Trace::open(Cursor::new(bytes)).unwrap().lost, 5);
}

#[test]
fn a_file_that_is_cut_is_read_as_far_as_it_goes() {
    let whole = sample();
    let first = (0..whole.len()).find(|n| Trace::open(Cursor::new(&whole[..*n])).is_ok());
    for length in 0..whole.len() {
        match Trace::open(Cursor::new(&whole[..length])) {
            Ok(trace) => {
                assert!(Some(length) >= first);
                assert_eq!(trace.end, None);
                assert!([0, 2, 4].contains(&trace.events));
                replay(&whole[..length]).unwrap();
            }
            Err(Error::NoHead) => assert!(length >= MAGIC.len()),
            Err(Error::Foreign) => assert!(length < MAGIC.len()),
            Err(other) => panic!("{length}: {other}"),
        }
    }
}

#[test]
fn foreign_newer_and_damaged_files_are_refused_by_a_line() {
    let refused = |bytes: &[u8]| replay(bytes).unwrap_err().to_string();
    assert!(refused(b"").contains("no trace"));
    assert!(refused(b"PERFILE2 and more").contains("no trace"));
    let whole = sample();
    let with = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] ^= byte;
        refused(&bytes)
    };
    assert!(with(8, 2).contains("version 3, and this program reads version 1"));
    assert!(with(PREFIX + 2, 1).contains("head"));
    let first = PREFIX + serde_json::to_vec(&head()).unwrap().len();
    assert!(with(first, 1).contains(&format!("damaged at byte {first}: no chunk")));
    assert!(with(first + 4, 1).contains("checksum"), "another CPU");
    assert!(with(first + CHUNK + 9, 1).contains("checksum"));
}

#[test]
fn a_chunk_that_lies_with_a_right_checksum_is_refused() {
    let bytes = file(|writer| writer.events(0, &[event(1, 1, Kind::Exit, 1, 0)]).unwrap());
    assert!(replay(&bytes)
        .unwrap_err()
        .to_string()
        .contains("another CPU"));
}

#[test]
fn whatever_bytes_there_are_there_is_an_answer() {
    for_a_while(changed(Just(sample())), |bytes| {
        if let Ok(trace) = Trace::open(Cursor::new(bytes)) {
            drop(Analysis::of(trace));
        }
        Ok(())
    });
}

#[test]
fn from_wherever_a_replay_was_the_rest_is_the_same() {
    let any_chunk = (0..3u16, vec(0..50u64, 0..4), 0..3u8);
    for_a_while(vec(any_chunk, 0..20), |chunks| {
        let bytes = file(|writer| {
            for (cpu, times, gap) in chunks {
                if gap == 0 {
                    writer.gap(cpu, 1).unwrap();
                }
                let event = |time: &u64| event(*time, cpu, Kind::Exit, 1, 0);
                writer
                    .events(cpu, &times.iter().map(event).collect::<Vec<_>>())
                    .unwrap();
            }
        });
        let all = replay(&bytes).unwrap();
        let mut trace = Trace::open(Cursor::new(&bytes)).unwrap();
        let mut position = Position::default();
        for number in 0..=all.len() {
            let mut replay = trace.go_on(&position).unwrap();
            prop_assert_eq!(replay.read().unwrap(), all.get(number).copied());
            position = replay.position();
            let mut rest = Vec::new();
            while let Some(item) = replay.read().unwrap() {
                rest.push(item);
            }
            prop_assert_eq!(&rest[..], all.get(number + 1..).unwrap_or(&[]));
        }
        let times = all.iter().filter_map(|item| match item {
            Item::Event(event) => Some(event.time),
            Item::Gap { .. } => None,
        });
        prop_assert!(trace.last_ns().unwrap() <= times.clone().max().unwrap_or(0));
        Ok(())
    });
}

#[test]
fn whatever_events_there_are_there_is_a_picture() {
    let any_event = (0..50u64, 0..3u16, 0..14u16, 0..4u32, any::<u32>(), 0..4u32);
    for_a_while(vec(any_event, 0..200), |events| {
        let mut writer = Writer::new(Vec::new(), &head()).unwrap();
        for (time, cpu, kind, pid, high, low) in events {
            let arg = u64::from(high) << 32 | u64::from(low);
            let event = Event {
                time: if high % 7 == 0 { u64::MAX - time } else { time },
                pid,
                kind,
                cpu,
                arg,
            };
            writer.events(cpu, &[event]).unwrap();
            if high % 11 == 0 {
                writer.gap(cpu, u64::MAX).unwrap();
            }
        }
        let bytes = writer.end(&End::default()).unwrap();
        let trace = Trace::open(Cursor::new(bytes)).unwrap();
        let text = Analysis::of(trace).unwrap().to_string();
        prop_assert!(text.contains("CPU"), "{text}");
        Ok(())
    });
}
