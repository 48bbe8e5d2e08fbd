// SPDX-License-Identifier: GPL-2.0-only
//! What tasks are called, as the events of a trace go by.

use super::format::{Event, Head};
use super::Kind;
use std::borrow::Cow;
use std::collections::HashMap;

/// PIDs are below on all kernels: events with others are not of a kernel.
pub const MAX_PID: u32 = 1 << 22;
/// Bytes that one event has of a name.
const PART: usize = 8;

/// Names by PID.
#[derive(Clone, Debug, Default)]
pub struct Names(HashMap<u32, Vec<u8>>);

impl Names {
    /// Those that there were as the recording began.
    pub fn new(head: &Head) -> Self {
        let name = |task: &super::format::Task| (task.pid, task.name.raw().as_bytes().to_vec());
        Self(head.tasks.iter().map(name).collect())
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.0.len()
    }

    /// As others chose it; empty if it is not known.
    pub fn of(&self, pid: u32) -> Cow<'_, str> {
        match self.0.get(&pid) {
            _ if pid == 0 => "idle".into(),
            Some(bytes) => String::from_utf8_lossy(bytes),
            None => "".into(),
        }
    }

    /// Takes what comes next; whether the name of the event's task is another one now.
    pub fn take(&mut self, event: &Event) -> bool {
        if event.pid >= MAX_PID {
            return false;
        }
        let bytes = event.arg.to_le_bytes();
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(PART);
        match Kind::from_number(event.kind) {
            Some(Kind::Fork) => {
                let parent = self.0.get(&event.low()).cloned().unwrap_or_default();
                self.0.insert(event.pid, parent);
            }
            Some(Kind::Name) => {
                self.0.insert(event.pid, bytes[..length].to_vec());
            }
            Some(Kind::NameRest) => match self.0.get_mut(&event.pid) {
                // Else the first part was lost.
                Some(name) if name.len() == PART => name.extend(&bytes[..length]),
                _ => return false,
            },
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: Kind, pid: u32, arg: [u8; 8]) -> Event {
        Event {
            time: 0,
            pid,
            kind: kind as u16,
            cpu: 0,
            arg: u64::from_le_bytes(arg),
        }
    }

    #[test]
    fn a_name_is_inherited_and_comes_in_two_parts() {
        let mut names = Names::default();
        assert!(names.take(&event(Kind::Name, 7, *b"0123456\xc3")));
        assert!(names.take(&event(Kind::NameRest, 7, *b"\xa4bc\0\0\0\0\0")));
        assert_eq!(names.of(7), "0123456äbc");
        assert!(names.take(&event(Kind::Fork, 8, [7, 0, 0, 0, 8, 0, 0, 0])));
        assert_eq!(names.of(8), "0123456äbc");
        assert!(names.take(&event(Kind::Name, 8, *b"ab\0\0\0\0\0\0")));
        // Its first part was lost.
        assert!(!names.take(&event(Kind::NameRest, 8, *b"xx\0\0\0\0\0\0")));
        assert_eq!(
            (names.of(8), names.of(9), names.of(0)),
            ("ab".into(), "".into(), "idle".into())
        );
        assert!(!names.take(&event(Kind::Name, MAX_PID, *b"ab\0\0\0\0\0\0")));
    }
}
