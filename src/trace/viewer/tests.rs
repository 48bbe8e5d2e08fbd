// SPDX-License-Identifier: GPL-2.0-only
//! Tests of the page: its columns and levels of detail say what the events say, and nothing
//! of a trace is markup.

use super::super::format::{Cpu, End, Event, Head, Task};
use super::super::writer::Writer;
use super::super::Kind;
use super::lanes::{Lane, Lanes, FULL, GAP, HOLDS, IDLE, UNKNOWN, WAITS};
use super::tiles::{byte, levels, Tile, NO_SPEED};
use super::*;
use crate::foreign::tests::HOSTILE;
use crate::fuzz::for_a_while;
use crate::trace::reader::Item;
use flate2::read::DeflateDecoder;
use proptest::collection::vec;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use std::io::Cursor;

const BEGIN: u64 = 5000;
const MARKUP: &str = "</script><script>bad()</script><!--]]>&\u{2028}@COLUMNS@\n@SCRIPT@";

pub(super) fn head(tasks: &[(u32, &str)]) -> Head {
    let cpu = |id, khz| Cpu {
        id,
        capacity: Some(1024),
        max_khz: Some(4_000_000),
        khz,
        running: Some(0),
    };
    let task = |(pid, name): &(u32, &str)| Task {
        pid: *pid,
        tgid: *pid,
        name: (*name).into(),
    };
    Head {
        begin_ns: BEGIN,
        cpus: vec![cpu(0, Some(1_000_000)), cpu(2, None)],
        tasks: tasks.iter().map(task).collect(),
        ..Head::default()
    }
}

pub(super) fn event(time: u64, cpu: u16, kind: Kind, pid: u32, high: u32, low: u32) -> Item {
    Item::Event(Event {
        time: BEGIN + time,
        pid,
        kind: kind as u16,
        cpu,
        arg: u64::from(high) << 32 | u64::from(low),
    })
}

fn lanes(head: &Head, items: &[Item], end: u64) -> Lanes {
    let mut builder = Builder::new(head);
    items.iter().for_each(|item| builder.take(*item));
    builder.finish(BEGIN + end)
}

/// Index of the task of this PID and name.
fn index(lanes: &Lanes, pid: u32, name: &str) -> u32 {
    let is = |(one, other): &(u32, crate::foreign::Foreign)| *one == pid && other.raw() == name;
    lanes.tasks.list.iter().rposition(is).unwrap() as u32
}

pub(super) fn spans(lane: &Lane, end: u64) -> Vec<(u64, u64, u32, Option<u16>)> {
    let mut found = Vec::new();
    lane.spans(end, |from, to, task, speed| {
        found.push((from, to, task, speed))
    });
    found
}

#[test]
fn who_runs_how_fast_and_who_waits_follow_from_the_events() {
    let name = u64::from_le_bytes(*b"new\0\0\0\0\0");
    let items = [
        event(100, 0, Kind::Wakeup, 7, 2, 0),
        event(150, 0, Kind::Wakeup, 8, 2, 0),
        event(200, 2, Kind::Switch, 7, 0, 0),
        // Recorded elsewhere, it is the other CPU's frequency.
        event(300, 0, Kind::Frequency, 0, 2, 2_000_000),
        event(350, 2, Kind::Name, 7, 0, name as u32),
        event(400, 2, Kind::Switch, 8, 0, 7),
        event(500, 2, Kind::Migrate, 7, 2, 0),
        event(600, 0, Kind::Switch, 7, 0, 0),
        Item::Gap { cpu: 0 },
        event(800, 0, Kind::Switch, 0, 1, 9),
    ];
    let lanes = lanes(&head(&[(7, "seven"), (8, "eight")]), &items, 1000);
    let (zero, two) = (&lanes.lanes[&0], &lanes.lanes[&2]);
    let (old, new) = (index(&lanes, 7, "seven"), index(&lanes, 7, "new"));
    let eight = index(&lanes, 8, "eight");
    let expected = [
        (0, 600, IDLE, Some(256)),
        (600, 800, UNKNOWN, Some(256)),
        (800, 1000, IDLE, Some(256)),
    ];
    // The gap began with the last event before it.
    assert_eq!(spans(zero, lanes.span), expected);
    let expected = [
        (0, 200, IDLE, Some(1024)),
        (200, 300, old, Some(1024)),
        (300, 400, old, Some(512)),
        (400, 1000, eight, Some(512)),
    ];
    assert_eq!(spans(two, lanes.span), expected);
    assert_eq!(
        two.queue,
        [(100, 1), (150, 2), (200, 1), (400, 1), (500, 0)]
    );
    assert_eq!(zero.queue, [(500, 1), (600, 0)]);
    assert_eq!((lanes.count, lanes.begin, lanes.span), (9, BEGIN, 1000));
    assert_ne!(old, new);
    assert!(zero.events.kind.contains(&GAP));
}

#[test]
fn without_frequencies_ticks_tell_the_speed() {
    let mut head = head(&[(7, "seven")]);
    for cpu in &mut head.cpus {
        (cpu.capacity, cpu.max_khz, cpu.khz) = (None, None, None);
    }
    // Where frequencies tell, ticks do not.
    (head.cpus[1].max_khz, head.cpus[1].khz) = (Some(4), Some(4));
    let items = [
        event(200, 0, Kind::Tick, 7, 0, 512),
        event(300, 0, Kind::Tick, 7, 0, 5000),
        event(300, 2, Kind::Tick, 7, 0, 512),
    ];
    let lanes = lanes(&head, &items, 1000);
    let expected = [
        (0, 200, IDLE, None),
        (200, 300, IDLE, Some(512)),
        (300, 1000, IDLE, Some(FULL)),
    ];
    assert_eq!(spans(&lanes.lanes[&0], lanes.span), expected);
    assert_eq!(
        spans(&lanes.lanes[&2], lanes.span),
        [(0, 1000, IDLE, Some(FULL))]
    );
}

#[test]
fn whoever_runs_is_one_that_waits_for_a_lock_or_that_others_wait_for() {
    let items = [
        event(100, 2, Kind::Switch, 8, 0, 0),
        event(200, 0, Kind::Switch, 7, 0, 0),
        event(300, 0, Kind::LockWait, 7, 0, 5),
        event(301, 0, Kind::LockHold, 8, 0, 5),
        event(400, 0, Kind::Switch, 0, 1, 7),
        event(500, 2, Kind::Switch, 9, 0, 8),
        event(600, 2, Kind::Switch, 8, 0, 9),
        event(700, 2, Kind::Handoff, 7, 8, 5),
    ];
    let all = lanes(&head(&[]), &items, 1000);
    assert_eq!(all.lanes[&0].locked, [(300, WAITS), (400, 0)]);
    let expected = [(301, HOLDS), (500, 0), (600, HOLDS), (700, 0)];
    assert_eq!(all.lanes[&2].locked, expected);
    // Where events are missing nothing is known of locks.
    let cut = [&items[..4], &[Item::Gap { cpu: 2 }][..]].concat();
    let cut = lanes(&head(&[]), &cut, 1000);
    assert_eq!(cut.lanes[&2].locked.last(), Some(&(301, 0)));
}

#[test]
fn a_flight_recorder_begins_with_its_first_event() {
    let head = Head {
        overwrite: true,
        ..head(&[])
    };
    let lanes = lanes(&head, &[event(700, 0, Kind::Switch, 0, 1, 7)], 900);
    assert_eq!((lanes.begin, lanes.span), (BEGIN + 700, 200));
    assert_eq!(lanes.lanes[&2].running, UNKNOWN);
}

/// What a tile should be, nanosecond by nanosecond.
fn by_hand(lanes: &Lanes, lane: &Lane, from: u64, to: u64) -> Tile {
    let spans = spans(lane, lanes.span);
    let (mut ran, mut speeds) = (vec![0; lanes.tasks.list.len()], Vec::new());
    let (mut queue, mut locked) = (0, 0);
    let at = |steps: &[(u64, u16)], ns| {
        let last = steps.iter().rfind(|(time, _)| *time <= ns);
        last.map_or(0, |(_, value)| *value)
    };
    for ns in from..to {
        let found: Vec<_> = spans
            .iter()
            .filter(|span| span.0 <= ns && ns < span.1)
            .collect();
        assert_eq!(found.len(), 1, "no time is twice or missing");
        ran[found[0].2 as usize] += 1;
        speeds.extend(found[0].3);
        queue = queue.max(at(&lane.queue, ns));
        locked = locked.max(at(&lane.locked, ns));
    }
    let most = ran.iter().max().copied().unwrap();
    let sum: u64 = speeds.iter().map(|speed| u64::from(*speed)).sum();
    let mean = sum.checked_div(speeds.len() as u64);
    let busy: u64 = ran[2..].iter().sum();
    let last = to == lanes.span;
    let is_here = |time: &&u64| **time >= from && (**time < to || last);
    Tile {
        task: ran.iter().position(|ns| *ns == most).unwrap() as u32,
        events: lane.events.time.iter().filter(is_here).count() as u16,
        busy: (busy * 255 / (to - from)) as u8,
        mean: byte(mean.map(|mean| mean as u16)),
        low: byte(speeds.iter().min().copied()),
        high: byte(speeds.iter().max().copied()),
        queue: queue as u8,
        locked: locked as u8,
    }
}

/// Any events of three CPUs and five tasks, with gaps.
pub(super) fn any_items() -> impl Strategy<Value = Vec<Item>> {
    let any_event = (0..40u64, 0..3u16, 0..36u16, 0..5u32, 0..3u32, 0..5u32);
    vec(any_event, 0..60).prop_map(|events| {
        let (mut now, mut items) = (0, Vec::new());
        for (after, cpu, kind, pid, high, low) in events {
            now += after;
            let Item::Event(mut event) = event(now, cpu, Kind::Switch, pid, high, low) else {
                continue;
            };
            if kind < 23 {
                event.kind = kind;
            }
            if kind == Kind::Frequency as u16 {
                event.arg = u64::from(high) << 32 | u64::from(low * 1_000_000);
            }
            items.push(Item::Event(event));
            if after == 7 {
                items.push(Item::Gap { cpu });
            }
        }
        items
    })
}

#[test]
fn every_level_of_detail_says_what_the_events_say() {
    for_a_while(any_items(), |items| {
        let lanes = lanes(&head(&[(1, "one"), (2, "two")]), &items, 300);
        let finer = |cpus| {
            let mut making = tiles::Making::new(lanes.span, 1 << 12, cpus);
            making.take(&lanes, lanes.span);
            making.finish()
        };
        // Where one CPU was expected, the lowest level goes as others come.
        for levels in [levels(&lanes), finer(3), finer(1)] {
            prop_assert!(levels.is_sorted_by_key(|level| level.width));
            for level in levels {
                for (lane, tiles) in lanes.lanes.values().zip(&level.lanes) {
                    prop_assert_eq!(tiles.len() as u64, lanes.span.div_ceil(level.width));
                    for (number, tile) in tiles.iter().enumerate() {
                        let from = number as u64 * level.width;
                        let to = (from + level.width).min(lanes.span);
                        prop_assert_eq!(*tile, by_hand(&lanes, lane, from, to));
                    }
                }
            }
        }
        Ok(())
    });
}

#[test]
fn there_are_few_tiles_for_an_event_and_the_highest_level_has_few() {
    let items: Vec<_> = (0..100_000)
        .map(|at| event(at * 1000, 0, Kind::Switch, at as u32 % 2, 0, 0))
        .collect();
    let lanes = lanes(&head(&[]), &items, 0);
    let levels = levels(&lanes);
    let all: usize = levels
        .iter()
        .flat_map(|level| &level.lanes)
        .map(Vec::len)
        .sum();
    assert!(all < 100_000 / 4, "{all}");
    assert!(levels.last().unwrap().lanes[0].len() <= 256);
    assert_eq!(byte(None), NO_SPEED);
    assert_eq!((byte(Some(0)), byte(Some(FULL))), (0, 254));
}

fn page(head: &Head, fill: impl FnOnce(&mut Writer<Vec<u8>>)) -> String {
    page_with(&[], head, fill)
}

fn page_with(views: &[View], head: &Head, fill: impl FnOnce(&mut Writer<Vec<u8>>)) -> String {
    let bytes = bytes(head, fill);
    let mut page = Vec::new();
    write(Trace::open(Cursor::new(bytes)).unwrap(), views, &mut page).unwrap();
    String::from_utf8(page).unwrap()
}

pub(super) fn bytes(head: &Head, fill: impl FnOnce(&mut Writer<Vec<u8>>)) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), head).unwrap();
    fill(&mut writer);
    writer.end(&End::default()).unwrap()
}

/// The content of the element that begins so.
fn element<'a>(page: &'a str, begin: &str) -> &'a str {
    let (_, rest) = page
        .split_once(begin)
        .unwrap_or_else(|| panic!("no {begin}"));
    let rest = rest.split_once('>').unwrap().1;
    rest.split_once("</").unwrap().0
}

fn unpacked(page: &str, id: &str) -> Vec<u8> {
    let text = element(page, &format!("id=\"{id}\""));
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        other => panic!("{other} in base64"),
    };
    let mut packed = Vec::new();
    for four in text.as_bytes().chunks(4) {
        let digits: Vec<u32> = (four.iter().filter(|c| **c != b'='))
            .map(|c| value(*c).into())
            .collect();
        let bits = (0..4).fold(0, |bits, at| bits << 6 | digits.get(at).unwrap_or(&0));
        packed.extend(&bits.to_be_bytes()[1..digits.len()]);
    }
    let mut bytes = Vec::new();
    DeflateDecoder::new(&packed[..])
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

#[test]
fn nothing_of_a_trace_is_markup_and_only_our_script_may_run() {
    let mut head = head(&[(7, MARKUP), (8, HOSTILE)]);
    head.scheduler = Some(MARKUP.into());
    head.release = MARKUP.into();
    head.events = vec![MARKUP.into()];
    let page = page(&head, |writer| {
        let switch = |pid| match event(1, 0, Kind::Switch, pid, 0, 0) {
            Item::Event(event) => event,
            Item::Gap { .. } => panic!("no event"),
        };
        writer.events(0, &[switch(7), switch(8)]).unwrap();
    });
    // Data, tiles, two lanes, and ours.
    assert_eq!(page.matches("<script").count(), 5);
    assert_eq!(page.matches("</script").count(), 5);
    assert_eq!(page.matches("<!--").count(), 1, "the licence");
    assert!(!page.contains("bad()</"));
    assert_eq!(
        crate::foreign::lines(&page),
        page,
        "nothing acts on a terminal"
    );
    let data: serde_json::Value = serde_json::from_str(element(&page, "id=\"data\"")).unwrap();
    let names: Vec<_> = data["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| &task[1])
        .collect();
    let shown = |text: &str| crate::foreign::Foreign::from(text).to_string();
    assert_eq!(
        names,
        [
            &"idle".into(),
            &"unknown".into(),
            &shown(MARKUP),
            &shown(HOSTILE)
        ]
    );
    let policy = page
        .split_once("http-equiv=\"Content-Security-Policy\" content=\"")
        .unwrap()
        .1;
    let policy = policy.split_once('"').unwrap().0;
    assert!(
        policy.starts_with("default-src 'none'; script-src 'sha256-"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");
    for (begin, end) in [("<style>", "</style>"), ("<script>", "</script>")] {
        let text = page.split_once(begin).unwrap().1.split_once(end).unwrap().0;
        let digest: Vec<u8> = Sha256::digest(text).to_vec();
        assert!(policy.contains(&html::base64(&digest)), "{begin}: {policy}");
    }
    for outside in ["http:", "https:", "src=", "href=", "import(", "fetch("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn columns_have_all_events_and_times_of_any_length() {
    let far = u64::from(u32::MAX) + 10;
    let page = page(&head(&[(7, "seven")]), |writer| {
        let events = [
            event(5, 0, Kind::Switch, 7, 3, 2),
            event(far, 0, Kind::Wakeup, 7, 0, 1),
        ];
        for item in events {
            if let Item::Event(event) = item {
                writer.events(0, &[event]).unwrap();
            }
        }
    });
    let data: serde_json::Value = serde_json::from_str(element(&page, "id=\"data\"")).unwrap();
    let cpu = &data["cpus"][0];
    assert_eq!(
        (cpu["events"].as_u64(), data["span"].as_u64()),
        (Some(2), Some(far))
    );
    assert_eq!(cpu["jumps"], serde_json::json!([[1, 5]]));
    let bytes = unpacked(&page, "lane-0");
    let word = |at: usize| u32::from_le_bytes(bytes[4 * at..][..4].try_into().unwrap());
    let words: Vec<_> = (0..8).map(word).collect();
    assert_eq!(words, [5, u32::MAX, 2, 2, 2, 1, 3, 0]);
    assert_eq!(
        bytes[bytes.len() - 2..],
        [Kind::Switch as u8, Kind::Wakeup as u8]
    );
    assert!(!unpacked(&page, "tiles").is_empty());
}

#[test]
fn an_empty_trace_and_too_many_events_have_an_answer() {
    let none = page(&Head::default(), |_| ());
    assert_eq!(none.matches("<script").count(), 3);
    let mut writer = Writer::new(Vec::new(), &Head::default()).unwrap();
    writer.gap(1, 0).unwrap();
    let bytes = writer.end(&End::default()).unwrap();
    let mut trace = Trace::open(Cursor::new(bytes)).unwrap();
    trace.events = MOST_EVENTS + 1;
    let refused = write(trace, &[], &mut Vec::new()).unwrap_err().to_string();
    assert!(refused.contains("20000001 events"), "{refused}");
}

#[test]
fn views_are_data_and_one_of_a_known_name_takes_its_place() {
    let view = |name: &str, title: &str| -> View {
        let text = serde_json::json!({
            "name": name, "title": title, "colour": "queue", "about": MARKUP, "find": "pid = 1"
        });
        serde_json::from_str(&text.to_string()).unwrap()
    };
    let views = [view("load", "Mine"), view("new", "New")];
    let page = page_with(&views, &Head::default(), |_| ());
    let data: serde_json::Value = serde_json::from_str(element(&page, "id=\"data\"")).unwrap();
    let titles: Vec<_> = (data["views"].as_array().unwrap().iter())
        .map(|view| view["title"].as_str().unwrap())
        .collect();
    assert_eq!(
        titles,
        ["Frequency", "Tasks", "Mine", "Forks", "Locks", "New"]
    );
    assert_eq!(page.matches("<script").count(), 3);
    for wrong in ["{}", "[]", "{\"name\": \"a\", \"colour\": \"red\"}"] {
        assert!(serde_json::from_str::<View>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn whatever_events_there_are_there_is_a_page() {
    let any_event = (0..50u64, 0..3u16, 0..14u16, 0..4u32, any::<u32>(), 0..4u32);
    for_a_while(vec(any_event, 0..100), |events| {
        let bytes = bytes(&head(&[(1, MARKUP)]), |writer| {
            for (time, cpu, kind, pid, high, low) in &events {
                let Item::Event(mut event) = event(*time, *cpu, Kind::Exit, *pid, *high, *low)
                else {
                    continue;
                };
                event.kind = *kind;
                if high % 7 == 0 {
                    event.time = u64::MAX - time;
                }
                writer.events(*cpu, &[event]).unwrap();
                if high % 11 == 0 {
                    writer.gap(*cpu, u64::MAX).unwrap();
                }
            }
        });
        let trace = || Trace::open(Cursor::new(&bytes)).unwrap();
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        write(trace(), &[], &mut whole).unwrap();
        let sizes = Sizes {
            step: 7,
            ..Sizes::default()
        };
        let mut server = Parts::new(trace(), sizes).unwrap();
        server.page(&[], &mut parts).unwrap();
        for page in [whole, parts] {
            prop_assert!(page.trim_ascii_end().ends_with(b"</html>"));
        }
        for (from, to) in [(0, 0), (3, u64::MAX), (u64::MAX, u64::MAX)] {
            server.part(from, to).unwrap();
        }
        Ok(())
    });
}
