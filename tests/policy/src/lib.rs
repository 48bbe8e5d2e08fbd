// SPDX-License-Identifier: GPL-2.0-only
//! The decisions of bpf/policy as the kernel runs them, held to their promises
//! for any input: what must not overflow, what must grow or fall with what, and
//! what a closed form in floating point says.
#![cfg(test)]

mod answer;
mod balance;
mod bandwidth;
mod cgroup;
mod clock;
mod context;
mod deadline;
mod donate;
mod finish;
mod graph;
mod groups;
mod learn;
mod lock;
mod lock_debt;
mod modes;
mod profile;
mod quota;
mod speed;
mod spin;
mod warmset;

/// Bindings of bpf/policy/*.h and bpf/intf.h.
#[allow(
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    dead_code,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
mod sys {
    include!(concat!(env!("OUT_DIR"), "/policy.rs"));
}

/// Calls a function of the policy.
macro_rules! policy {
    ($function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: the functions of bpf/policy compute on their arguments alone;
        // pointers are made from references, and written to where these are mutable.
        unsafe { $crate::sys::$function($($argument),*) }
    };
}
use policy;

/// Full speed, and the whole of any share.
const FULL: u32 = sys::FL_FULL_SPEED;

/// Any u64, with the magnitudes that matter and the extremes equally likely.
fn any_time() -> impl proptest::strategy::Strategy<Value = u64> {
    use proptest::prelude::*;
    prop_oneof![
        Just(0),
        Just(u64::MAX),
        0..10_000u64,
        0..100_000_000u64,
        0..20_000_000_000u64,
        any::<u64>(),
    ]
}

/// Enough cases to meet the rare ones; failures are printed, not stored in the tree.
fn config() -> proptest::test_runner::Config {
    proptest::test_runner::Config {
        failure_persistence: None,
        ..proptest::test_runner::Config::with_cases(2_000)
    }
}
