// SPDX-License-Identifier: MIT
//! How many threads of this process would run at the same time.

use crate::active_rule;
use freqlock_cpus::{affinity, OwnCounter, DEFAULT_PAGE};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Mutex, TryLockError};
use std::time::{Duration, Instant};

/// Without the page, over how long the first call looks at neighbours.
const FIRST_LOOK: Duration = Duration::from_millis(50);

/// The process's counter, and its last answer with when it will be old.
struct Last {
    process: u32,
    counter: OwnCounter,
    answer: NonZeroUsize,
    old_at: Instant,
}

static LAST: Mutex<Option<Last>> = Mutex::new(None);

/// Threads of this process that would run at the same time now: by affinity, quotas of cgroups and
/// neighbours; 1 at least. The first call takes 50 ms where scx_freqlock publishes no page of CPUs.
pub fn available_parallelism() -> NonZeroUsize {
    let mut last = match LAST.try_lock() {
        Ok(last) => last,
        Err(TryLockError::Poisoned(last)) => last.into_inner(),
        // Another thread looks; or one did when the process was forked.
        Err(TryLockError::WouldBlock) => return Last::look().answer,
    };
    match &mut *last {
        Some(last) if last.process == std::process::id() => {
            if Instant::now() >= last.old_at {
                last.count();
            }
            last.answer
        }
        _ => last.insert(Last::look()).answer,
    }
}

impl Last {
    fn look() -> Self {
        let mut last = Self {
            process: std::process::id(),
            counter: OwnCounter::new(Path::new(DEFAULT_PAGE)),
            answer: NonZeroUsize::MIN,
            old_at: Instant::now(),
        };
        if last.counter.count().without_page.is_some() {
            std::thread::sleep(FIRST_LOOK);
        }
        last.count();
        last
    }

    fn count(&mut self) {
        let counted = self.counter.count();
        let found = active_rule::active(self.answer.get(), 1.0, counted.cpus, affinity());
        self.answer = NonZeroUsize::new(found).unwrap_or(NonZeroUsize::MIN);
        self.old_at = Instant::now() + counted.again_in;
    }
}
