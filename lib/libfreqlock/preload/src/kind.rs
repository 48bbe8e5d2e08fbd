// SPDX-License-Identifier: MIT
//! Which lock programs get, and how that is told: what the library and its programs share.

/// The environment variable with the name of a kind.
pub const LOCK: &str = "FREQLOCK_LOCK";
/// The one with the bound of waits for locks, in ns.
pub const SLO_NS: &str = "FREQLOCK_SLO_NS";
/// Where latencies are counted: a file of `freqlock-profile`'s.
pub const LATENCIES: &str = "FREQLOCK_LATENCIES";
/// What counts then in place of the bounds of the program's epochs, in ns.
pub const EPOCH_SLO_NS: &str = "FREQLOCK_EPOCH_SLO_NS";
/// The number of the only epoch that this concerns.
pub const EPOCH: &str = "FREQLOCK_EPOCH";

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
