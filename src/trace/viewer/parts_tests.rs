// SPDX-License-Identifier: GPL-2.0-only
//! Tests of parts: what a server gives is what a page with all events has there.

use super::super::format::Head;
use super::super::Kind;
use super::lanes::{Builder, Lane};
use super::tests::{any_items, bytes, event, head, spans};
use super::tiles;
use super::{Parts, Sizes};
use crate::fuzz::for_a_while;
use crate::trace::reader::{Error, Item, Trace};
use proptest::prelude::*;
use std::io::Cursor;

/// What of the lane is between two times: what runs, waits and is locked, and its events.
fn between(lane: &Lane, from: u64, to: u64, end: u64) -> impl PartialEq + std::fmt::Debug {
    let clip = |(a, b, task, speed): &(u64, u64, u32, Option<u16>)| {
        let (a, b) = ((*a).max(from), (*b).min(to));
        (a < b).then_some((a, b, *task, *speed))
    };
    let spans: Vec<_> = spans(lane, end).iter().filter_map(clip).collect();
    let values = |steps: &[(u64, u16)]| -> Vec<u16> {
        let at = |ns| {
            steps
                .iter()
                .rfind(|(time, _)| *time <= ns)
                .map_or(0, |step| step.1)
        };
        (from..=to).map(at).collect()
    };
    let events = &lane.events;
    let rows = (0..events.time.len()).filter(|at| (from..=to).contains(&events.time[*at]));
    let row = |at: usize| {
        let (kind, task) = (events.kind[at], events.task[at]);
        (events.time[at], kind, task, events.low[at], events.high[at])
    };
    let rows: Vec<_> = rows.map(row).collect();
    (spans, values(&lane.queue), values(&lane.locked), rows)
}

#[test]
fn a_part_of_a_trace_is_what_all_of_it_has_there() {
    let sizes = |step, remembered| Sizes {
        step,
        remembered,
        tiles: 1 << 12,
        most: 1 << 20,
    };
    let any = (
        any_items(),
        any::<bool>(),
        1..20u64,
        0..60usize,
        0..400u64,
        0..400u64,
    );
    for_a_while(any, |(items, overwrite, step, remembered, from, to)| {
        let head = Head {
            overwrite,
            ..head(&[(1, "one"), (2, "two")])
        };
        let bytes = bytes(&head, |writer| {
            for item in &items {
                match item {
                    Item::Event(event) => writer.events(event.cpu, &[*event]).unwrap(),
                    Item::Gap { cpu } => writer.gap(*cpu, 1).unwrap(),
                }
            }
        });
        let trace = || Trace::open(Cursor::new(&bytes)).unwrap();
        let mut builder = Builder::new(&head);
        trace()
            .replay(|item| {
                builder.take(item);
                Ok::<_, Error>(())
            })
            .unwrap();
        let whole = builder.finish(0);
        let mut parts = Parts::new(trace(), sizes(step, remembered)).unwrap();
        let mut making = tiles::Making::new(whole.span, 1 << 12, head.cpus.len());
        making.take(&whole, whole.span);
        for (one, other) in making.finish().iter().zip(parts.levels()) {
            prop_assert_eq!(&one.lanes, &other.lanes);
        }
        let (from, to) = (from.min(to), from.max(to));
        let (part, until) = parts.events(from, to).unwrap();
        prop_assert_eq!(until, to);
        for (id, lane) in &whole.lanes {
            let (to, end) = (to.min(whole.span), whole.span);
            let Some(part) = part.lanes.get(id) else {
                // Nothing was heard of it so far.
                let first = lane.queue.first().map(|(time, _)| time);
                prop_assert!(lane
                    .events
                    .time
                    .first()
                    .into_iter()
                    .chain(first)
                    .all(|time| *time > to));
                continue;
            };
            prop_assert_eq!(between(part, from, to, end), between(lane, from, to, end));
        }
        Ok(())
    });
}

#[test]
fn a_part_with_too_many_events_is_shorter_than_asked_for() {
    let bytes = bytes(&head(&[]), |writer| {
        for at in 0..100 {
            if let Item::Event(event) = event(at * 10, 0, Kind::Switch, 7, 0, 0) {
                writer.events(0, &[event]).unwrap();
            }
        }
    });
    let sizes = Sizes {
        step: 30,
        most: 10,
        ..Sizes::default()
    };
    let mut parts = Parts::new(Trace::open(Cursor::new(bytes)).unwrap(), sizes).unwrap();
    let (part, to) = parts.events(400, 900).unwrap();
    assert_eq!((part.lanes[&0].events.time.len(), to), (10, 490));
    assert_eq!(parts.size().events, 100);
}
