// SPDX-License-Identifier: GPL-2.0-only
//! Tests of pictures: what is in them follows from the events.

use super::super::format::{Cpu, End, Event};
use super::super::reader::{Item, Trace};
use super::super::writer::Writer;
use super::super::Kind;
use super::speeds::PARTS;
use super::*;
use crate::foreign::tests::HOSTILE;
use std::io::Cursor;

const BEGIN: u64 = 5_000_000;
const US: u64 = 1000;

fn head() -> Head {
    let cpu = |id| Cpu {
        id,
        capacity: Some(1024),
        max_khz: Some(4_000_000),
        khz: Some(1_000_000),
        running: Some(0),
    };
    Head {
        begin_ns: BEGIN,
        release: HOSTILE.into(),
        cpus: vec![cpu(0), cpu(7)],
        ..Head::default()
    }
}

fn event(us: u64, cpu: u16, kind: Kind, pid: u32, high: u32, low: u32) -> Event {
    Event {
        time: BEGIN + us * US,
        pid,
        kind: kind as u16,
        cpu,
        arg: u64::from(high) << 32 | u64::from(low),
    }
}

/// CPU 0 wakes a task for CPU 7, which is fast from 1 ms on and busy from 2 ms on.
fn events() -> [Event; 4] {
    [
        event(500, 0, Kind::Switch, 9, 0, 0),
        event(1000, 0, Kind::Frequency, 0, 7, 4_000_000),
        event(1500, 0, Kind::Wakeup, 10, 7, 9),
        event(2000, 7, Kind::Switch, 10, 0, 0),
    ]
}

fn speeds(head: &Head, events: &[Event], end_us: u64) -> Speeds {
    let mut speeds = Speeds::new(head);
    let items = events.iter().map(|event| Item::Event(*event));
    items.for_each(|item| speeds.take(item));
    speeds.finish(BEGIN + end_us * US);
    speeds
}

#[test]
fn parts_are_means_of_speed_and_of_busy_time_however_long_it_is() {
    // 4 ms in parts of 8 us: 500 of them.
    let of = speeds(&head(), &events(), 4000);
    assert_eq!((of.length(), of.width()), (4000 * US, 8 * US));
    let parts: Vec<_> = of.lanes().map(|(_, parts)| parts.to_vec()).collect();
    let at = |cpu: usize, us: usize| {
        let part = &parts[cpu][us / 8];
        (part.speed(), part.busy())
    };
    assert_eq!(parts[1].len(), 500);
    assert_eq!(
        (at(0, 0), at(0, 3999)),
        ((Some(0.25), 0.0), (Some(0.25), 1.0))
    );
    // 500 us is in the midst of a part.
    assert_eq!(at(0, 496), (Some(0.25), 0.5));
    assert_eq!(
        (at(1, 992), at(1, 1000)),
        ((Some(0.25), 0.0), (Some(1.0), 0.0))
    );
    assert_eq!(
        (at(1, 1992), at(1, 2000)),
        ((Some(1.0), 0.0), (Some(1.0), 1.0))
    );
    // What comes late makes the parts wider, and loses nothing.
    let long = speeds(&head(), &events(), 3_600_000_000);
    let (_, parts) = long.lanes().last().unwrap();
    assert!(
        parts.len() <= PARTS && parts.len() > PARTS / 2,
        "{}",
        parts.len()
    );
    assert!(parts[0].busy() > 0.99 && parts[0].busy() < 1.0);
}

#[test]
fn nothing_is_known_of_a_gap_and_before_a_flight_recorders_first_switch() {
    let mut gap = Speeds::new(&head());
    gap.take(Item::Event(events()[0]));
    gap.take(Item::Gap { cpu: 0 });
    gap.finish(BEGIN + 700 * US);
    assert_eq!(gap.lanes().next().unwrap().1.len(), 500);
    let overwrite = Head {
        overwrite: true,
        ..head()
    };
    let of = speeds(&overwrite, &events(), 4000);
    assert_eq!(of.length(), 3500 * US);
    assert_eq!(of.lanes().last().unwrap().1[0].speed(), None);
}

#[test]
fn pictures_have_what_was_measured_and_no_markup_of_others() {
    let mut writer = Writer::new(Vec::new(), &head()).unwrap();
    for cpu in [0, 7] {
        let on = |event: &&Event| event.cpu == cpu;
        let events: Vec<Event> = events().iter().filter(on).copied().collect();
        writer.events(cpu, &events).unwrap();
    }
    let end_ns = BEGIN + 4000 * US;
    let end = End {
        end_ns,
        ..End::default()
    };
    let file = writer.end(&end).unwrap();
    let mut speeds = Speeds::new(&head());
    let trace = Trace::open(Cursor::new(file)).unwrap();
    let analysis = Analysis::with(trace, |item| speeds.take(item)).unwrap();
    speeds.finish(end_ns);
    let pictures = pictures(&analysis, &speeds).unwrap();
    let names: Vec<_> = pictures.iter().map(|picture| picture.name).collect();
    assert_eq!(names, ["speeds", "waits"]);
    for picture in &pictures {
        assert!(picture.svg.starts_with("<svg") && picture.svg.trim_end().ends_with("</svg>"));
        assert!(!picture.svg.contains("<script") && !picture.svg.contains("<img"));
        assert!(picture.png.starts_with(b"\x89PNG\r\n\x1a\n"));
    }
    // One wait, of 500 us.
    for (at, part) in [
        (0, "CPU 7"),
        (0, "pale where idle"),
        (1, "from wake-up to run: 1"),
        (1, "1.00 ms"),
    ] {
        assert!(pictures[at].svg.contains(part), "{part}");
    }
    assert!(!pictures[1].svg.contains("preemption"));
    let empty = Analysis::of(Trace::open(Cursor::new(empty())).unwrap()).unwrap();
    let none = super::pictures(&empty, &Speeds::new(&Head::default())).unwrap();
    assert!(none.is_empty(), "{none:?}");
}

fn empty() -> Vec<u8> {
    let writer = Writer::new(Vec::new(), &Head::default()).unwrap();
    writer.end(&End::default()).unwrap()
}
