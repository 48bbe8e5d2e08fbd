// SPDX-License-Identifier: GPL-2.0-only
//! A trace as a table in Apache Parquet's format: a row for each event and each gap, by
//! time, with the columns that CSV has. Rows are written in groups, so that memory does not
//! grow with the trace but for some 4 KiB a group. What of the format is not data, a crate
//! encodes; the official one is under Apache-2.0 alone, which does not go together with
//! GPL-2.0-only in one program.

mod column;

use super::format::Head;
use super::reader::{Item, Trace};
use super::Failed;
use column::Column;
use parquet_format_safe::thrift::protocol::TCompactOutputProtocol;
use parquet_format_safe::{
    ConvertedType, FieldRepetitionType, FileMetaData, RowGroup, SchemaElement, Type,
};
use std::io::{self, Read, Seek, Write};

/// What a file begins and ends with.
const MAGIC: &[u8; 4] = b"PAR1";
/// Rows of a group: some 5 MB before they are packed.
const GROUP: usize = 1 << 17;

/// Writes all of the trace.
pub fn write<R: Read + Seek>(trace: Trace<R>, to: &mut impl Write) -> Result<(), Failed> {
    let mut out = Out::new(trace.head.clone(), to);
    out.put(MAGIC)?;
    trace.replay(|item| out.take(item).map_err(Failed::from))?;
    out.end()?;
    Ok(())
}

struct Out<'a, W> {
    head: Head,
    to: &'a mut W,
    /// Bytes written.
    at: usize,
    columns: Columns,
    groups: Vec<RowGroup>,
    rows: usize,
}

/// In the order in which they stand in the file.
struct Columns {
    time: Column,
    cpu: Column,
    event: Column,
    pid: Column,
    low: Column,
    high: Column,
}

impl Columns {
    fn new() -> Self {
        let number = |name, bits| Column::new(name, Type::INT32, bits, true);
        Self {
            time: Column::new("time_ns", Type::INT64, ConvertedType::UINT_64, true),
            cpu: Column::new("cpu", Type::INT32, ConvertedType::UINT_16, false),
            event: Column::new("event", Type::BYTE_ARRAY, ConvertedType::UTF8, false),
            pid: number("pid", ConvertedType::UINT_32),
            low: number("low", ConvertedType::UINT_32),
            high: number("high", ConvertedType::UINT_32),
        }
    }

    fn all(&mut self) -> [&mut Column; 6] {
        [
            &mut self.time,
            &mut self.cpu,
            &mut self.event,
            &mut self.pid,
            &mut self.low,
            &mut self.high,
        ]
    }
}

impl<'a, W: Write> Out<'a, W> {
    fn new(head: Head, to: &'a mut W) -> Self {
        Self {
            head,
            to,
            at: 0,
            columns: Columns::new(),
            groups: Vec::new(),
            rows: 0,
        }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len();
        self.to.write_all(bytes)
    }

    fn take(&mut self, item: Item) -> io::Result<()> {
        let columns = &mut self.columns;
        match item {
            Item::Event(event) => {
                columns.time.push(&event.time.to_le_bytes());
                columns.cpu.push(&u32::from(event.cpu).to_le_bytes());
                columns.event.push_text(&self.head.kind(event.kind));
                columns.pid.push(&event.pid.to_le_bytes());
                columns.low.push(&event.low().to_le_bytes());
                columns.high.push(&event.high().to_le_bytes());
            }
            Item::Gap { cpu } => {
                columns.cpu.push(&u32::from(cpu).to_le_bytes());
                columns.event.push_text("gap");
                let unknown = [&mut columns.time, &mut columns.pid];
                unknown.into_iter().for_each(Column::push_none);
                let unknown = [&mut columns.low, &mut columns.high];
                unknown.into_iter().for_each(Column::push_none);
            }
        }
        self.rows += 1;
        match self.rows {
            GROUP.. => self.group(),
            _ => Ok(()),
        }
    }

    /// Writes what is there as a group of rows, a page to each column.
    fn group(&mut self) -> io::Result<()> {
        let (rows, begin) = (std::mem::take(&mut self.rows), self.at);
        let (mut chunks, mut unpacked) = (Vec::new(), 0);
        for column in self.columns.all() {
            let page = column.page()?;
            let header = thrift(|to| page.header.write_to_out_protocol(to))?;
            self.to.write_all(&header)?;
            self.to.write_all(&page.bytes)?;
            let chunk = page.chunk(column, self.at, header.len());
            self.at += header.len() + page.bytes.len();
            unpacked += chunk.unpacked;
            chunks.push(chunk.described);
        }
        self.groups.push(RowGroup {
            columns: chunks,
            total_byte_size: unpacked,
            num_rows: rows as i64,
            sorting_columns: None,
            file_offset: Some(begin as i64),
            total_compressed_size: Some((self.at - begin) as i64),
            ordinal: None,
        });
        Ok(())
    }

    fn end(mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.group()?;
        }
        let mut schema = vec![root(self.columns.all().len())];
        schema.extend(self.columns.all().map(|column| column.described()));
        let footer = FileMetaData {
            version: 1,
            schema,
            num_rows: self.groups.iter().map(|group| group.num_rows).sum(),
            row_groups: std::mem::take(&mut self.groups),
            key_value_metadata: None,
            created_by: Some(concat!("scx_freqlock version ", env!("CARGO_PKG_VERSION")).into()),
            column_orders: None,
            encryption_algorithm: None,
            footer_signing_key_metadata: None,
        };
        let footer = thrift(|to| footer.write_to_out_protocol(to))?;
        self.put(&footer)?;
        self.put(&(footer.len() as u32).to_le_bytes())?;
        self.put(MAGIC)?;
        self.to.flush()
    }
}

/// What a schema begins with.
fn root(columns: usize) -> SchemaElement {
    SchemaElement {
        type_: None,
        type_length: None,
        repetition_type: None::<FieldRepetitionType>,
        name: "events".into(),
        num_children: Some(columns as i32),
        converted_type: None,
        scale: None,
        precision: None,
        field_id: None,
        logical_type: None,
    }
}

/// What is written to `to`, in Thrift's compact form.
fn thrift(
    write: impl FnOnce(
        &mut TCompactOutputProtocol<&mut Vec<u8>>,
    ) -> parquet_format_safe::thrift::Result<usize>,
) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write(&mut TCompactOutputProtocol::new(&mut bytes)).map_err(io::Error::other)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
