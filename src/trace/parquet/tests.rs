// SPDX-License-Identifier: GPL-2.0-only
//! Tests of what a reader of Parquet gets: each event and each gap once, as it was.

use super::super::format::{End, Event};
use super::super::writer::Writer;
use super::super::Kind;
use super::*;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::RowAccessor;
use std::io::Cursor;

fn head() -> Head {
    Head {
        events: vec!["fork".into(), "a \"name\"".into()],
        ..Head::default()
    }
}

fn written(fill: impl FnOnce(&mut Writer<Vec<u8>>)) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &head()).unwrap();
    fill(&mut writer);
    let file = writer.end(&End::default()).unwrap();
    let mut out = Vec::new();
    write(Trace::open(Cursor::new(file)).unwrap(), &mut out).unwrap();
    out
}

type Row = (Option<u64>, u16, String, Option<[u32; 3]>);

fn read(file: Vec<u8>) -> Vec<Row> {
    let reader = SerializedFileReader::new(bytes::Bytes::from(file)).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(|row| {
        let row = row.unwrap();
        let numbers = [3, 4, 5].map(|column| row.get_uint(column).ok());
        let numbers = numbers.iter().copied().collect::<Option<Vec<_>>>();
        (
            row.get_ulong(0).ok(),
            row.get_ushort(1).unwrap(),
            row.get_string(2).unwrap().clone(),
            numbers.map(|numbers| numbers.try_into().unwrap()),
        )
    });
    rows.collect()
}

fn event(time: u64, cpu: u16, kind: u16, pid: u32, low: u32, high: u32) -> Event {
    Event {
        time,
        pid,
        kind,
        cpu,
        arg: u64::from(high) << 32 | u64::from(low),
    }
}

#[test]
fn each_event_and_each_gap_is_a_row() {
    let file = written(|writer| {
        let first = event(u64::MAX, 1, Kind::Fork as u16, u32::MAX, 7, u32::MAX);
        writer.events(0, &[event(5, 0, 1, 3, 4, 6)]).unwrap();
        writer.gap(1, 9).unwrap();
        writer.events(1, &[first]).unwrap();
    });
    assert_eq!(
        (&file[..4], &file[file.len() - 4..]),
        (&MAGIC[..], &MAGIC[..])
    );
    let mut rows = read(file);
    rows.sort();
    // A gap has two ends. What no kind can be called is a number.
    let gap = (None, 1, "gap".into(), None);
    let expected = [
        gap.clone(),
        gap,
        (Some(5), 0, "1".into(), Some([3, 4, 6])),
        (
            Some(u64::MAX),
            1,
            "fork".into(),
            Some([u32::MAX, 7, u32::MAX]),
        ),
    ];
    assert_eq!(rows, expected);
    assert_eq!(read(written(|_| ())), []);
}

#[test]
fn more_rows_than_a_group_has_come_in_several() {
    let events: Vec<Event> = (0..GROUP as u32 + 10)
        .map(|at| event(at.into(), 3, 0, at, at ^ 1, 0))
        .collect();
    let file = written(|writer| writer.events(3, &events).unwrap());
    let reader = SerializedFileReader::new(bytes::Bytes::from(file.clone())).unwrap();
    let sizes: Vec<_> = (reader.metadata().row_groups().iter())
        .map(|group| group.num_rows())
        .collect();
    assert_eq!(sizes, [GROUP as i64, 10]);
    let rows = read(file);
    assert_eq!(rows.len(), events.len());
    for (row, event) in rows.iter().zip(&events) {
        let numbers = [event.pid, event.low(), 0];
        assert_eq!(*row, (Some(event.time), 3, "fork".into(), Some(numbers)));
    }
}
