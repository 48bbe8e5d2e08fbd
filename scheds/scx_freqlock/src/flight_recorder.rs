// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock record --overwrite`: events stay in the buffers, and go to a file of their own
//! each time that somebody asks, or that there is a reason by itself.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use crossbeam::channel::{Receiver, Sender};
use freqlock::control::dump_socket::{Answer, Server, SOCKET};
use freqlock::trace::flight::Flight;
use freqlock::trace::format::{End, Event, Head};
use freqlock::trace::ring::{Mapped, Present, Rings};
use freqlock::trace::trigger::{Reason, Triggers};
use freqlock::{foreign, output};

/// One that runs.
pub struct FlightRecorder<'a> {
    /// The file of the end, by which those in between are called.
    output: PathBuf,
    cpus: &'a [usize],
    /// As of the begin.
    head: Head,
    server: Server,
    triggers: Triggers,
    /// Of the last file.
    number: u32,
    /// Those that had a reason by itself.
    by_itself: u32,
}

impl<'a> FlightRecorder<'a> {
    /// From now on it can be asked.
    pub fn start(output: &Path, cpus: &'a [usize], head: Head, triggers: Triggers) -> Result<Self> {
        Ok(Self {
            // For those who ask from elsewhere.
            output: std::path::absolute(output).context("the current directory is gone")?,
            cpus,
            head,
            server: Server::start(SOCKET.as_ref())?,
            triggers,
            number: 0,
            by_itself: 0,
        })
    }

    /// Those who want what there is.
    pub fn asked(&self) -> Receiver<Sender<Answer>> {
        self.server.requests.clone()
    }

    /// Whether it may have a reason by itself, and so has to look.
    pub fn watches(&self) -> bool {
        !self.triggers.is_empty()
    }

    /// Whether something happened for which what there is is to be written.
    pub fn look(&mut self, rings: &mut Rings<Mapped>) -> Option<Reason> {
        if self.triggers.is_empty() {
            return None;
        }
        let mut events: Vec<Event> = Vec::new();
        for buffer in 0..self.cpus.len() {
            let taken = rings.watch(buffer);
            if taken.overwritten > 0 {
                self.triggers.gap();
            }
            events.extend(taken.events);
        }
        events.sort_by_key(|event| event.time);
        let mut reasons = events.iter().filter_map(|event| self.triggers.take(event));
        // Of a second one there is none so soon.
        let first = reasons.next();
        reasons.for_each(drop);
        first
    }

    /// What the buffers have, with the names of tasks as they are now.
    pub fn flight(&self, rings: &Rings<Mapped>, present: Vec<Present>) -> Flight {
        let mut head = self.head.clone();
        let present = present.iter().map(Present::task);
        let tasks: BTreeMap<u32, _> = (head.tasks.drain(..).chain(present))
            .map(|task| (task.pid, task))
            .collect();
        head.tasks = tasks.into_values().collect();
        let cpus = self.cpus.iter().map(|cpu| *cpu as u16);
        Flight::new(head, cpus.zip(rings.copies()).collect())
    }

    /// Writes what there is, and says so. A disk that is full does not end the recording.
    pub fn dump(
        &mut self,
        rings: &Rings<Mapped>,
        present: Vec<Present>,
        end: End,
        request: Option<Sender<Answer>>,
        reason: Option<Reason>,
    ) {
        self.by_itself += u32::from(reason.is_some());
        let flight = self.flight(rings, present);
        let answer = self.write(&flight, end).map_err(|why| format!("{why:#}"));
        let (Ok(said) | Err(said)) = &answer;
        match reason {
            Some(reason) => output::say(format_args!("{reason}: {said}")),
            None => output::say(said),
        }
        if let Some(request) = request {
            // Who asked may have gone.
            drop(request.send(answer));
        }
    }

    fn write(&mut self, flight: &Flight, end: End) -> Result<String> {
        let (path, file) = self.next_file()?;
        let done = flight
            .write(BufWriter::new(file), end)
            .and_then(|mut to| to.flush());
        if done.is_err() {
            // Half of it would look like all of it. That it stays is no more than that.
            drop(fs::remove_file(&path));
        }
        let path = foreign::path(&path);
        done.with_context(|| format!("cannot write {path}"))?;
        let (events, cpus) = (flight.events(), self.cpus.len());
        Ok(format!("{events} events of {cpus} CPUs are in {path}"))
    }

    /// None is written over, for its owner alone.
    fn next_file(&mut self) -> Result<(PathBuf, File)> {
        loop {
            self.number += 1;
            let mut name = OsString::from(&self.output);
            name.push(format!(".{}", self.number));
            let path = PathBuf::from(name);
            let mut new = OpenOptions::new();
            match new.write(true).create_new(true).mode(0o600).open(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Ok(file) => return Ok((path, file)),
                Err(why) => {
                    self.number -= 1;
                    let cannot = format!("cannot write {}", foreign::path(&path));
                    return Err(why).context(cannot);
                }
            }
        }
    }

    /// In words, at the end.
    pub fn say_how_often(&self) {
        if !self.triggers.is_empty() {
            output::say(format_args!(
                "{} files were written by itself; {} more reasons came too soon after one, or too often",
                self.by_itself, self.triggers.passed_over
            ));
        }
    }
}
