// SPDX-License-Identifier: GPL-2.0-only
//! The placement modes of bpf/modes.h.

use clap::ValueEnum;

include!(concat!(env!("OUT_DIR"), "/modes.rs"));

impl Mode {
    /// The one that this number stands for on the BPF side.
    pub fn from_number(number: u64) -> Option<Self> {
        let mut modes = Self::value_variants().iter();
        modes.find(|mode| **mode as u64 == number).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intf;

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
