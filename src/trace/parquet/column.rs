// SPDX-License-Identifier: GPL-2.0-only
//! A column of a group of rows, and the page that becomes of it: which rows have a value,
//! as runs, and then the values one behind the other, packed by zstd.

use parquet_format_safe::{
    ColumnChunk, ColumnMetaData, CompressionCodec, ConvertedType, DataPageHeader, Encoding,
    FieldRepetitionType, PageHeader, PageType, SchemaElement, Type,
};
use std::io;

/// The fastest of zstd's levels but the negative ones: the times of events pack badly at any.
const LEVEL: i32 = 1;

pub struct Column {
    name: &'static str,
    physical: Type,
    meaning: ConvertedType,
    may_lack: bool,
    /// Rows one behind the other that have a value or have none.
    runs: Vec<(bool, u32)>,
    values: Vec<u8>,
}

impl Column {
    /// `may_lack`: rows without a value are possible.
    pub fn new(name: &'static str, physical: Type, meaning: ConvertedType, may_lack: bool) -> Self {
        Self {
            name,
            physical,
            meaning,
            may_lack,
            runs: Vec::new(),
            values: Vec::new(),
        }
    }

    fn row(&mut self, has: bool) {
        match self.runs.last_mut() {
            Some((same, rows)) if *same == has => *rows += 1,
            _ => self.runs.push((has, 1)),
        }
    }

    /// A row with this value, in the width of the column's type.
    pub fn push(&mut self, value: &[u8]) {
        self.row(true);
        self.values.extend(value);
    }

    /// A row with this text.
    pub fn push_text(&mut self, text: &str) {
        self.push(&(text.len() as u32).to_le_bytes());
        self.values.extend(text.as_bytes());
    }

    /// A row without a value.
    pub fn push_none(&mut self) {
        self.row(false);
    }

    /// Its line in the schema.
    pub fn described(&self) -> SchemaElement {
        SchemaElement {
            type_: Some(self.physical),
            type_length: None,
            repetition_type: Some(match self.may_lack {
                true => FieldRepetitionType::OPTIONAL,
                false => FieldRepetitionType::REQUIRED,
            }),
            name: self.name.into(),
            num_children: None,
            converted_type: Some(self.meaning),
            scale: None,
            precision: None,
            field_id: None,
            logical_type: None,
        }
    }

    /// Which rows have a value: for each run its length, of which the lowest bit is 0, by
    /// seven bits, and 1 or 0.
    fn levels(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (has, rows) in &self.runs {
            let mut rest = u64::from(*rows) << 1;
            while rest >= 0x80 {
                bytes.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            bytes.extend([rest as u8, u8::from(*has)]);
        }
        bytes
    }

    /// All rows that it has, which it then has no more.
    pub fn page(&mut self) -> io::Result<Page> {
        let mut unpacked = Vec::with_capacity(self.values.len() + 16);
        if self.may_lack {
            let levels = self.levels();
            unpacked.extend((levels.len() as u32).to_le_bytes());
            unpacked.extend(levels);
        }
        unpacked.append(&mut self.values);
        let rows: u32 = self.runs.drain(..).map(|(_, rows)| rows).sum();
        let bytes = zstd::bulk::compress(&unpacked, LEVEL)?;
        let data = DataPageHeader {
            num_values: rows as i32,
            encoding: Encoding::PLAIN,
            definition_level_encoding: Encoding::RLE,
            repetition_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let header = PageHeader {
            type_: PageType::DATA_PAGE,
            uncompressed_page_size: unpacked.len() as i32,
            compressed_page_size: bytes.len() as i32,
            crc: Some(crc32fast::hash(&bytes) as i32),
            data_page_header: Some(data),
            index_page_header: None,
            dictionary_page_header: None,
            data_page_header_v2: None,
        };
        Ok(Page {
            header,
            bytes,
            rows,
        })
    }
}

/// What a group has of a column.
pub struct Page {
    pub header: PageHeader,
    pub bytes: Vec<u8>,
    rows: u32,
}

/// The same as the file's end has it.
pub struct Chunk {
    pub described: ColumnChunk,
    /// Bytes, if they were not packed.
    pub unpacked: i64,
}

impl Page {
    /// At `offset` in the file, with a header of so many bytes.
    pub fn chunk(&self, column: &Column, offset: usize, header: usize) -> Chunk {
        let with_header = |bytes: i32| i64::from(bytes) + header as i64;
        let unpacked = with_header(self.header.uncompressed_page_size);
        let data = ColumnMetaData {
            type_: column.physical,
            encodings: vec![Encoding::PLAIN, Encoding::RLE],
            path_in_schema: vec![column.name.into()],
            codec: CompressionCodec::ZSTD,
            num_values: self.rows.into(),
            total_uncompressed_size: unpacked,
            total_compressed_size: with_header(self.header.compressed_page_size),
            key_value_metadata: None,
            data_page_offset: offset as i64,
            index_page_offset: None,
            dictionary_page_offset: None,
            statistics: None,
            encoding_stats: None,
            bloom_filter_offset: None,
        };
        let described = ColumnChunk {
            file_path: None,
            file_offset: offset as i64,
            meta_data: Some(data),
            offset_index_offset: None,
            offset_index_length: None,
            column_index_offset: None,
            column_index_length: None,
            crypto_metadata: None,
            encrypted_column_metadata: None,
        };
        Chunk {
            described,
            unpacked,
        }
    }
}
