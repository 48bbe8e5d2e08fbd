// SPDX-License-Identifier: GPL-2.0-only
//! The placement modes.

use crate::intf;
use clap::ValueEnum;

/// `enum fl_mode`, and what its members are called on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[repr(u32)]
pub enum Mode {
    /// An idle CPU near the previous one, as plain schedulers do
    Off = intf::fl_mode_FL_MODE_OFF,
    /// The parent's or previous CPU, if no other task is there; else as off
    ForkLocal = intf::fl_mode_FL_MODE_FORK_LOCAL,
    /// Always the parent's or previous CPU; balancing disperses
    ForkAll = intf::fl_mode_FL_MODE_FORK_ALL,
    /// Stay local while the idle CPU is slower now, and move when that takes too long
    Smove = intf::fl_mode_FL_MODE_SMOVE,
    /// A small set of warm CPUs that grows when they are busy
    Nest = intf::fl_mode_FL_MODE_NEST,
    /// The CPU where the task is predicted to finish first
    Auto = intf::fl_mode_FL_MODE_AUTO,
}

impl Mode {
    /// The one that this number stands for on the BPF side.
    pub fn from_number(number: u64) -> Option<Self> {
        let mut modes = Self::value_variants().iter();
        modes.find(|mode| **mode as u64 == number).copied()
    }

    /// As the command line has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::ForkLocal => "fork-local",
            Self::ForkAll => "fork-all",
            Self::Smove => "smove",
            Self::Nest => "nest",
            Self::Auto => "auto",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_of_the_bpf_side_has_its_name() {
        let modes = Mode::value_variants();
        assert_eq!(modes.len(), intf::fl_mode_FL_NR_MODES as usize);
        for (number, mode) in modes.iter().enumerate() {
            assert_eq!(*mode as usize, number);
            assert_eq!(Mode::from_number(number as u64), Some(*mode));
            let value = mode.to_possible_value().unwrap();
            assert_eq!(value.get_name(), mode.name());
        }
    }
}
