// SPDX-License-Identifier: GPL-2.0-only
//! Writes a trace, chunk by chunk: what was written is readable, whatever comes after.

use super::format::{ChunkHead, Content, End, Event, Head, CHUNK_EVENTS, MAGIC, VERSION};
use std::io::{self, Write};

/// The least effort: the recorder takes CPU time from what it records.
const LEVEL: i32 = 1;

/// A trace that grows.
pub struct Writer<W: Write> {
    to: W,
    bytes: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins with the head.
    pub fn new(mut to: W, head: &Head) -> io::Result<Self> {
        let head = serde_json::to_vec(head)?;
        to.write_all(&MAGIC)?;
        to.write_all(&VERSION.to_le_bytes())?;
        to.write_all(&(head.len() as u32).to_le_bytes())?;
        to.write_all(&crc32fast::hash(&head).to_le_bytes())?;
        to.write_all(&head)?;
        Ok(Self {
            to,
            bytes: Vec::new(),
        })
    }

    /// Events of one CPU, in the order in which it recorded them.
    pub fn events(&mut self, cpu: u16, events: &[Event]) -> io::Result<()> {
        for events in events.chunks(CHUNK_EVENTS) {
            self.bytes.clear();
            for event in events {
                self.bytes.extend(event.bytes());
            }
            let packed = zstd::bulk::compress(&self.bytes, LEVEL)?;
            self.chunk(Content::Events(events.len() as u32), cpu, &packed)?;
        }
        Ok(())
    }

    /// A number of events of the CPU, which would stand here, are lost.
    pub fn gap(&mut self, cpu: u16, lost: u64) -> io::Result<()> {
        self.chunk(Content::Gap(lost), cpu, &[])
    }

    /// Nothing follows.
    pub fn end(mut self, end: &End) -> io::Result<W> {
        self.chunk(Content::End, 0, &serde_json::to_vec(end)?)?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn chunk(&mut self, content: Content, cpu: u16, payload: &[u8]) -> io::Result<()> {
        let head = ChunkHead::new(content, cpu, payload);
        self.to.write_all(&head.bytes())?;
        self.to.write_all(payload)
    }
}
