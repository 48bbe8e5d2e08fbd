// SPDX-License-Identifier: GPL-2.0-only
//! What decisions of mode auto were made by, put together from the words of several events.

use super::format::Event;
use super::replay::{abi, PLACES};
use super::Kind;
use std::collections::HashMap;

const DECISION: usize = size_of::<abi::rec_decision>() / 8;
const CANDIDATE: usize = size_of::<abi::rec_candidate>() / 8;

/// A decision.
#[derive(Clone, Debug)]
pub struct Weighed {
    /// When it was made, ns.
    pub time: u64,
    /// Of which task.
    pub pid: u32,
    /// All but the candidates.
    pub decision: abi::rec_decision,
    /// Where the task could go.
    pub candidates: Vec<abi::rec_candidate>,
    /// The CPU that was chosen; -1 where none was.
    pub chosen: i32,
}

fn has(decision: &abi::rec_decision, flag: u32) -> bool {
    u32::from(decision.flags) & flag != 0
}

impl Weighed {
    /// Whether the task went back to its previous CPU without a look at others.
    pub fn is_back(&self) -> bool {
        has(&self.decision, abi::rec_decides_REC_DECIDES_BACK)
    }

    /// Whether that went by a look before.
    pub fn is_again(&self) -> bool {
        has(&self.decision, abi::rec_decides_REC_DECIDES_AGAIN)
    }
}

/// The words of a decision that is not complete yet.
struct Begun {
    time: u64,
    pid: u32,
    words: Vec<u64>,
}

impl Begun {
    fn decision(&self) -> abi::rec_decision {
        let words = &mut self.words.iter().copied().chain(std::iter::repeat(0));
        let [first, times, other, exit, rest] = take(words);
        abi::rec_decision {
            prev_cpu: first as u16,
            this_cpu: (first >> 16) as u16,
            flags: (first >> 32) as u16,
            candidates: (first >> 48) as u16,
            burst: low(times),
            soon: high(times),
            leave: low(other),
            share: high(other),
            exit: low(exit),
            exit_age: high(exit),
            active: low(rest),
            unused: 0,
        }
    }

    /// How many words make it whole; none if it has more candidates than there can be.
    fn needs(&self) -> Option<usize> {
        let decision = self.decision();
        if has(&decision, abi::rec_decides_REC_DECIDES_AGAIN) {
            return Some(1);
        }
        let nr = usize::from(decision.candidates);
        (nr <= PLACES).then_some(DECISION + nr * CANDIDATE)
    }

    fn weighed(self, chosen: Option<i32>) -> Weighed {
        let decision = self.decision();
        let words = self.words.get(DECISION..).unwrap_or_default();
        Weighed {
            time: self.time,
            pid: self.pid,
            candidates: words.chunks_exact(CANDIDATE).map(candidate).collect(),
            chosen: chosen.unwrap_or(i32::from(decision.prev_cpu)),
            decision,
        }
    }
}

fn take<const N: usize>(words: &mut impl Iterator<Item = u64>) -> [u64; N] {
    [(); N].map(|()| words.next().unwrap_or_default())
}

fn low(word: u64) -> u32 {
    word as u32
}

fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

fn candidate(words: &[u64]) -> abi::rec_candidate {
    let [who, age, busy, rest, slice, queued, exit, overrun, rent, life] =
        take(&mut words.iter().copied());
    abi::rec_candidate {
        cpu: who as u16,
        why: (who >> 16) as u8,
        flags: (who >> 24) as u8,
        speed: high(who),
        speed_age: low(age),
        busy: high(age),
        busy_age: low(busy),
        running_age: high(busy),
        rest: low(rest),
        away: high(rest),
        slice: low(slice),
        leave: high(slice),
        queued: low(queued),
        stopped_age: high(queued),
        exit: low(exit),
        exit_age: high(exit),
        overrun: low(overrun),
        overrun_age: high(overrun),
        rent: low(rent),
        rent_age: high(rent),
        rent_life: low(life),
        given: high(life),
    }
}

/// Puts them together, CPU by CPU.
#[derive(Default)]
pub struct Weighing {
    begun: HashMap<u16, Begun>,
    /// Those of which events are missing.
    pub cut: u64,
}

impl Weighing {
    /// Takes an event; the decision that it completes.
    pub fn take(&mut self, event: &Event) -> Option<Weighed> {
        match Kind::from_number(event.kind) {
            Some(Kind::Weigh) => {
                let begun = Begun {
                    time: event.time,
                    pid: event.pid,
                    words: vec![event.arg],
                };
                self.cut += u64::from(self.begun.insert(event.cpu, begun).is_some());
            }
            Some(Kind::WeighRest) => self.begun.get_mut(&event.cpu)?.words.push(event.arg),
            Some(Kind::Chosen) => {
                let begun = self.begun.remove(&event.cpu)?;
                if begun.needs() != Some(begun.words.len()) {
                    self.cut += 1;
                    return None;
                }
                return Some(begun.weighed(Some(event.low() as i32)));
            }
            _ => return None,
        }
        // Of one that goes back no choice follows.
        let begun = self.begun.get(&event.cpu)?;
        let goes_back = has(&begun.decision(), abi::rec_decides_REC_DECIDES_BACK);
        match begun.needs() {
            Some(needs) if needs == begun.words.len() && goes_back => {
                Some(self.begun.remove(&event.cpu)?.weighed(None))
            }
            Some(needs) if needs >= begun.words.len() => None,
            _ => {
                self.begun.remove(&event.cpu);
                self.cut += 1;
                None
            }
        }
    }

    /// Events of the CPU are missing.
    pub fn gap(&mut self, cpu: u16) {
        self.cut += u64::from(self.begun.remove(&cpu).is_some());
    }
}
