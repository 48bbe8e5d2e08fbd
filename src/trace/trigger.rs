// SPDX-License-Identifier: GPL-2.0-only
//! What makes a flight recorder write by itself: a priority inversion, or a wait for a CPU
//! over a bound. Both are known as they end. It does so at most once in [`PAUSE_NS`], and
//! [`MOST`] times in all.

use super::format::Event;
use super::ring::Present;
use super::Kind;
use crate::units;
use std::collections::{HashMap, HashSet};
use std::fmt;

/// From one time to the next, ns.
pub const PAUSE_NS: u64 = 10_000_000_000;
/// So that a disk is not filled by who is away.
pub const MOST: u32 = 100;

/// What makes it write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A priority inversion ended.
    Inversion,
    /// A task waited for a CPU for this time, ns, or longer.
    Wait(u64),
}

impl Trigger {
    /// As it stands on the command line: `inversion`, or `wait=10ms`.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "inversion" {
            return Ok(Self::Inversion);
        }
        let wait = text.strip_prefix("wait=").and_then(|text| {
            let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            let unit: u64 = match &text[digits.len()..] {
                "us" => 1_000,
                "ms" => 1_000_000,
                "s" => 1_000_000_000,
                _ => return None,
            };
            digits.parse::<u64>().ok()?.checked_mul(unit)
        });
        wait.filter(|ns| *ns > 0)
            .map(Self::Wait)
            .ok_or_else(|| "not `inversion` or `wait=TIME`, for example wait=10ms".into())
    }

    /// The kinds of events that it is known by.
    pub fn needs(self) -> &'static [Kind] {
        match self {
            Self::Inversion => &[Kind::Inversion],
            Self::Wait(_) => &[Kind::Wakeup, Kind::WakeupNew, Kind::Switch],
        }
    }
}

/// Why it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// What it was.
    pub trigger: Trigger,
    /// Who waited.
    pub pid: u32,
    /// For how long, ns.
    pub ns: u64,
    /// When that ended.
    time: u64,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (pid, time) = (self.pid, units::time(self.ns));
        match self.trigger {
            Trigger::Inversion => write!(f, "{pid} waited in a priority inversion for {time}"),
            Trigger::Wait(_) => write!(f, "{pid} waited for a CPU for {time}"),
        }
    }
}

/// Sees events go by.
pub struct Triggers {
    all: Vec<Trigger>,
    /// Who wants a CPU, and since when, ns.
    waiting: HashMap<u32, u64>,
    running: HashSet<u32>,
    last: Option<u64>,
    fired: u32,
    /// Reasons that came too soon after another one, or too often.
    pub passed_over: u64,
}

impl Triggers {
    /// `present`: the tasks as the recording begins.
    pub fn new(all: Vec<Trigger>, present: &[Present]) -> Self {
        let running = present.iter().filter(|task| task.running_on.is_some());
        Self {
            all,
            waiting: HashMap::new(),
            running: running.map(|task| task.pid).collect(),
            last: None,
            fired: 0,
            passed_over: 0,
        }
    }

    /// Whether there is anything to look for.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Events are missing: waits that have begun are not known any more.
    pub fn gap(&mut self) {
        self.waiting.clear();
        self.running.clear();
    }

    /// Takes what comes next; a reason to write now, if that is one.
    pub fn take(&mut self, event: &Event) -> Option<Reason> {
        let reason = self.reason(event)?;
        let is_soon = self.last.is_some_and(|last| reason.time < last + PAUSE_NS);
        if is_soon || self.fired == MOST {
            self.passed_over += 1;
            return None;
        }
        self.last = Some(reason.time);
        self.fired += 1;
        Some(reason)
    }

    fn reason(&mut self, event: &Event) -> Option<Reason> {
        let (trigger, ns) = match Kind::from_number(event.kind)? {
            Kind::Inversion => {
                let found = self.all.iter().find(|t| **t == Trigger::Inversion)?;
                (*found, u64::from(event.high()) * 1_000)
            }
            Kind::Wakeup | Kind::WakeupNew => {
                // Woken before it could sleep: it never left.
                if !self.running.contains(&event.pid) {
                    self.waiting.entry(event.pid).or_insert(event.time);
                }
                return None;
            }
            Kind::Switch => {
                let (next, prev) = (event.pid, event.low());
                self.running.remove(&prev);
                match event.high() {
                    0 if prev != 0 => drop(self.waiting.insert(prev, event.time)),
                    _ => drop(self.waiting.remove(&prev)),
                }
                if next != 0 {
                    self.running.insert(next);
                }
                let ns = event.time.saturating_sub(self.waiting.remove(&next)?);
                let is_over = |t: &&Trigger| matches!(t, Trigger::Wait(most) if ns >= *most);
                (*self.all.iter().find(is_over)?, ns)
            }
            _ => return None,
        };
        Some(Reason {
            trigger,
            pid: event.pid,
            ns,
            time: event.time,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time: u64, kind: Kind, pid: u32, high: u32, low: u32) -> Event {
        Event {
            time,
            pid,
            kind: kind as u16,
            cpu: 0,
            arg: u64::from(high) << 32 | u64::from(low),
        }
    }

    /// The times of those that were a reason.
    fn reasons(of: &mut Triggers, events: &[Event]) -> Vec<(u64, u64)> {
        let all = events.iter().filter_map(|event| of.take(event));
        all.map(|reason| (reason.time, reason.ns)).collect()
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn a_wait_counts_from_wake_up_or_preemption_and_from_its_bound_on() {
        let mut of = Triggers::new(vec![Trigger::Wait(10 * MS)], &[]);
        let events = [
            event(0, Kind::Wakeup, 1, 0, 9),
            event(9 * MS, Kind::Switch, 1, 0, 2), // 2 is preempted
            event(10 * MS, Kind::Wakeup, 1, 0, 9), // it runs
            event(19 * MS, Kind::Switch, 2, 1, 1), // 10 ms; 1 sleeps
            event(50 * MS, Kind::Switch, 1, 1, 2), // whose wake-up is not known
        ];
        assert_eq!(reasons(&mut of, &events), [(19 * MS, 10 * MS)]);
    }

    #[test]
    fn waits_over_a_gap_do_not_count() {
        let mut of = Triggers::new(vec![Trigger::Wait(MS)], &[]);
        assert_eq!(of.take(&event(0, Kind::Wakeup, 1, 0, 9)), None);
        of.gap();
        assert_eq!(of.take(&event(9 * MS, Kind::Switch, 1, 0, 0)), None);
    }

    #[test]
    fn one_in_ten_seconds_and_a_hundred_in_all() {
        let mut of = Triggers::new(vec![Trigger::Inversion], &[]);
        let at = |time| event(time, Kind::Inversion, 5, 30, 6);
        let begin = [at(0), at(PAUSE_NS - 1), at(PAUSE_NS)];
        assert_eq!(reasons(&mut of, &begin), [(0, 30_000), (PAUSE_NS, 30_000)]);
        assert_eq!(of.passed_over, 1);
        let rest: Vec<_> = (2..200).map(|n| at(n * PAUSE_NS)).collect();
        assert_eq!(reasons(&mut of, &rest).len(), MOST as usize - 2);
        assert_eq!(of.passed_over, 101);
    }

    #[test]
    fn what_is_not_asked_for_is_no_reason() {
        let mut of = Triggers::new(vec![Trigger::Wait(MS)], &[]);
        assert_eq!(of.take(&event(1, Kind::Inversion, 5, 30, 6)), None);
        assert_eq!(Trigger::parse("wait=10ms"), Ok(Trigger::Wait(10 * MS)));
        assert_eq!(Trigger::parse("inversion"), Ok(Trigger::Inversion));
        for bad in ["", "wait", "wait=", "wait=0ms", "wait=10", "wait=-1ms"] {
            assert!(
                Trigger::parse(bad).unwrap_err().contains("wait=10ms"),
                "{bad}"
            );
        }
    }
}
