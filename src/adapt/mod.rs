// SPDX-License-Identifier: GPL-2.0-only
//! `--adapt`: the mode of each context is found by trial.
//!
//! A `trial` interleaves short slots of the mode in force with slots of a candidate, in
//! pairs, and compares their `score`, the time that it took to get a unit of work done.
//! A candidate that is better by a margin, and so in all pairs but one, takes its place.
//! One context at a time is on trial; each candidate in turn is a round, and the more
//! rounds change nothing, the longer is the rest until the next, by `pace`, which also
//! bounds the time on trial. `adapter` is all of that together: it decides, and knows
//! neither BPF nor a clock; `view` is what people and scripts get to see of it.
//!
//! What takes part: the tasks in no context, and each context that sets no `mode`, each
//! with a mode of its own. What somebody has set is left alone: a context with a `mode`,
//! and from `set mode=` on until its `undo` all others. All of them begin with the mode
//! given, which is among the candidates; pinned contexts go back to it.

mod adapter;
mod pace;
mod score;
#[cfg(test)]
mod tests;
mod trial;
mod view;

pub(crate) use adapter::{Adapter, Tuning};
pub use score::Done;
pub use view::{ContextState, Decision, Status};

use crate::mode::Mode;

/// Tried where no others are named: of those in docs/RESULTS.md each is the best
/// somewhere.
pub const DEFAULT_MODES: [Mode; 3] = [Mode::Auto, Mode::Nest, Mode::Off];

/// Tasks that may have a mode of their own: those of a context, or in none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The context's number, from 1; 0 for tasks in none.
    pub number: u32,
    /// What people call it.
    pub name: String,
    /// The mode that they have without trials.
    pub given: Mode,
    /// What has set that, if it is to stay.
    pub pinned: Option<String>,
}
