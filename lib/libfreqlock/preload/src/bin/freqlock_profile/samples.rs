// SPDX-License-Identifier: MIT
//! Runs that tests of other files look at.

use crate::program::{Program, Sample, Setting};
use libfreqlock::latencies::Figures;

/// One of 2 s, with so many epochs and waits.
pub fn sample(setting: Setting, run: u32, epochs: u64, waits: u64) -> Sample {
    Sample {
        setting,
        run,
        seconds: 2.0,
        printed: None,
        epochs: Figures::of(&vec![5_000; epochs as usize]),
        waits: Figures::of(&vec![7_000; waits as usize]),
    }
}

pub fn program(epoch: Option<u32>) -> Program {
    Program {
        command: vec!["program".into()],
        preload: "".into(),
        epoch,
        throughput: None,
    }
}
