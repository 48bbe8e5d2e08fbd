// SPDX-License-Identifier: GPL-2.0-only
//! What is tried when, and which modes are in force: a state machine over slots, which
//! takes the time and reads the sums of each context.

use super::pace::{Budget, Pace};
use super::score::Done;
use super::trial::{Outcome, Trial, MOST_AGAINST, PAIRS};
use super::view::{ContextState, Decision, Status};
use super::Group;
use crate::estimate::Estimate;
use crate::knobs::Tunables;
use crate::mode::Mode;
use fastrand::Rng;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Decisions that are kept to be printed.
const REMEMBERED: usize = 100;
/// While nothing is on trial, loads are looked at once in this many slots.
const LOOK_SLOTS: u32 = 5;
/// The order of slots is as if drawn, and the same each time.
const SEED: u64 = 5;

/// The knobs of trials.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Length of a slot.
    pub slot: Duration,
    /// How much better a candidate must be to take over, 0..=1.
    pub margin: f64,
    /// The most of the time that trials may take, 0..=1.
    pub share: f64,
}

impl From<&Tunables> for Tuning {
    fn from(knobs: &Tunables) -> Self {
        Self {
            slot: Duration::from_millis(knobs.adapt_slot_ms),
            margin: knobs.adapt_margin as f64 / 100.0,
            share: knobs.adapt_share as f64 / 100.0,
        }
    }
}

impl Tuning {
    /// The beginning of a slot, in which the one before still shows.
    fn settle(&self) -> Duration {
        self.slot / 4
    }

    fn trial(&self) -> Duration {
        self.slot * 2 * PAIRS as u32
    }
}

/// A group that takes part.
#[derive(Clone, Debug)]
struct Member {
    group: Group,
    mode: Mode,
    /// Candidates of the round under way that were not tried yet.
    round: VecDeque<Mode>,
    /// Whether this round has changed something.
    changed: bool,
    pace: Pace,
    tried: Option<Instant>,
    /// Sums at the last look.
    looked: Option<(Instant, Done)>,
    /// What came between the last two looks or in the last slot.
    latest: Option<(Done, Duration)>,
}

impl Member {
    fn new(group: Group, now: Instant) -> Self {
        Self {
            mode: group.given,
            group,
            round: VecDeque::new(),
            changed: false,
            pace: Pace::new(now),
            tried: None,
            looked: None,
            latest: None,
        }
    }

    fn score(&self) -> Option<f64> {
        let (done, length) = self.latest.as_ref()?;
        done.score(*length)
    }

    fn load(&self) -> f64 {
        (self.latest.as_ref()).map_or(0.0, |(done, length)| done.load(*length))
    }
}

/// The trial under way.
#[derive(Clone, Debug)]
struct Running {
    /// Its place among the members.
    member: usize,
    trial: Trial,
    /// When the slot began, and since when it counts and from which sums.
    began: Instant,
    counts: Option<(Instant, Done)>,
}

/// The trials of all contexts, step by step.
#[derive(Clone, Debug)]
pub struct Adapter {
    modes: Vec<Mode>,
    rng: Rng,
    members: Vec<Member>,
    pinned: Vec<Group>,
    running: Option<Running>,
    /// Of the next step; none while nobody takes part.
    next: Option<Instant>,
    budget: Option<Budget>,
    decisions: VecDeque<Decision>,
}

impl Adapter {
    /// Tries these, and for each group the one that it was given.
    pub fn new(modes: Vec<Mode>) -> Self {
        Self {
            modes,
            rng: Rng::with_seed(SEED),
            members: Vec::new(),
            pinned: Vec::new(),
            running: None,
            next: None,
            budget: None,
            decisions: VecDeque::new(),
        }
    }

    /// These are the groups from now on. What was found for one that was there before, by
    /// name and with the same mode given, holds still.
    pub fn set_groups(&mut self, groups: Vec<Group>, now: Instant) {
        self.interrupt(now);
        let (pinned, free): (Vec<_>, Vec<_>) = groups.into_iter().partition(|g| g.pinned.is_some());
        let mut before = std::mem::take(&mut self.members);
        let mut keep = |group: Group| {
            let same = |m: &Member| m.group.name == group.name && m.group.given == group.given;
            match before.iter().position(same) {
                Some(at) => Member {
                    group,
                    ..before.swap_remove(at)
                },
                None => Member::new(group, now),
            }
        };
        self.members = free.into_iter().map(&mut keep).collect();
        self.pinned = pinned;
        self.next = (!self.members.is_empty()).then_some(now);
    }

    /// The sums start again, or mean something else: the present trial is repeated later.
    pub fn interrupt(&mut self, now: Instant) {
        if let Some(running) = self.running.take() {
            if let Some(member) = self.members.get_mut(running.member) {
                member.round.push_front(running.trial.candidate);
            }
        }
        for member in &mut self.members {
            (member.looked, member.latest) = (None, None);
        }
        self.next = self.next.map(|_| now);
    }

    /// When to take the next step.
    pub fn next(&self) -> Option<Instant> {
        self.next
    }

    /// The modes in force that are not the given ones, by the number of their group.
    pub fn chosen(&self) -> BTreeMap<u32, Mode> {
        let in_force = self.members.iter().enumerate().map(|(at, member)| {
            let tried = self.running.as_ref().filter(|r| r.member == at);
            let tried = tried.filter(|r| r.trial.is_candidates());
            (member, tried.map_or(member.mode, |r| r.trial.candidate))
        });
        in_force
            .filter(|(member, mode)| *mode != member.group.given)
            .map(|(member, mode)| (member.group.number, mode))
            .collect()
    }

    /// What is to be done by `now`; `at` is the second since 1970, for the record, and
    /// `read` gives the sums of a group. Returns what was decided. Errors are those of
    /// `read`.
    pub fn step<E>(
        &mut self,
        now: Instant,
        at: u64,
        tuning: &Tuning,
        mut read: impl FnMut(u32) -> Result<Done, E>,
    ) -> Result<Option<Decision>, E> {
        if self.next.is_none_or(|next| now < next) {
            return Ok(None);
        }
        let most = tuning.trial() * self.modes.len() as u32;
        let budget = (self.budget).get_or_insert_with(|| Budget::new(now, most));
        budget.earn(now, tuning.share, most);
        let Some(running) = &mut self.running else {
            for member in &mut self.members {
                let sums = read(member.group.number)?;
                if let Some((then, before)) = member.looked.replace((now, sums)) {
                    let (done, length) = (sums.since(&before), now - then);
                    member.pace.look(now, &done, length);
                    member.latest = Some((done, length));
                }
            }
            self.next = Some(now + tuning.slot * LOOK_SLOTS);
            self.begin(now, tuning);
            return Ok(None);
        };
        let member = &mut self.members[running.member];
        let sums = read(member.group.number)?;
        let Some((since, before)) = running.counts.take() else {
            running.counts = Some((now, sums));
            self.next = Some(now + (tuning.slot - tuning.settle()));
            return Ok(None);
        };
        let (done, length) = (sums.since(&before), now - since);
        budget.spend(now - running.began);
        // One that the agent itself came too late to end is not what was meant.
        let score = done.score(length).filter(|_| length < tuning.slot * 2);
        running.trial.end_slot(score, &mut self.rng);
        running.began = now;
        member.latest = Some((done, length));
        let Some(outcome) = running.trial.outcome(tuning.margin) else {
            self.next = Some(now + tuning.settle());
            return Ok(None);
        };
        Ok(self.end(outcome, now, at, tuning))
    }

    /// Begins the next trial if one is due, may be, and has something to judge by: of those
    /// contexts the one that waited longest for it.
    fn begin(&mut self, now: Instant, tuning: &Tuning) {
        let may = |budget: &Budget| budget.has(tuning.trial());
        if !self.budget.as_ref().is_some_and(may) {
            return;
        }
        let modes = &self.modes;
        let ready = |(_, m): &(usize, &mut Member)| m.pace.is_due(now) && m.score().is_some();
        let members = self.members.iter_mut().enumerate().filter(ready);
        let Some((at, member)) = members.min_by_key(|(_, m)| m.tried) else {
            return;
        };
        if member.round.is_empty() {
            let given = Some(&member.group.given).filter(|given| !modes.contains(given));
            let others = modes.iter().chain(given).filter(|m| **m != member.mode);
            member.round = others.copied().collect();
            member.changed = false;
        }
        member.tried = Some(now);
        let Some(candidate) = member.round.pop_front() else {
            member.pace.round_over(now, tuning.trial(), false);
            return;
        };
        self.running = Some(Running {
            member: at,
            trial: Trial::new(candidate, &mut self.rng),
            began: now,
            counts: None,
        });
        self.next = Some(now + tuning.settle());
    }

    fn end(
        &mut self,
        outcome: Outcome,
        now: Instant,
        at: u64,
        tuning: &Tuning,
    ) -> Option<Decision> {
        let Running { member, trial, .. } = self.running.take()?;
        let member = self.members.get_mut(member)?;
        let median = |of: Option<Estimate>| of.map(|estimate| estimate.median);
        let ratios = trial.ratios();
        let decision = Decision {
            at,
            number: member.group.number,
            context: member.group.name.clone(),
            incumbent: member.mode.name().into(),
            candidate: trial.candidate.name().into(),
            taken: outcome == Outcome::Better,
            why: why(outcome, &trial, tuning),
            pairs: trial.pairs(),
            void: trial.void(),
            incumbent_score: median(trial.incumbent_score()),
            candidate_score: median(trial.candidate_score()),
            ratio: median(ratios),
            interval: ratios.and_then(|ratios| ratios.interval),
        };
        if decision.taken {
            (member.mode, member.changed) = (trial.candidate, true);
        }
        if outcome == Outcome::NoLoad {
            member.round.clear();
        }
        if member.round.is_empty() {
            let round = tuning.trial() * self.modes.len() as u32;
            member.pace.round_over(now, round, member.changed);
        }
        for member in &mut self.members {
            member.looked = None;
        }
        if self.decisions.len() >= REMEMBERED {
            self.decisions.pop_front();
        }
        self.decisions.push_back(decision.clone());
        self.next = Some(now);
        self.begin(now, tuning);
        Some(decision)
    }

    /// The state of each context and past decisions, as of `now`.
    pub fn status(&self, now: Instant, tuning: &Tuning) -> Status {
        let member = |(at, member): (usize, &Member)| {
            let running = self.running.as_ref().filter(|r| r.member == at);
            let state = match running {
                Some(Running { trial, .. }) => format!(
                    "on trial: {}, {} of {PAIRS} pairs",
                    trial.candidate.name(),
                    trial.pairs()
                ),
                None if member.score().is_none() => "too little to do for a trial".into(),
                None if member.pace.is_due(now) => "due for a trial".into(),
                None => format!("rests for {:.0?}", member.pace.rest(now)),
            };
            ContextState {
                number: member.group.number,
                name: member.group.name.clone(),
                mode: member.mode.name().into(),
                given: member.group.given.name().into(),
                on_trial: running.map(|r| r.trial.candidate.name().into()),
                load: Some(member.load()),
                score: member.score(),
                state,
            }
        };
        let pinned = |group: &Group| ContextState {
            number: group.number,
            name: group.name.clone(),
            mode: group.given.name().into(),
            given: group.given.name().into(),
            on_trial: None,
            load: None,
            score: None,
            state: format!("pinned by {}", group.pinned.as_deref().unwrap_or_default()),
        };
        let mut contexts: Vec<_> = self.members.iter().enumerate().map(member).collect();
        contexts.extend(self.pinned.iter().map(pinned));
        contexts.sort_by_key(|context| context.number);
        Status {
            modes: self.modes.iter().map(|m| m.name().into()).collect(),
            slot_ms: tuning.slot.as_millis() as u64,
            margin: tuning.margin,
            share: tuning.share,
            contexts,
            decisions: self.decisions.iter().cloned().collect(),
        }
    }
}

/// The reason of a decision, in words.
fn why(outcome: Outcome, trial: &Trial, tuning: &Tuning) -> String {
    let (against, pairs) = (trial.against(), trial.pairs());
    let margin = 100.0 * tuning.margin;
    match outcome {
        Outcome::Better => format!(
            "better in {} of {pairs} pairs, by over {margin}%",
            pairs - against
        ),
        Outcome::NoBetter if pairs == PAIRS && against <= MOST_AGAINST => {
            format!("better by less than {margin}%")
        }
        Outcome::NoBetter => format!("no better in {against} of {pairs} pairs"),
        Outcome::NoLoad => format!("too little to do in {} slots", trial.void()),
    }
}
