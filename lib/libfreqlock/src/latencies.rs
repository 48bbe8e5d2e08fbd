// SPDX-License-Identifier: MIT
//! How long epochs and waits for locks took, counted in a file that all processes of a program share
//! with the one that profiles it. So nothing is to be written when a process ends, however it ends.
//!
//! Each CPU counts in a part of its own, so that threads on several CPUs do not wait for each other's cache
//! lines. A part has a histogram for each kind of latency, of threads on big CPUs and of those on
//! little ones: 32 buckets for each power of two, so a bucket is at most 1/32 wide of what it has.

use crate::os::{self, Access};
use crate::speed::on_big_cpu;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

/// Says that a file is one of these, and of this layout.
const MAGIC: u64 = u64::from_ne_bytes(*b"freqlat1");
/// Of CPUs; those beyond share them.
const PARTS: usize = 64;
const PER_POWER: usize = 1 << PER_POWER_BITS;
const PER_POWER_BITS: u32 = 5;
/// What takes longer, 18 minutes, is counted as this.
const LONGEST: u64 = (1 << 40) - 1;
const BUCKETS: usize = bucket(LONGEST) + 1;

/// What takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// From an epoch's start to its end.
    Epoch,
    /// For a lock that somebody has.
    Wait,
}

#[repr(C, align(64))]
struct Counts {
    /// When the first one began, as the time from there to the end of the clock: 0 is none.
    to_first: AtomicU64,
    /// When the last one ended.
    last: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

#[repr(C, align(64))]
struct Area {
    magic: AtomicU64,
    /// Those that counted here.
    processes: AtomicU64,
    /// By CPU, kind, and whether the CPU is a big one.
    parts: [[[Counts; 2]; 2]; PARTS],
}

static AREA: AtomicPtr<Area> = AtomicPtr::new(ptr::null_mut());

const fn bucket(ns: u64) -> usize {
    let power = 63 - (ns | 1).leading_zeros();
    if power < PER_POWER_BITS {
        return ns as usize;
    }
    let shift = power - PER_POWER_BITS;
    ((shift as usize + 1) << PER_POWER_BITS) + (ns >> shift) as usize - PER_POWER
}

/// The longest latency that is in a bucket.
fn most_in(bucket: usize) -> u64 {
    if bucket < PER_POWER {
        return bucket as u64;
    }
    let shift = (bucket >> PER_POWER_BITS) - 1;
    let above = (PER_POWER + bucket % PER_POWER + 1) as u64;
    (above << shift) - 1
}

/// Latencies are counted in that file from now on. False: it is none that `Latencies` has made. Allocates nothing.
pub fn count_in(path: &CStr) -> bool {
    let Some(area) = map(path) else {
        return false;
    };
    // SAFETY: mapped for good.
    unsafe { &*area }.processes.fetch_add(1, Relaxed);
    AREA.store(area, Relaxed);
    true
}

fn map(path: &CStr) -> Option<*mut Area> {
    let area = os::map_file(path, size_of::<Area>(), Access::ReadAndWrite)?.cast::<Area>();
    // SAFETY: as large, all atomic, and any bytes are one.
    if unsafe { &*area }.magic.load(Relaxed) == MAGIC {
        return Some(area);
    }
    // SAFETY: mapped above, and nobody else has seen it.
    unsafe { os::unmap(area.cast(), size_of::<Area>()) };
    None
}

/// Whether they are counted.
#[inline]
pub fn are_counted() -> bool {
    !AREA.load(Relaxed).is_null()
}

/// If they are counted: one of `kind` took `ns`, and is over now, by CLOCK_MONOTONIC.
#[inline]
pub(crate) fn count(kind: Kind, ns: u64, now: u64) {
    // SAFETY: NULL, or mapped for good.
    if let Some(area) = unsafe { AREA.load(Relaxed).as_ref() } {
        area.count(kind, ns, now);
    }
}

/// Takes a lock that is not this library's: by `at_once` if that has a result, else by `wait`, which is timed.
#[inline]
pub fn timed<T>(at_once: impl FnOnce() -> Option<T>, wait: impl FnOnce() -> T) -> T {
    if !are_counted() {
        return wait();
    }
    at_once().unwrap_or_else(|| {
        let began = os::now();
        let result = wait();
        let now = os::now();
        count(Kind::Wait, now - began, now);
        result
    })
}

impl Area {
    #[cold]
    fn count(&self, kind: Kind, ns: u64, now: u64) {
        let part = &self.parts[os::cpu() % PARTS];
        let counts = &part[kind as usize][usize::from(on_big_cpu())];
        counts.buckets[bucket(ns.min(LONGEST))].fetch_add(1, Relaxed);
        raise(&counts.to_first, u64::MAX - (now - ns));
        raise(&counts.last, now);
    }
}

/// `fetch_max`, which writes only where that is more.
fn raise(at: &AtomicU64, to: u64) {
    if at.load(Relaxed) < to {
        at.fetch_max(to, Relaxed);
    }
}

/// A file that latencies are counted in.
#[derive(Debug)]
pub struct Latencies {
    area: *mut Area,
}

/// Those of one kind.
#[derive(Debug)]
pub struct Figures {
    /// Of threads on little CPUs and on big ones.
    buckets: [Vec<u64>; 2],
    first: u64,
    last: u64,
}

/// Of whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cpus {
    /// Of threads on any CPU.
    All,
    /// Of those on little ones.
    Little,
    /// Of those on big ones, or where all are alike.
    Big,
}

impl Latencies {
    /// An empty one in the place of a file that is there.
    pub fn new(path: &Path) -> io::Result<Self> {
        let file = File::options().write(true).open(path)?;
        file.set_len(0)?;
        file.set_len(size_of::<Area>() as u64)?;
        let name = CString::new(path.as_os_str().as_bytes())?;
        let area = os::map_file(&name, size_of::<Area>(), Access::ReadAndWrite)
            .ok_or_else(io::Error::last_os_error)?;
        let area = area.cast::<Area>();
        // SAFETY: as large, all atomic, and any bytes are one.
        unsafe { &*area }.magic.store(MAGIC, Relaxed);
        Ok(Latencies { area })
    }

    fn area(&self) -> &Area {
        // SAFETY: mapped until this is dropped.
        unsafe { &*self.area }
    }

    /// How many processes counted in it.
    pub fn processes(&self) -> u64 {
        self.area().processes.load(Relaxed)
    }

    /// What was counted so far.
    pub fn figures(&self, kind: Kind) -> Figures {
        let mut figures = Figures {
            buckets: [vec![0; BUCKETS], vec![0; BUCKETS]],
            first: u64::MAX,
            last: 0,
        };
        for part in &self.area().parts {
            for (sums, counts) in figures.buckets.iter_mut().zip(&part[kind as usize]) {
                for (sum, count) in sums.iter_mut().zip(&counts.buckets) {
                    *sum += count.load(Relaxed);
                }
                let first = u64::MAX - counts.to_first.load(Relaxed);
                figures.first = figures.first.min(first);
                figures.last = figures.last.max(counts.last.load(Relaxed));
            }
        }
        figures
    }
}

impl Drop for Latencies {
    fn drop(&mut self) {
        // SAFETY: mapped by new(), and all references to it are of `self`.
        unsafe { os::unmap(self.area.cast(), size_of::<Area>()) };
    }
}

impl Figures {
    /// Of these, in ns, one after the other on a big CPU.
    pub fn of(latencies: &[u64]) -> Figures {
        let mut big = vec![0; BUCKETS];
        for &ns in latencies {
            big[bucket(ns.min(LONGEST))] += 1;
        }
        Figures {
            buckets: [vec![0; BUCKETS], big],
            first: 0,
            last: latencies.iter().sum(),
        }
    }

    fn buckets(&self, cpus: Cpus) -> impl Iterator<Item = u64> + '_ {
        let [little, big] = &self.buckets;
        let counts = little.iter().zip(big);
        counts.map(move |(little, big)| match cpus {
            Cpus::All => little + big,
            Cpus::Little => *little,
            Cpus::Big => *big,
        })
    }

    /// How many there were.
    pub fn count(&self, cpus: Cpus) -> u64 {
        self.buckets(cpus).sum()
    }

    /// How many a second, from the first one's start to the last one's end; 0 if there was none.
    pub fn per_second(&self) -> f64 {
        let seconds = self.last.saturating_sub(self.first) as f64 / os::NS_PER_SEC as f64;
        if seconds > 0.0 {
            self.count(Cpus::All) as f64 / seconds
        } else {
            0.0
        }
    }

    /// In ns: what 99% took at most, up to 1/32 too much. None: there was none.
    pub fn p99(&self, cpus: Cpus) -> Option<u64> {
        let most = self.count(cpus).checked_mul(99)?.div_ceil(100);
        let mut below = 0;
        self.buckets(cpus)
            .position(|count| {
                below += count;
                below >= most && below > 0
            })
            .map(most_in)
    }
}

#[cfg(test)]
mod tests;
