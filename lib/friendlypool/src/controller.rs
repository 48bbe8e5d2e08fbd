// SPDX-License-Identifier: MIT
//! The control thread of a pool: looks how many CPUs there are to count on, and has as many workers
//! active. It sleeps while the pool does. Busy pools of a process share alike.

use crate::active_rule;
use crate::registry::Registry;
use freqlock_cpus::OwnCounter;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

/// Pools of the process that have work.
static BUSY: AtomicUsize = AtomicUsize::new(0);
/// The process that they are counted of: the child of a fork has none of them.
static BUSY_OF: AtomicU32 = AtomicU32::new(0);

/// Until the registry ends.
pub(crate) fn run(registry: &Registry, page: &Path, overcommit: f64, period: Duration) {
    let me = std::process::id();
    if BUSY_OF.swap(me, Ordering::SeqCst) != me {
        BUSY.store(0, Ordering::SeqCst);
    }
    let mut counter = OwnCounter::new(page);
    BUSY.fetch_add(1, Ordering::SeqCst);
    while !registry.is_ending() {
        if registry.sleepers.all_asleep() {
            BUSY.fetch_sub(1, Ordering::SeqCst);
            registry.wait_until_busy();
            BUSY.fetch_add(1, Ordering::SeqCst);
        }
        let counted = counter.count();
        let share = counted.cpus / BUSY.load(Ordering::SeqCst) as f64;
        let before = registry.active();
        let active = active_rule::active(before, overcommit, share, registry.workers());
        if active != before {
            registry.set_active(active);
        }
        std::thread::park_timeout(counted.again_in.max(period));
    }
    BUSY.fetch_sub(1, Ordering::SeqCst);
}
