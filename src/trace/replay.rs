// SPDX-License-Identifier: GPL-2.0-only
//! Decisions by predicted finish, made in user space by the scheduler's own code: bpf/choose.bpf.c,
//! bpf/freq.bpf.c and the policy below them, compiled for the host (bpf/host/replay.c).

use super::format::{DecidesBy, MAX_CPUS};
use crate::knobs::{Knob, KNOBS};
use crate::settings::{self, Error, MODE};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub mod abi {
    //! Bindings of bpf/host/replay.h.
    #![allow(non_camel_case_types, non_upper_case_globals, dead_code)]
    #![allow(clippy::all, clippy::undocumented_unsafe_blocks)]
    #![allow(missing_docs)] // generated: what they mean stands in the header
    include!(concat!(env!("OUT_DIR"), "/replay.rs"));
}

/// Most candidates of a decision.
pub const PLACES: usize = abi::REPLAY_PLACES as usize;

// The knobs that the C code reads: PART.
include!(concat!(env!("OUT_DIR"), "/replayed_knobs.rs"));

/// Words of `struct tunables`, which are the knobs that no context may change.
const WORDS: usize = size_of::<abi::tunables>() / size_of::<u64>();

/// The C code has one machine, in static variables.
static MACHINE: Mutex<()> = Mutex::new(());

/// Values of the knobs that hold for all tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knobs([u64; WORDS]);

/// A knob, and another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Of [`KNOBS`].
    pub knob: &'static Knob,
    /// In its range.
    pub value: u64,
}

/// Why a knob is not tried.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is none, or it has no such value.
    #[error(transparent)]
    Setting(#[from] Error),
    /// What is decided anew does not depend on it.
    #[error("`{0}` has no part in what is decided anew: {list} have", list = all())]
    NoPart(String),
}

/// All knobs that have a part, for a message.
fn all() -> String {
    PART.join(", ")
}

/// Whether what decides reads it.
pub fn has_part(knob: &Knob) -> bool {
    PART.contains(&knob.name)
}

/// Those of `struct tunables`, in its order.
pub fn knobs() -> impl Iterator<Item = &'static Knob> {
    KNOBS.iter().filter(|knob| !knob.task)
}

impl Change {
    /// From KNOB=VALUE.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        let (key, value) =
            (text.split_once('=')).ok_or_else(|| Error::NotAssignment(text.into()))?;
        let (key, value) = (key.trim(), value.trim());
        if key == MODE {
            return Err(Refused::NoPart(key.into()));
        }
        let knob = settings::find(key)?;
        if !has_part(knob) {
            return Err(Refused::NoPart(knob.name.into()));
        }
        let value = knob.parse(value).map_err(|why| Error::Value {
            key: key.into(),
            value: value.into(),
            why,
        })?;
        Ok(Self { knob, value })
    }
}

impl Knobs {
    /// Those of a trace; a value that cannot be is the default.
    pub fn new(by: &DecidesBy) -> Self {
        let mut all = [0; WORDS];
        for (word, knob) in all.iter_mut().zip(knobs()) {
            let value = by.knobs.get(knob.name).copied();
            let value = value.filter(|value| (knob.min..=knob.max).contains(value));
            *word = value.unwrap_or(knob.default);
        }
        Self(all)
    }

    /// With another value of one.
    pub fn with(mut self, change: Change) -> Self {
        for (word, knob) in self.0.iter_mut().zip(knobs()) {
            if knob.name == change.knob.name {
                *word = change.value;
            }
        }
        self
    }

    /// The value of one.
    pub fn value(&self, knob: &Knob) -> Option<u64> {
        let mut all = self.0.iter().zip(knobs());
        all.find(|(_, other)| other.name == knob.name)
            .map(|(value, _)| *value)
    }
}

/// A machine on which decisions are made. There is one at a time.
pub struct Machine(#[expect(dead_code, reason = "held, not looked at")] MutexGuard<'static, ()>);

impl Machine {
    /// As a trace describes it.
    pub fn new(by: &DecidesBy) -> Self {
        // Nothing stays half done where one panicked: all is written anew.
        let guard = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the struct is of integers, for which all zeros are a value.
        let mut machine: Box<abi::replay_machine> = Box::new(unsafe { std::mem::zeroed() });
        machine.source = by.source;
        machine.smt = by.smt.into();
        let last = by.turbo.last().copied().unwrap_or_default();
        for (to, speed) in
            (machine.turbo.iter_mut()).zip(by.turbo.iter().copied().chain(std::iter::repeat(last)))
        {
            *to = speed;
        }
        for (to, from) in machine.topo.iter_mut().zip(&by.places) {
            to.core = from.core;
            to.llc = from.llc;
            to.node = from.node;
            to.capacity = from.capacity;
            to.sibling = from.sibling.map_or(-1, i32::from);
        }
        // SAFETY: it is only read, and nobody else is in there while the guard is held.
        unsafe { abi::replay_on(&*machine) };
        Self(guard)
    }

    /// What comes out with these knobs.
    pub fn decide(
        &self,
        knobs: &Knobs,
        decision: &abi::rec_decision,
        candidates: &[abi::rec_candidate],
    ) -> abi::replay_result {
        // SAFETY: integers.
        let mut result: abi::replay_result = unsafe { std::mem::zeroed() };
        let decision = abi::rec_decision {
            candidates: candidates.len().min(MAX_CPUS) as u16,
            ..*decision
        };
        // SAFETY: there are as many candidates as `decision` says, the words of the knobs are those
        // of the struct, and nobody else is in there while the guard is held. Ids of CPUs are masked
        // in C, and no number there leads to a division by 0 (policy/finish.h).
        unsafe {
            abi::replay_decision(
                knobs.0.as_ptr().cast(),
                &decision,
                candidates.as_ptr(),
                &mut result,
            );
        }
        result
    }

    /// What tells an idle CPU, described as a candidate, from others.
    pub fn idle(&self, knobs: &Knobs, candidate: &abi::rec_candidate) -> abi::replay_idle {
        // SAFETY: integers.
        let mut idle: abi::replay_idle = unsafe { std::mem::zeroed() };
        // SAFETY: as for a decision.
        unsafe { abi::replay_idle(knobs.0.as_ptr().cast(), candidate, &mut idle) };
        idle
    }

    /// What the recency model makes of a speed after `busy` ns of work, and then `idle` ns without:
    /// `SPEED_ONE` of bpf/policy/speed.h is full.
    pub fn speed(&self, knobs: &Knobs, speed: u32, busy: u64, idle: u64) -> u32 {
        // SAFETY: as for a decision.
        unsafe { abi::replay_speed(knobs.0.as_ptr().cast(), speed, busy, idle) }
    }
}

/// What is known of a time once it was `sample` ns, and before it was `known`: 0 is nothing.
pub fn average(known: u64, sample: u64) -> u64 {
    // SAFETY: it has numbers alone.
    unsafe { abi::replay_average(known, sample) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_struct_has_the_knobs_of_the_table_in_its_order() {
        assert_eq!(knobs().count(), WORDS);
        let change = Change::parse("migrate_llc_ns=77").unwrap();
        let changed = Knobs::new(&DecidesBy::default()).with(change);
        let at = std::mem::offset_of!(abi::tunables, migrate_llc_ns) / 8;
        assert_eq!(changed.0[at], 77);
        assert_eq!(changed.value(change.knob), Some(77));
    }

    #[test]
    fn the_knobs_with_a_part_are_those_that_the_code_reads() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
        let mut read = BTreeSet::new();
        for file in ["choose.bpf.c", "freq.bpf.c", "learn.bpf.h"] {
            let text = std::fs::read_to_string(root.join(file)).unwrap();
            let name = |rest: &str| {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                rest[..end.unwrap()].to_string()
            };
            read.extend(text.split("tunables.").skip(1).map(name));
        }
        // What is asked of the governor comes after.
        read.remove("cpuperf");
        let known = KNOBS.iter().filter(|k| has_part(k)).map(|k| k.name.into());
        assert_eq!(read, known.collect::<BTreeSet<String>>());
    }

    #[test]
    fn what_cannot_be_tried_is_said_in_a_line() {
        let said = |text| Change::parse(text).unwrap_err().to_string();
        assert!(said("migrate_llc").contains("not KEY=VALUE"));
        assert!(said("migrate_lc_ns=1").contains("did you mean migrate_llc_ns?"));
        assert!(said("slice_us=1000").starts_with("`slice_us` has no part"));
        assert!(said("mode=off").starts_with("`mode` has no part"));
        assert!(said("warm_up=1025").contains("0..=1024"));
    }
}
