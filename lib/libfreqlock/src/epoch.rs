// SPDX-License-Identifier: MIT
//! Epochs: stretches of a thread's work with a bound for their latency, from which the window
//! follows in which others may take a lock before it.
//!
//! Algorithm 2 of Liu et al., "Asymmetry-aware Scalable Locking" (PPoPP 2022): an epoch that took longer
//! than its bound halves the window; one that kept it lets it grow by a unit, which is
//! (1 - percentile) of the halved window. So the window is where it was too long after
//! 1 / (1 - percentile) epochs, and that share of them is too long.
//!
//! A thread outside of any has no bound, unless `set_wait_slo` gives each of its waits for a lock one. Such
//! a wait then is an epoch of its own; locks that are free cost nothing more.

use crate::latencies::{self, Kind};
use crate::os;
use crate::thread::{self, Thread};
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The longest window, and that of a thread outside of any epoch: 100 ms.
pub const WINDOW_MOST: u64 = 100_000_000;
/// The window of an epoch that a thread has not been in before: 1 ms.
pub const WINDOW_START: u64 = 1_000_000;
/// The least unit of growth, in ns: a window that was halved to nothing grows again.
pub const UNIT_LEAST: u64 = 10;

/// In place of an epoch's number: outside of any.
const NONE: u32 = u32::MAX;

static PER_MILLE: AtomicU32 = AtomicU32::new(990);
/// Of waits outside of epochs, in ns; 0: none.
static WAIT_SLO: AtomicU64 = AtomicU64::new(0);
/// In place of what the program says, in ns; 0: that counts.
static PROFILED_SLO: AtomicU64 = AtomicU64::new(0);
/// The only epoch that is profiled; NONE: all are.
static PROFILED: AtomicU32 = AtomicU32::new(NONE);

/// What is wrong with a start or an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochError {
    /// A start within an epoch of that number; nothing changes.
    AlreadyOpen,
    /// An end without a start, or `u32::MAX` for a number; nothing changes.
    NotOpen,
    /// Others within it had not ended: they are dropped, and the epoch has ended.
    InnerOpen,
    /// No memory, or the thread is about to exit; the epoch is not known.
    NoMemory,
    /// Within a signal handler that interrupted another start or end; nothing changes.
    Busy,
}

impl fmt::Display for EpochError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EpochError::AlreadyOpen => "the epoch is open already",
            EpochError::NotOpen => "the epoch is not open",
            EpochError::InnerOpen => "epochs within this one had not ended",
            EpochError::NoMemory => "no memory for the epoch",
            EpochError::Busy => "interrupted another start or end of an epoch",
        })
    }
}

impl std::error::Error for EpochError {}

#[derive(Clone, Debug)]
struct Epoch {
    id: u32,
    /// The number of the one around it, or NONE.
    outer: u32,
    window: u64,
    unit: u64,
    /// 0: not open.
    start: u64,
}

const _: () = assert!(size_of::<Epoch>() == 32);

/// Those of one thread, by number.
struct Table {
    epochs: Vec<Epoch>,
    current: u32,
}

impl Table {
    const fn new() -> Self {
        Table {
            epochs: Vec::new(),
            current: NONE,
        }
    }

    fn find(&self, id: u32) -> Result<usize, usize> {
        self.epochs.binary_search_by_key(&id, |epoch| epoch.id)
    }

    fn open(&mut self, id: u32) -> Option<&mut Epoch> {
        let at = self.find(id).ok()?;
        Some(&mut self.epochs[at]).filter(|epoch| epoch.start != 0)
    }

    fn start(&mut self, id: u32, now: u64) -> Result<(), EpochError> {
        if id == NONE {
            return Err(EpochError::NotOpen);
        }
        let at = match self.find(id) {
            Ok(at) if self.epochs[at].start != 0 => return Err(EpochError::AlreadyOpen),
            Ok(at) => at,
            Err(at) => {
                // Exactly: it is for long, and 32 bytes each.
                self.epochs
                    .try_reserve_exact(1)
                    .map_err(|_| EpochError::NoMemory)?;
                self.epochs.insert(
                    at,
                    Epoch {
                        id,
                        outer: NONE,
                        window: WINDOW_START,
                        unit: unit_of(WINDOW_START, per_mille()),
                        start: 0,
                    },
                );
                at
            }
        };
        self.epochs[at].outer = self.current;
        self.epochs[at].start = now;
        self.current = id;
        Ok(())
    }

    fn end(&mut self, id: u32, slo: u64, now: u64) -> Result<(), EpochError> {
        let epoch = self.open(id).ok_or(EpochError::NotOpen)?;
        let latency = now.saturating_sub(epoch.start);
        let profiled = is_profiled(id);
        let slo = match PROFILED_SLO.load(Relaxed) {
            0 => slo,
            _ if !profiled => slo,
            instead => instead,
        };
        epoch.adjust(latency, slo, per_mille());
        if profiled {
            latencies::count(Kind::Epoch, latency, now);
        }
        epoch.start = 0;
        let outer = epoch.outer;
        let mut inner = std::mem::replace(&mut self.current, outer);
        let result = if inner == id {
            Ok(())
        } else {
            Err(EpochError::InnerOpen)
        };
        while inner != id {
            let Some(dropped) = self.open(inner) else {
                break;
            };
            dropped.start = 0;
            inner = dropped.outer;
        }
        result
    }

    /// Of the innermost epoch.
    fn window(&self) -> Option<u64> {
        let at = self.find(self.current).ok()?;
        Some(self.epochs[at].window)
    }
}

impl Epoch {
    fn adjust(&mut self, latency: u64, slo: u64, per_mille: u32) {
        (self.window, self.unit) = adjusted((self.window, self.unit), latency > slo, per_mille);
    }
}

/// A window and its unit after an epoch that was too long, or was not.
fn adjusted((window, unit): (u64, u64), too_long: bool, per_mille: u32) -> (u64, u64) {
    if too_long {
        (window / 2, unit_of(window / 2, per_mille))
    } else {
        ((window + unit).min(WINDOW_MOST), unit)
    }
}

fn unit_of(window: u64, per_mille: u32) -> u64 {
    (window * u64::from(1000 - per_mille) / 1000).max(UNIT_LEAST)
}

fn per_mille() -> u32 {
    PER_MILLE.load(Relaxed)
}

thread_local! {
    // Freed as the thread exits, within an epoch or not.
    static TABLE: RefCell<Table> = const { RefCell::new(Table::new()) };
}

fn with_table(what: impl FnOnce(&mut Table) -> Result<(), EpochError>) -> Result<(), EpochError> {
    TABLE
        .try_with(|table| {
            table
                .try_borrow_mut()
                .map_or(Err(EpochError::Busy), |mut table| {
                    let result = what(&mut table);
                    // Locks look there: this table is freed when the thread exits, and its first use allocates.
                    let window = table.window();
                    thread::with(|me| {
                        me.in_epoch.set(u32::from(window.is_some()));
                        me.epoch_window.set(window.unwrap_or(0));
                    });
                    result
                })
        })
        .unwrap_or(Err(EpochError::NoMemory))
}

/// The calling thread begins an epoch, within the one it is in if there is any. Numbers are the
/// program's own, each for one kind of work.
pub fn epoch_start(id: u32) -> Result<(), EpochError> {
    with_table(|table| table.start(id, os::now()))
}

/// The calling thread ends the epoch, which should have taken `slo_ns` at most.
pub fn epoch_end(id: u32, slo_ns: u64) -> Result<(), EpochError> {
    let now = os::now();
    with_table(|table| table.end(id, slo_ns, now))
}

/// In ns: for how long others may take a lock before the calling thread, now.
pub fn epoch_window() -> u64 {
    thread::with(|me| match (me.in_epoch.get(), WAIT_SLO.load(Relaxed)) {
        (0, 0) => WINDOW_MOST,
        // A wait that begins with a longer one is too long for sure.
        (0, slo) => wait_window(me).0.min(slo),
        _ => me.epoch_window.get(),
    })
}

/// The window of waits outside of epochs, and its unit.
fn wait_window(me: &Thread) -> (u64, u64) {
    match me.wait_unit.get() {
        0 => (WINDOW_START, unit_of(WINDOW_START, per_mille())),
        unit => (me.wait_window.get(), unit),
    }
}

/// How long a wait for a lock outside of epochs should take, in ns; 0: no bound, as at the start. For all
/// threads.
pub fn set_wait_slo(slo_ns: u64) {
    WAIT_SLO.store(slo_ns, Relaxed);
}

/// For a program that is profiled: `slo_ns` counts in place of the bounds that it has for its epochs, unless it is 0.
/// With an `id`, for epochs of that number, and no others are counted by [`latencies`].
pub fn profile_epochs(id: Option<u32>, slo_ns: u64) {
    PROFILED.store(id.unwrap_or(NONE), Relaxed);
    PROFILED_SLO.store(slo_ns, Relaxed);
}

fn is_profiled(id: u32) -> bool {
    let only = PROFILED.load(Relaxed);
    only == NONE || only == id
}

/// The thread begins to wait for a lock; what is to be said when it has it.
pub(crate) fn wait_began(me: &Thread) -> Option<u64> {
    (is_bounded(me) || latencies::are_counted()).then(os::now)
}

/// Whether each of the thread's waits for a lock has a bound now.
fn is_bounded(me: &Thread) -> bool {
    WAIT_SLO.load(Relaxed) != 0 && me.in_epoch.get() == 0
}

/// It has waited since then.
pub(crate) fn wait_ended(me: &Thread, began: Option<u64>) {
    let Some(began) = began else {
        return;
    };
    let now = os::now();
    let waited = now - began;
    latencies::count(Kind::Wait, waited, now);
    if !is_bounded(me) {
        return;
    }
    let slo = WAIT_SLO.load(Relaxed);
    let (window, unit) = wait_window(me);
    let (window, unit) = adjusted((window.min(slo), unit), waited > slo, per_mille());
    me.wait_window.set(window);
    me.wait_unit.set(unit);
}

/// Which share of epochs is to keep its bound, in thousandths: 500 to 999, 990 unless this is
/// called. False if it is not among these. For all threads, from the next halving of a window.
pub fn set_percentile(per_mille: u32) -> bool {
    let possible = (500..=999).contains(&per_mille);
    if possible {
        PER_MILLE.store(per_mille, Relaxed);
    }
    possible
}

#[cfg(test)]
mod tests;
