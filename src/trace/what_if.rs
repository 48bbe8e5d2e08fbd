// SPDX-License-Identifier: GPL-2.0-only
//! The decisions of a trace with other values of knobs: which would have been others, and what was
//! predicted of both.
//!
//! Each is made again from what was recorded of it, as it was, and by itself: what would have come
//! of another choice for the decisions after it is not known.

use super::format::{DecidesBy, Head};
use super::reader::{Error, Item, Trace};
use super::replay::{abi, Change, Knobs, Machine};
use super::task_names::Names;
use super::weighed::{Weighed, Weighing};
use crate::foreign::Foreign;
use crate::units;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Seek};

/// Candidates in the order of `enum auto_why`.
const WHY: [&str; 6] = [
    "the waker's CPU",
    "the previous CPU",
    "the home of its parent's children",
    "the warmest idle CPU",
    "the idle CPU of the highest capacity",
    "the warmest idle CPU that nobody wants back",
];
/// Decisions that are shown one by one.
const SHOWN: usize = 10;

/// Why there is nothing to be said.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// Of the file.
    #[error(transparent)]
    Read(#[from] Error),
    /// With who else decided.
    #[error("it is a trace of {0}, whose decisions are not known: only those of scx_freqlock can be made again")]
    Other(String),
    /// Our scheduler did, but that was not recorded.
    #[error("it has no decisions of mode auto: record them with `scx_freqlock record --what-if`")]
    None,
}

/// One that would have been another.
#[derive(Clone, Debug)]
pub struct Another {
    /// ns since the trace began.
    pub at: u64,
    /// Whose.
    pub pid: u32,
    /// Its name.
    pub name: Foreign,
    /// The CPU, and the number of the reason.
    pub chosen: (i32, u32),
    /// The same with the other values.
    pub instead: (i32, u32),
    /// By how much the task would finish later there, ns, as predicted with the values that there
    /// were; none if that was not to be considered.
    pub later: Option<i64>,
    /// By how much earlier as predicted with the others.
    pub earlier: Option<i64>,
}

/// Decisions that went from one reason to another.
#[derive(Clone, Copy, Debug, Default)]
pub struct Group {
    /// How many.
    pub count: u64,
    /// Sums of the above, ns.
    pub later: i64,
    /// The same.
    pub earlier: i64,
}

/// What comes out.
pub struct WhatIf {
    changes: Vec<(Change, Option<u64>)>,
    /// Decisions with what they were made by.
    pub decisions: u64,
    /// Of these, those that come out as they did, with the values that there were.
    pub alike: u64,
    /// Decisions that were taken over from one shortly before.
    pub again: u64,
    /// Decisions of which events are missing.
    pub cut: u64,
    /// Those that would be others, by reason and new reason.
    pub groups: BTreeMap<(u32, u32), Group>,
    /// The first of them.
    pub shown: Vec<Another>,
    /// Tasks that went back without a look at others, and would not.
    pub further: u64,
}

impl WhatIf {
    /// Reads all of a trace.
    pub fn of<R: Read + Seek>(trace: Trace<R>, changes: &[Change]) -> Result<Self, Failed> {
        let head = trace.head.clone();
        let by = decides_by(&head)?;
        let knobs = Knobs::new(by);
        let others = (changes.iter()).fold(knobs.clone(), |knobs, change| knobs.with(*change));
        let mut all = Self {
            changes: (changes.iter())
                .map(|change| (*change, knobs.value(change.knob)))
                .collect(),
            decisions: 0,
            alike: 0,
            again: 0,
            cut: 0,
            groups: BTreeMap::new(),
            shown: Vec::new(),
            further: 0,
        };
        let machine = Machine::new(by);
        let mut names = Names::new(&head);
        let mut weighing = Weighing::default();
        trace.replay(|item| {
            match item {
                Item::Gap { cpu } => weighing.gap(cpu),
                Item::Event(event) => {
                    names.take(&event);
                    if let Some(weighed) = weighing.take(&event) {
                        let at = weighed.time.saturating_sub(head.begin_ns);
                        all.take(&machine, [&knobs, &others], &weighed, at, &names);
                    }
                }
            }
            Ok::<_, Error>(())
        })?;
        all.cut = weighing.cut;
        match all.decisions + all.again {
            0 => Err(Failed::None),
            _ => Ok(all),
        }
    }

    fn take(
        &mut self,
        machine: &Machine,
        [as_was, others]: [&Knobs; 2],
        weighed: &Weighed,
        at: u64,
        names: &Names,
    ) {
        if weighed.is_again() {
            self.again += 1;
            return;
        }
        self.decisions += 1;
        let decide = |knobs| machine.decide(knobs, &weighed.decision, &weighed.candidates);
        let (was, is) = (decide(as_was), decide(others));
        if was.best != weighed.chosen {
            return;
        }
        self.alike += 1;
        if is.best == was.best {
            return;
        }
        if weighed.is_back() {
            self.further += 1;
            return;
        }
        let another = Another {
            at,
            pid: weighed.pid,
            name: names.of(weighed.pid).into_owned().into(),
            chosen: (was.best, was.why),
            instead: (is.best, is.why),
            later: more(&was, is.why, was.why),
            earlier: more(&is, was.why, is.why),
        };
        let group = self.groups.entry((was.why, is.why)).or_default();
        group.count += 1;
        group.later += another.later.unwrap_or_default();
        group.earlier += another.earlier.unwrap_or_default();
        if self.shown.len() < SHOWN {
            self.shown.push(another);
        }
    }

    /// Decisions that would be others.
    pub fn differ(&self) -> u64 {
        self.groups.values().map(|group| group.count).sum()
    }
}

/// What the decisions of a trace were made by, as far as it is the same for all.
pub fn decides_by(head: &Head) -> Result<&DecidesBy, Failed> {
    match &head.scheduler {
        None => Err(Failed::Other("the kernel's own scheduler".into())),
        Some(name) if !name.raw().starts_with("freqlock") => {
            Err(Failed::Other(format!("the scheduler {name}")))
        }
        Some(_) => head.decides_by.as_ref().ok_or(Failed::None),
    }
}

/// By how much the candidate `a` finishes later than `b`; none if one is not considered.
fn more(result: &abi::replay_result, a: u32, b: u32) -> Option<i64> {
    let finish = |why: u32| {
        let cost = result.cost.get(why as usize)?;
        (cost.cpu >= 0).then_some(cost.finish as i64)
    };
    Some(finish(a)? - finish(b)?)
}

/// The candidate of that number.
pub fn why(number: u32) -> &'static str {
    WHY.get(number as usize).copied().unwrap_or("none")
}

/// A share for people.
fn percent(part: u64, all: u64) -> f64 {
    part as f64 * 100.0 / all.max(1) as f64
}

/// A difference of times with its sign.
fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", units::time(ns.unsigned_abs()))
}

impl fmt::Display for WhatIf {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self {
            decisions,
            alike,
            again,
            cut,
            further,
            ..
        } = self;
        let share = percent(*alike, *decisions);
        writeln!(
            f,
            "{decisions} decisions of mode auto; {alike} ({share:.1}%) come out as they did when made again"
        )?;
        writeln!(f, "{again} more were taken over from one shortly before, and {cut} are incomplete: those are not made again")?;
        for (Change { knob, value }, was) in &self.changes {
            let was = was.map_or("?".into(), |was| was.to_string());
            writeln!(f, "\nwith {}={value} instead of {was}:", knob.name)?;
        }
        let differ = self.differ();
        let share = percent(differ, *alike);
        writeln!(
            f,
            "{differ} of {alike} would have been others ({share:.1}%)"
        )?;
        for ((from, to), group) in &self.groups {
            writeln!(
                f,
                "  {:6}  from {} to {}: finish {} later by the values that there were, {} earlier by the others",
                group.count,
                why(*from),
                why(*to),
                signed(group.later),
                signed(group.earlier)
            )?;
        }
        if *further > 0 {
            writeln!(f, "{further} tasks went back to their previous CPU without a look at others, and would not: where to is not known")?;
        }
        if !self.shown.is_empty() {
            writeln!(f, "\nthe first of them:")?;
        }
        for one in &self.shown {
            let time = |time: Option<i64>| time.map_or("?".into(), signed);
            writeln!(
                f,
                "  {:>12}  {} ({})  CPU {} -> {}, {} later, {} earlier",
                units::time(one.at),
                one.name,
                one.pid,
                one.chosen.0,
                one.instead.0,
                time(one.later),
                time(one.earlier)
            )?;
        }
        writeln!(
            f,
            "\nEach is judged by itself, from what was predicted and not from what came: what CPUs would have\n\
             been like for the decisions after another one is not known."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::format::{Event, Place};
    use crate::trace::writer::Writer;
    use crate::trace::Kind;
    use std::io::Cursor;

    const IDLE: u64 = abi::rec_candidate_flags_REC_CANDIDATE_IDLE as u64;
    const ANY_IDLE: u64 = abi::rec_decides_REC_DECIDES_ANY_IDLE as u64;
    const BACK: u64 = abi::rec_decides_REC_DECIDES_BACK as u64;
    const AGAIN: u64 = abi::rec_decides_REC_DECIDES_AGAIN as u64;
    const PREV: u64 = 1;
    const WARM: u64 = 3;

    /// Two cores under one cache.
    fn head(scheduler: Option<&str>, decides: bool) -> Head {
        let place = |core| Place {
            core,
            capacity: 1024,
            ..Place::default()
        };
        Head {
            scheduler: scheduler.map(Into::into),
            decides_by: decides.then(|| DecidesBy {
                turbo: vec![1024],
                places: vec![place(0), place(1)],
                ..DecidesBy::default()
            }),
            ..Head::default()
        }
    }

    /// A decision about a task that ran on CPU 0, where one runs for 300 us more; CPU 1 is idle.
    fn decision(chosen: u64) -> Vec<(Kind, u64)> {
        let candidate = |cpu: u64, why: u64, flags: u64, rest: u64| {
            let mut words = [0; 10];
            words[0] = cpu | why << 16 | flags << 24;
            words[3] = rest;
            words[4] = 4_000_000;
            words[5] = 1_000_000_000 << 32;
            // As a test gives speeds: full.
            words[9] = 1024 << 32;
            words
        };
        let runs = u64::from(abi::rec_candidate_flags_REC_CANDIDATE_RUNS);
        let first = ANY_IDLE << 32 | 2 << 48;
        let rest = [500_000 | 500_000 << 32, u64::from(u32::MAX), 0, 1];
        let rest = (rest.into_iter())
            .chain(candidate(0, PREV, runs, 300_000))
            .chain(candidate(1, WARM, IDLE, 0));
        std::iter::once((Kind::Weigh, first))
            .chain(rest.map(|word| (Kind::WeighRest, word)))
            .chain([(Kind::Chosen, chosen)])
            .collect()
    }

    fn trace(head: &Head, events: &[(Kind, u64)]) -> Trace<Cursor<Vec<u8>>> {
        let mut writer = Writer::new(Vec::new(), head).unwrap();
        let event = |(time, (kind, arg)): (usize, &(Kind, u64))| Event {
            time: time as u64,
            pid: 7,
            kind: *kind as u16,
            cpu: 0,
            arg: *arg,
        };
        let events: Vec<_> = events.iter().enumerate().map(event).collect();
        writer.events(0, &events).unwrap();
        let bytes = writer.end(&Default::default()).unwrap();
        Trace::open(Cursor::new(bytes)).unwrap()
    }

    fn what_if(text: &str, events: &[(Kind, u64)]) -> WhatIf {
        let change = Change::parse(text).unwrap();
        let head = head(Some("freqlock_0.1.0"), true);
        WhatIf::of(trace(&head, events), &[change]).unwrap()
    }

    #[test]
    fn a_dear_migration_keeps_a_task_where_it_was() {
        let events = decision(1 | WARM << 32);
        let same = what_if("migrate_llc_ns=8000", &events);
        assert_eq!((same.decisions, same.alike, same.differ()), (1, 1, 0));
        let dear = what_if("migrate_llc_ns=1000000", &events);
        assert_eq!((dear.alike, dear.differ()), (1, 1));
        let one = &dear.shown[0];
        assert_eq!((one.pid, one.chosen.0, one.instead.0), (7, 1, 0));
        // 300 us of waiting against 8 us of migrating and 3 of waking up; and against 1000.
        assert_eq!(one.later, Some(300_000 - 11_000));
        assert_eq!(one.earlier, Some(1_003_000 - 300_000));
        let said = dear.to_string();
        assert!(
            said.contains("from the warmest idle CPU to the previous CPU"),
            "{said}"
        );
    }

    #[test]
    fn what_does_not_come_out_as_it_did_is_not_counted_as_changed() {
        let other = what_if("migrate_llc_ns=1000000", &decision(PREV << 32));
        assert_eq!((other.decisions, other.alike, other.differ()), (1, 0, 0));
    }

    #[test]
    fn those_that_go_back_may_look_further_and_those_taken_over_are_counted() {
        let mut events = decision(0);
        events.truncate(5 + 10);
        events[0].1 = (BACK | ANY_IDLE) << 32 | 1 << 48;
        events[5].1 = PREV << 16 | IDLE << 24;
        events.push((Kind::Weigh, (BACK | AGAIN) << 32));
        let dear = what_if("migrate_llc_ns=10000000", &events);
        assert_eq!((dear.decisions, dear.again, dear.cut), (1, 1, 0));
        assert_eq!((dear.alike, dear.further), (1, 0));
        // Another one that is idle, too, might do as well: it would have been looked for.
        let free = what_if("migrate_llc_ns=0", &events);
        assert_eq!((free.alike, free.further, free.differ()), (1, 1, 0));
    }

    #[test]
    fn what_is_not_whole_is_counted_and_left_out() {
        let mut events = decision(1 | WARM << 32);
        let whole = events.clone();
        events.remove(3);
        events.extend(whole);
        let cut = what_if("warm_up=0", &events);
        assert_eq!((cut.decisions, cut.cut), (1, 1));
    }

    #[test]
    fn traces_without_decisions_are_refused_in_a_line() {
        let change = [Change::parse("warm_up=0").unwrap()];
        let said = |head: Head| {
            let failed = WhatIf::of(trace(&head, &[]), &change).err().unwrap();
            failed.to_string()
        };
        assert!(said(head(None, false)).contains("the kernel's own scheduler"));
        assert!(said(head(Some("lavd"), false)).contains("the scheduler lavd"));
        for decides in [false, true] {
            assert!(said(head(Some("freqlock"), decides)).contains("record --what-if"));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_words_are_taken(
            words in proptest::collection::vec(proptest::prelude::any::<u64>(), 0..60),
            source in proptest::prelude::any::<u32>(),
            nr in 0..7u64,
        ) {
            let mut events: Vec<_> = words.iter().map(|word| (Kind::WeighRest, *word)).collect();
            if let Some(first) = events.first_mut() {
                *first = (Kind::Weigh, first.1 & u64::MAX >> 16 | nr << 48);
            }
            events.truncate(5 + 10 * nr as usize);
            events.push((Kind::Chosen, 0));
            let mut head = head(Some("freqlock"), true);
            head.decides_by.as_mut().unwrap().source = source;
            let change = Change::parse("speed_floor=1").unwrap();
            drop(WhatIf::of(trace(&head, &events), &[change]));
        }
    }
}
