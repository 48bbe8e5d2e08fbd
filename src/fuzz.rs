// SPDX-License-Identifier: GPL-2.0-only
//! Tests that go on for a while: for FREQLOCK_FUZZ_SECONDS, or a second.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestCaseResult, TestRunner};
use std::time::{Duration, Instant};

const SECONDS: &str = "FREQLOCK_FUZZ_SECONDS";

/// Tries what a strategy makes until the time is over, and makes what fails small.
pub fn for_a_while<S: Strategy>(strategy: S, test: impl Fn(S::Value) -> TestCaseResult) {
    let seconds = std::env::var(SECONDS).map_or(1.0, |text| text.parse().expect(SECONDS));
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let config = Config {
        cases: 16,
        failure_persistence: None,
        ..Config::default()
    };
    let mut cases = 0;
    while cases == 0 || Instant::now() < until {
        let mut runner = TestRunner::new(config.clone());
        if let Err(error) = runner.run(&strategy, &test) {
            panic!("{error}");
        }
        cases += config.cases;
    }
    println!("{cases} cases");
}

/// Bytes that are somewhat other than meant: a few times a byte is another, one is put in
/// or taken out, a piece comes twice, or the rest is missing.
pub fn changed(meant: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let change = (0..8, any::<Index>(), any::<Index>(), interesting());
    (meant, vec(change, 0..4)).prop_map(|(mut bytes, changes)| {
        for (what, at, to, byte) in changes {
            let (at, to) = (at.index(bytes.len() + 1), to.index(bytes.len() + 1));
            let (at, to) = (at.min(to), at.max(to));
            match what {
                0 => bytes.truncate(at),
                1 => drop(bytes.drain(at..to)),
                2 => bytes.extend_from_within(at..to),
                3 => bytes.insert(at, byte),
                _ if at < bytes.len() => bytes[at] = byte,
                _ => {}
            }
        }
        bytes
    })
}

/// Any byte, and often one that means something.
fn interesting() -> impl Strategy<Value = u8> {
    prop_oneof![
        any::<u8>(),
        proptest::sample::select(b"\"\\{}[]():,=.#-+_ \t\0/*?0019azeE".to_vec()),
    ]
}
