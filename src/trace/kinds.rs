// SPDX-License-Identifier: GPL-2.0-only
//! The events of bpf/events.h.

use clap::ValueEnum;

include!(concat!(env!("OUT_DIR"), "/events.rs"));

impl Kind {
    /// The one that this number stands for; none for one of a newer version.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::value_variants().get(usize::from(number)).copied()
    }

    /// Those that are recorded under any scheduler.
    pub fn traced() -> impl Iterator<Item = Self> {
        Self::with(crate::intf::fl_trace_flags_TRACED)
    }

    /// Those that are recorded under our own scheduler alone.
    pub fn ours() -> impl Iterator<Item = Self> {
        Self::with(crate::intf::fl_trace_flags_OURS)
    }

    /// Whether it is recorded only where it is named: there are many of it.
    pub fn is_asked_for(self) -> bool {
        self.flags() & crate::intf::fl_trace_flags_ASKED != 0
    }

    fn with(flag: u32) -> impl Iterator<Item = Self> {
        let all = Self::value_variants().iter().copied();
        all.filter(move |kind| kind.flags() & flag != 0)
    }

    /// Its bit in a set of them.
    pub fn bit(self) -> u64 {
        1 << self as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_table_and_never_change() {
        for (number, kind) in Kind::value_variants().iter().enumerate() {
            assert_eq!(*kind as usize, number);
            assert_eq!(Kind::from_number(number as u16), Some(*kind));
        }
        assert_eq!(Kind::from_number(Kind::value_variants().len() as u16), None);
        // Files have them: a new one comes last.
        for (kind, number) in [
            (Kind::Fork, 0),
            (Kind::Switch, 5),
            (Kind::NameRest, 11),
            (Kind::Inversion, 21),
            (Kind::LockLeft, 22),
            (Kind::Chosen, 25),
        ] {
            assert_eq!(kind as u32, number);
        }
        let all: Vec<_> = Kind::traced().chain(Kind::ours()).collect();
        assert_eq!(all, Kind::value_variants());
    }
}
