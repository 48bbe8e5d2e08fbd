// SPDX-License-Identifier: GPL-2.0-only
//! Takes in what the BPF side reports of tasks: a ring buffer of those that exited,
//! another of priority inversions, and an iterator over those that live.

use super::skel::BpfMaps;
use anyhow::{Context, Result};
use crossbeam::channel::{bounded, Receiver};
use freqlock::telemetry::{Collector, Inversion, Task};
use libbpf_rs::{Iter, Link, MapHandle, RingBuffer, RingBufferBuilder};
use log::warn;
use rustix::event::{poll, PollFd, PollFlags};
use std::cell::RefCell;
use std::io::Read;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::thread;
use std::time::Duration;

/// Of the scheduler's maps, to be read while the scheduler's data are written.
pub struct Rings {
    exits: MapHandle,
    inversions: MapHandle,
}

impl Rings {
    pub fn new(maps: &BpfMaps) -> Result<Self> {
        Ok(Self {
            exits: MapHandle::try_from(&maps.exits)?,
            inversions: MapHandle::try_from(&maps.inversions)?,
        })
    }

    /// A buffer that gives all that comes to `collector`.
    pub fn read_into<'a>(&'a self, collector: &'a RefCell<Collector>) -> Result<RingBuffer<'a>> {
        let mut ring = RingBufferBuilder::new();
        ring.add(&self.exits, |bytes| {
            if let Some(task) = Task::from_record(bytes) {
                collector.borrow_mut().exited(&task);
            }
            0
        })?;
        ring.add(&self.inversions, |bytes| {
            if let Some(inversion) = Inversion::from_event(bytes) {
                collector.borrow_mut().inversion(inversion);
            }
            0
        })?;
        ring.build()
            .context("cannot read what is reported of tasks")
    }
}

/// Says when a buffer is half full, until it is dropped.
pub struct Watch {
    pub ready: Receiver<()>,
    /// Closed with this, by which the thread sees that it is over.
    _end: OwnedFd,
}

impl Watch {
    pub fn start(ring: &RingBuffer) -> Result<Self> {
        // SAFETY: the descriptor belongs to `ring`, and is duplicated here.
        let events = unsafe { BorrowedFd::borrow_raw(ring.epoll_fd()) };
        let events = rustix::io::dup(events).context("cannot watch for reports")?;
        let (until, end) = rustix::pipe::pipe().context("cannot watch for reports")?;
        // Nothing is kept for a reader that is not there yet: it looks again soon.
        let (to, ready) = bounded(0);
        thread::Builder::new()
            .name("telemetry".into())
            .spawn(move || loop {
                let mut fds = [
                    PollFd::new(&events, PollFlags::IN),
                    PollFd::new(&until, PollFlags::IN),
                ];
                match poll(&mut fds, None) {
                    Err(rustix::io::Errno::INTR) => continue,
                    Err(error) => return warn!("figures of tasks come late: {error}"),
                    Ok(_) => {}
                }
                if !fds[1].revents().is_empty() || to.send(()).is_err() {
                    return;
                }
            })?;
        Ok(Self { ready, _end: end })
    }
}

/// Takes in what has come. Polled rather than consumed: that also takes the
/// readiness away.
pub fn take_in(ring: &RingBuffer) -> Result<()> {
    ring.poll(Duration::ZERO)
        .and_then(|()| ring.consume())
        .context("cannot read what is reported of tasks")
}

/// The tasks that live now.
pub fn tasks(iterator: &Link) -> Result<Vec<Task>> {
    Ok(Task::from_records(&records(iterator)?))
}

/// All that an iterator over tasks writes.
pub fn records(iterator: &Link) -> Result<Vec<u8>> {
    let mut records = Vec::new();
    Iter::new(iterator)
        .and_then(|mut iter| Ok(iter.read_to_end(&mut records)?))
        .context("cannot go through the tasks")?;
    Ok(records)
}
