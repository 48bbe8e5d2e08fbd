// SPDX-License-Identifier: MIT
//! Which lock programs get, and how that is told: what the library and `freqlock-run` share.

/// The environment variable with the name of a kind.
pub const LOCK: &str = "FREQLOCK_LOCK";
/// The one with the bound of waits for locks, in ns.
pub const SLO_NS: &str = "FREQLOCK_SLO_NS";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// libc's own: each call is passed on.
    Pthread,
    Freqlock,
    Tas,
    Ticket,
    Mcs,
    Proportional,
}

/// By name; the first is the default.
pub const KINDS: [(&str, Kind); 7] = [
    ("freqlock", Kind::Freqlock),
    ("pthread", Kind::Pthread),
    ("null", Kind::Pthread),
    ("tas", Kind::Tas),
    ("ticket", Kind::Ticket),
    ("mcs", Kind::Mcs),
    ("proportional", Kind::Proportional),
];

/// Of these, libc's own.
pub const LIBCS: usize = 1;
const _: () = assert!(matches!(KINDS[LIBCS].1, Kind::Pthread));
