// SPDX-License-Identifier: GPL-2.0-only
//! The values and contexts in force and their changes: a request changes all that
//! it names or nothing, and changes of knobs can be undone one after the other.

use super::protocol::{Answer, Change, Error, Peer, Request, Running};
use crate::adapt::{Adapter, Decision, Done, Group, Status, Tuning};
use crate::context::{Explained, InForce, Seen};
use crate::knobs::Tunables;
use crate::mode::Mode;
use crate::settings::{field, names, text, Assignment, MODE};
use anyhow::Result;
use log::warn;
use std::collections::VecDeque;
use std::time::Instant;

/// Changes that can be undone; older ones are forgotten.
const REMEMBERED: usize = 100;

/// All that can change about a scheduler that runs.
#[derive(Clone, Debug)]
pub struct Settings {
    tunables: Tunables,
    contexts: InForce,
    /// What each request changed, oldest first.
    changes: VecDeque<Changed>,
    /// With --adapt only.
    adapter: Option<Adapter>,
    /// Somebody has set the mode, which is not to be tried then.
    mode_is_set: bool,
    begun: Instant,
}

/// What one request changed.
#[derive(Clone, Debug)]
struct Changed {
    changes: Vec<Change>,
    /// Whether somebody had set the mode before.
    mode_was_set: bool,
}

impl Settings {
    /// As at start: nothing to take back, no trials.
    pub fn new(tunables: Tunables, contexts: InForce) -> Self {
        Self {
            tunables,
            contexts,
            changes: VecDeque::new(),
            adapter: None,
            mode_is_set: false,
            begun: Instant::now(),
        }
    }

    /// The same, with these modes tried, if that was asked for.
    pub fn adaptive(mut self, modes: &[Mode]) -> Self {
        self.adapter = (self.tunables.adapt != 0).then(|| Adapter::new(modes.to_vec()));
        self.regroup();
        self
    }

    /// When [`Self::adapt`] has something to do; none without --adapt.
    pub fn next_trial(&self) -> Option<Instant> {
        self.adapter.as_ref()?.next()
    }

    /// What is to be done about trials by `now`, second `at` since 1970. `read` gives the
    /// sums of the policy at this place of the BPF side, where modes are to be stored after.
    pub fn adapt(
        &mut self,
        now: Instant,
        at: u64,
        read: impl Fn(usize) -> Result<Done>,
    ) -> Result<Option<Decision>> {
        let Some(adapter) = &mut self.adapter else {
            return Ok(None);
        };
        let read = |number| read(self.contexts.policy_at(number));
        let decision = adapter.step(now, at, &Tuning::from(&self.tunables), read)?;
        self.contexts.choose(adapter.chosen());
        Ok(decision)
    }

    /// The sums of trials start again.
    pub fn interrupt_trial(&mut self) {
        if let Some(adapter) = &mut self.adapter {
            adapter.interrupt(Instant::now());
            self.contexts.choose(adapter.chosen());
        }
    }

    /// Which contexts may have a mode of their own has to be found again: contexts
    /// or the given mode changed, or may have.
    fn regroup(&mut self) {
        let Some(adapter) = &mut self.adapter else {
            return;
        };
        let groups = (0..=self.contexts.len() as u32).filter_map(|number| {
            let context = self.contexts.get(number);
            let line = context.and_then(|context| context.line_of(MODE));
            let given = context.map_or(self.tunables, |context| context.over(&self.tunables));
            Some(Group {
                number,
                name: context.map_or("in no context".into(), |context| {
                    let name = context.name.as_ref();
                    name.map_or_else(|| context.rule.to_string(), ToString::to_string)
                }),
                given: Mode::from_number(given.mode)?,
                pinned: match (line, self.mode_is_set) {
                    (Some(line), _) => Some(format!("line {line} of its file")),
                    (None, true) => Some("set mode=".into()),
                    (None, false) => None,
                },
            })
        });
        adapter.set_groups(groups.collect(), Instant::now());
        self.contexts.choose(adapter.chosen());
    }

    /// The values that are to be in force.
    pub fn tunables(&self) -> Tunables {
        self.tunables
    }

    /// The contexts in force.
    pub fn contexts(&self) -> &InForce {
        &self.contexts
    }

    /// Does what is asked, at this second since 1970. `look` is how to find out what the
    /// BPF side has of a task, if it has that.
    pub fn answer(
        &mut self,
        request: &Request,
        by: Peer,
        at: u64,
        look: impl FnOnce(u32) -> Result<Option<Seen>>,
    ) -> Answer {
        let answer = match request {
            Request::Get => Ok(Answer::Values(self.values())),
            Request::Changes => Ok(Answer::Changes(
                (self.changes.iter().flat_map(|c| &c.changes))
                    .cloned()
                    .collect(),
            )),
            Request::Set(wanted) => self.set(wanted, by, at).map(Answer::Changed),
            Request::Undo => self.undo(by, at).map(Answer::Changed),
            Request::Reload => self.reload().map(Answer::Reloaded),
            Request::Explain(pid) => self.explain(*pid, look).map(Answer::Explained),
            Request::Adapt => self.trials().map(Answer::Adapt),
            Request::Status => Ok(Answer::Status(Box::new(self.running()))),
            Request::LoadPolicy(_) | Request::UnloadPolicy(_) | Request::Policies => {
                Err(Error::NoPrograms.into())
            }
        };
        answer.unwrap_or_else(|error| Answer::Error(format!("{error:#}")))
    }

    /// Reads the file of contexts again; after an error all is as before.
    pub fn reload(&mut self) -> Result<String> {
        self.contexts.reload()?;
        self.regroup();
        Ok(self.contexts.to_string())
    }

    fn trials(&self) -> Result<Box<Status>> {
        let adapter = self.adapter.as_ref().ok_or(Error::NotAdaptive)?;
        Ok(Box::new(
            adapter.status(Instant::now(), &Tuning::from(&self.tunables)),
        ))
    }

    /// What is known of it here.
    fn running(&self) -> Running {
        let values = self.values();
        let mut defaults = Tunables::new(Mode::Auto);
        let mode = values.iter().find(|value| value.key == MODE);
        Running {
            pid: std::process::id(),
            uptime_s: self.begun.elapsed().as_secs(),
            mode: mode.map_or(String::new(), |mode| mode.value.clone()),
            contexts: self.contexts.to_string(),
            knobs: (values.into_iter().filter(|value| value.key != MODE))
                .filter(|Assignment { key, value }| {
                    field(&mut defaults, key).is_some_and(|default| text(key, *default) != *value)
                })
                .collect(),
            ..Running::default()
        }
    }

    fn explain(
        &mut self,
        pid: u32,
        look: impl FnOnce(u32) -> Result<Option<Seen>>,
    ) -> Result<Box<Explained>> {
        let seen = look(pid)?.ok_or(Error::NoTask(pid))?;
        Ok(Box::new(Explained::new(
            pid,
            &seen,
            &self.contexts,
            &self.tunables,
        )))
    }

    fn values(&self) -> Vec<Assignment> {
        let mut in_force = self.tunables;
        if let Some(mode) = self.contexts.chosen(0) {
            in_force.mode = mode as u64;
        }
        names()
            .filter_map(|key| {
                let value = *field(&mut in_force, key)?;
                Some(Assignment::new(key, text(key, value)))
            })
            .collect()
    }

    fn set(&mut self, wanted: &[Assignment], by: Peer, at: u64) -> Result<Vec<Change>> {
        let mut tunables = self.tunables;
        let mut changed = Vec::new();
        let wanted: Vec<_> = (wanted.iter().cloned())
            .map(|assignment| {
                let (assignment, retired) = assignment.renamed();
                if let Some(retired) = retired {
                    warn!("process {}: {retired}", by.pid);
                }
                assignment
            })
            .collect();
        for (i, assignment) in wanted.iter().enumerate() {
            let (key, value) = (&assignment.key, assignment.check()?);
            if wanted[..i].iter().any(|before| before.key == *key) {
                return Err(Error::Twice(key.clone()).into());
            }
            let Some(now) = field(&mut tunables, key) else {
                continue;
            };
            let before = std::mem::replace(now, value);
            // Setting the mode that was given pins it, which is a change.
            let pins = *key == MODE && self.adapter.is_some() && !self.mode_is_set;
            if before != value || pins {
                changed.push(Change {
                    key: key.clone(),
                    before: text(key, before),
                    after: text(key, value),
                    at,
                    by,
                });
            }
        }
        if let Some(error) = Error::of(&tunables) {
            return Err(error.into());
        }
        self.tunables = tunables;
        self.contexts.touch();
        if !changed.is_empty() {
            self.changes.push_back(Changed {
                changes: changed.clone(),
                mode_was_set: self.mode_is_set,
            });
            if self.changes.len() > REMEMBERED {
                self.changes.pop_front();
            }
        }
        if changed.iter().any(|change| change.key == MODE) {
            self.mode_is_set = true;
            self.regroup();
        }
        Ok(changed)
    }

    fn undo(&mut self, by: Peer, at: u64) -> Result<Vec<Change>> {
        let last = self.changes.pop_back().ok_or(Error::NothingToUndo)?;
        let mut back = Vec::new();
        for change in last.changes {
            let assignment = Assignment::new(&change.key, &change.before);
            let value = assignment.check()?;
            if let Some(now) = field(&mut self.tunables, &change.key) {
                *now = value;
            }
            self.contexts.touch();
            back.push(Change {
                before: change.after,
                after: change.before,
                at,
                by,
                ..change
            });
        }
        if back.iter().any(|change| change.key == MODE) {
            self.mode_is_set = last.mode_was_set;
            self.regroup();
        }
        Ok(back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knobs::{Knob, KNOBS, RETIRED};
    use crate::mode::Mode;
    use proptest::prelude::*;

    const ME: Peer = Peer { uid: 0, pid: 7 };

    /// There are no tasks here.
    fn nobody(_: u32) -> Result<Option<Seen>> {
        Ok(None)
    }

    fn set(texts: &[&str]) -> Request {
        let split = |text: &&str| {
            let (key, value) = text.split_once('=').unwrap();
            Assignment::new(key, value)
        };
        Request::Set(texts.iter().map(split).collect())
    }

    fn error(knobs: &mut Settings, request: &Request) -> String {
        match knobs.answer(request, ME, 1, nobody) {
            Answer::Error(error) => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn neighbours_that_are_not_seen_are_not_counted() {
        let mut partial = Tunables::new(Mode::Auto);
        partial.partial = 1;
        let mut knobs = Settings::new(partial, InForce::default());
        let why = error(&mut knobs, &set(&["slice_us=2000", "cpus_ms=100"]));
        assert!(why.contains("--partial"), "{why}");
        assert_eq!(knobs.tunables(), partial);
    }

    #[test]
    fn what_is_set_is_in_force_and_remembered() {
        let mut knobs = Settings::new(Tunables::new(Mode::Auto), InForce::default());
        let answer = knobs.answer(
            &set(&["slice_us=2000", "mode=nest", "spin=1"]),
            ME,
            5,
            nobody,
        );
        let change = |key: &str, before: &str, after: &str| Change {
            key: key.into(),
            before: before.into(),
            after: after.into(),
            at: 5,
            by: ME,
        };
        let slice = change("slice_us", "4000", "2000");
        let mode = change("mode", "auto", "nest");
        // spin was so already.
        let want = vec![slice.clone(), mode.clone()];
        assert_eq!(answer, Answer::Changed(want.clone()));
        assert_eq!(knobs.tunables().slice_us, 2000);
        assert_eq!(knobs.tunables().mode, Mode::Nest as u64);
        let Answer::Values(values) = knobs.answer(&Request::Get, ME, 6, nobody) else {
            panic!("no values");
        };
        assert_eq!(values.len(), KNOBS.len() + 1);
        assert!(values.contains(&Assignment::new("mode", "nest")));
        assert!(values.contains(&Assignment::new("slice_us", 2000)));
        let changes = knobs.answer(&Request::Changes, ME, 7, nobody);
        assert_eq!(changes, Answer::Changes(want));
    }

    #[test]
    fn a_wrong_one_changes_nothing() {
        let mut knobs = Settings::new(Tunables::new(Mode::Auto), InForce::default());
        for (wrong, why) in [
            ("slice_u=1000", "did you mean slice_us?"),
            ("slice_us=1", "not a whole number in 100..=100000 (us)"),
            ("slice_us=1ms", "not a whole number"),
            ("mode=fast", "not one of off, fork-local"),
            ("locks=0", "start it with --locks"),
            ("lag_us=1", "`lag_us` is given twice"),
            ("=1", "there is no knob ``"),
        ] {
            let message = error(&mut knobs, &set(&["lag_us=7", "preempt_after_us=9", wrong]));
            assert!(message.contains(why), "{message}");
            assert_eq!(knobs.tunables(), Tunables::new(Mode::Auto), "{wrong}");
        }
        let message = error(&mut knobs, &Request::Undo);
        assert!(message.contains("nothing was changed"), "{message}");
    }

    #[test]
    fn changes_are_taken_back_from_the_last() {
        let mut knobs = Settings::new(Tunables::new(Mode::Auto), InForce::default());
        knobs.answer(&set(&["slice_us=2000", "lag_us=1"]), ME, 1, nobody);
        knobs.answer(&set(&["slice_us=3000"]), ME, 2, nobody);
        knobs.answer(&set(&["slice_us=3000"]), ME, 3, nobody); // changes nothing
        let Answer::Changed(back) = knobs.answer(&Request::Undo, ME, 4, nobody) else {
            panic!("nothing undone");
        };
        assert_eq!(
            (back[0].before.as_str(), back[0].after.as_str(), back[0].at),
            ("3000", "2000", 4)
        );
        assert_eq!(knobs.tunables().slice_us, 2000);
        knobs.answer(&Request::Undo, ME, 5, nobody);
        assert_eq!(knobs.tunables(), Tunables::new(Mode::Auto));
        error(&mut knobs, &Request::Undo);
    }

    #[test]
    fn a_retired_name_sets_the_knob_that_it_stands_for() {
        for retired in RETIRED {
            let knob = Knob::find(retired.new).unwrap();
            let mut knobs = Settings::new(Tunables::new(Mode::Auto), InForce::default());
            let other = [knob.min, knob.max][usize::from(knob.default == knob.min)];
            let [by_old, by_new] = [retired.old, retired.new].map(|key| format!("{key}={other}"));
            let message = error(&mut knobs, &set(&[&by_old, &by_new]));
            assert!(message.contains("is given twice"), "{message}");
            let Answer::Changed(changes) = knobs.answer(&set(&[&by_old]), ME, 1, nobody) else {
                panic!("{by_old} is refused");
            };
            assert_eq!(changes[0].key, retired.new);
            assert_eq!(knobs.tunables().knob(retired.new), Some(other));
            let Answer::Values(values) = knobs.answer(&Request::Get, ME, 2, nobody) else {
                panic!("no values");
            };
            assert!(values.iter().all(|value| value.key != retired.old));
        }
    }

    #[test]
    fn a_bounded_number_of_changes_is_remembered() {
        let mut knobs = Settings::new(Tunables::new(Mode::Auto), InForce::default());
        for us in 0..REMEMBERED + 50 {
            knobs.answer(&set(&[&format!("slice_us={}", 1000 + us)]), ME, 1, nobody);
        }
        assert_eq!(knobs.changes.len(), REMEMBERED);
        for _ in 0..REMEMBERED {
            assert!(matches!(
                knobs.answer(&Request::Undo, ME, 1, nobody),
                Answer::Changed(_)
            ));
        }
        error(&mut knobs, &Request::Undo);
        assert_eq!(knobs.tunables().slice_us, 1000 + 49);
    }

    /// Mode off is given, and nest may be tried.
    fn adaptive() -> Settings {
        let mut tunables = Tunables::new(Mode::Off);
        tunables.adapt = 1;
        Settings::new(tunables, InForce::default()).adaptive(&[Mode::Nest])
    }

    fn mode_in_force(knobs: &Settings) -> String {
        let mut values = knobs.values().into_iter();
        values.find(|value| value.key == MODE).unwrap().value
    }

    #[test]
    fn who_sets_the_mode_has_it_until_that_is_undone() {
        let pinned = |knobs: &mut Settings| match knobs.answer(&Request::Adapt, ME, 1, nobody) {
            Answer::Adapt(status) => status.contexts[0].state == "pinned by set mode=",
            other => panic!("{other:?}"),
        };
        let mut knobs = adaptive();
        knobs.answer(&set(&["slice_us=2000"]), ME, 1, nobody);
        assert!(!pinned(&mut knobs) && knobs.next_trial().is_some());
        // Also by setting what was given.
        for mode in ["mode=off", "mode=nest"] {
            let answer = knobs.answer(&set(&[mode]), ME, 1, nobody);
            assert!(matches!(answer, Answer::Changed(changes) if changes.len() == 1));
            assert!(pinned(&mut knobs) && knobs.next_trial().is_none());
        }
        knobs.answer(&Request::Undo, ME, 1, nobody);
        assert!(pinned(&mut knobs));
        knobs.answer(&Request::Undo, ME, 1, nobody);
        assert!(!pinned(&mut knobs) && knobs.next_trial().is_some());
        assert_eq!(mode_in_force(&knobs), "off");
        let mut plain = Settings::new(Tunables::new(Mode::Off), InForce::default());
        assert!(error(&mut plain, &Request::Adapt).contains("without --adapt"));
    }

    #[test]
    fn what_is_found_by_trial_is_in_force_and_no_change_of_anybodys() {
        let mut knobs = adaptive();
        let (mut now, mut sums) = (Instant::now(), Done::default());
        let decision = loop {
            let next = knobs.next_trial().unwrap().max(now);
            let ns = (next - now).as_nanos() as u64;
            let speed = if mode_in_force(&knobs) == "nest" {
                1
            } else {
                2
            };
            (sums.run, sums.work) = (sums.run + ns, sums.work + ns / speed);
            now = next;
            if let Some(decision) = knobs.adapt(now, 7, |_| Ok(sums)).unwrap() {
                break decision;
            }
        };
        assert!(decision.taken && decision.at == 7, "{decision}");
        assert_eq!(mode_in_force(&knobs), "nest");
        assert_eq!(knobs.tunables().mode, Mode::Off as u64, "the one given");
        let policies: Vec<_> = knobs.contexts().policies(knobs.tunables()).collect();
        assert_eq!(policies[0].1.mode, Mode::Nest as u64);
        error(&mut knobs, &Request::Undo);
        knobs.answer(&set(&["mode=auto"]), ME, 8, nobody);
        assert_eq!(mode_in_force(&knobs), "auto");
        knobs.answer(&Request::Undo, ME, 9, nobody);
        assert_eq!(mode_in_force(&knobs), "off");
    }

    proptest! {
        /// Whatever is asked: values stay in their ranges, an error changes nothing,
        /// and what was set can be undone.
        #[test]
        fn any_request_is_answered(
            keys in proptest::collection::vec((0..KNOBS.len() + 3, any::<u64>(), any::<bool>()), 0..6),
        ) {
            let mut knobs = Settings::new(Tunables::new(Mode::Auto), InForce::default());
            let before = knobs.tunables();
            let assignments = keys.iter().map(|(i, value, fits)| match KNOBS.get(*i) {
                Some(knob) if *fits => {
                    let span = knob.max - knob.min + 1;
                    Assignment::new(knob.name, knob.min + value % span)
                }
                Some(knob) => Assignment::new(knob.name, value),
                None => Assignment::new(if *fits { MODE } else { "" }, if *i % 2 == 0 { "nest" } else { "?" }),
            });
            let answer = knobs.answer(&Request::Set(assignments.collect()), ME, 1, nobody);
            let mut after = knobs.tunables();
            for knob in KNOBS {
                let value = *after.knob_mut(knob.name).unwrap();
                prop_assert!((knob.min..=knob.max).contains(&value));
            }
            match answer {
                Answer::Error(_) => prop_assert_eq!(after, before),
                Answer::Changed(changes) if changes.is_empty() => prop_assert_eq!(after, before),
                _ => {
                    knobs.answer(&Request::Undo, ME, 2, nobody);
                    prop_assert_eq!(knobs.tunables(), before);
                }
            }
        }
    }
}
