// SPDX-License-Identifier: MIT
//! How many CPUs a program can count on now.
//!
//! The least of its affinity, of the quotas of its cgroups, and of what its neighbours leave it
//! or have to leave it. scx_freqlock publishes what each cgroup can count on and what each
//! process ran and waited, in a page of memory (`lib/cpus_page.h`, [`Page`]). Without it,
//! /proc has what each process ran.
//!
//! [`Counter`] puts these together for a program and all that it starts, [`OwnCounter`] for the
//! calling process alone, as often as each millisecond.

mod allowed;
mod counter;
mod max_min;
mod own;
mod page_reader;
mod processes;
mod stat;

pub use allowed::{affinity, Limits};
pub use counter::{Counted, Counter};
pub use own::{OwnCounted, OwnCounter};
pub use page_reader::{Figures, Page, PageError, Row, DEFAULT_PAGE};
pub use processes::{Process, Processes};
