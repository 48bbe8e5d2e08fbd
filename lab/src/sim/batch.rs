// SPDX-License-Identifier: GPL-2.0-only
//! Several machines side by side on the host's cores. Each run is exact, so
//! they do not disturb each other.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use super::qemu;
use crate::process::Event;

/// Ends all machines that are running, and lets none start any more.
#[derive(Clone, Default)]
pub struct Interrupt {
    senders: Arc<Mutex<(bool, Vec<Sender<Event>>)>>,
}

impl Interrupt {
    /// One that Ctrl-C makes happen; a process can have one such.
    pub fn on_signal() -> Result<Self, ctrlc::Error> {
        let interrupt = Self::default();
        let on_signal = interrupt.clone();
        ctrlc::set_handler(move || on_signal.interrupt())?;
        Ok(interrupt)
    }

    pub fn interrupt(&self) {
        let mut inner = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        inner.0 = true;
        for sender in &inner.1 {
            // Its run may be over.
            sender.send(Event::Interrupted).ok();
        }
    }

    pub fn happened(&self) -> bool {
        let inner = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        inner.0
    }

    pub fn notify(&self, sender: Sender<Event>) {
        let mut inner = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        inner.1.push(sender);
    }
}

/// How many machines with this much memory the host can run at a time.
pub fn jobs(wanted: Option<usize>, memory_mb: u32) -> usize {
    let each = u64::from(memory_mb) + qemu::OVERHEAD_MB;
    let room = usize::try_from(qemu::available_mb() / each).unwrap_or(usize::MAX);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    wanted.unwrap_or(cpus).min(room).max(1)
}

/// Does the work on each of `all`, `jobs` at a time, and reports to `watch` each
/// begin and, with the result, each end. The results are in the order of `all`,
/// whichever was ready first; there is none for what Ctrl-C has ended or kept
/// from beginning, since that says nothing about a scheduler.
pub fn side_by_side<T: Sync, R: Send>(
    all: &[T],
    jobs: usize,
    interrupt: &Interrupt,
    work: impl Fn(&T) -> R + Sync,
    mut watch: impl FnMut(&T, Option<&R>),
) -> Vec<Option<R>> {
    let next = AtomicUsize::new(0);
    let mut done: Vec<Option<R>> = all.iter().map(|_| None).collect();
    std::thread::scope(|scope| {
        let (steps, heard) = mpsc::channel();
        for _ in 0..jobs.min(all.len()) {
            let (steps, next, work) = (steps.clone(), &next, &work);
            scope.spawn(move || loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = all.get(index).filter(|_| !interrupt.happened()) else {
                    return;
                };
                // Heard as long as there is anything to say.
                steps.send((index, None)).ok();
                steps.send((index, Some(work(item)))).ok();
            });
        }
        drop(steps);
        for (index, result) in heard {
            if result.is_some() && interrupt.happened() {
                continue;
            }
            watch(&all[index], result.as_ref());
            done[index] = result;
        }
    });
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_done_once_and_reported_in_its_order() {
        let all: Vec<u32> = (0..50).collect();
        let (mut begun, mut ended) = (Vec::new(), Vec::new());
        let done = side_by_side(
            &all,
            3,
            &Interrupt::default(),
            |item| item * 2,
            |item, result| match result {
                None => begun.push(*item),
                Some(result) => ended.push((*item, *result)),
            },
        );
        let expected: Vec<_> = all.iter().map(|item| Some(item * 2)).collect();
        assert_eq!(done, expected);
        begun.sort();
        ended.sort();
        assert_eq!(begun, all);
        assert_eq!(ended.len(), all.len());
    }

    #[test]
    fn an_interrupt_reaches_what_runs_and_keeps_the_rest_from_starting() {
        let interrupt = Interrupt::default();
        let work = |_: &u32| {
            let (sender, events) = mpsc::channel();
            interrupt.notify(sender);
            interrupt.interrupt();
            matches!(events.recv(), Ok(Event::Interrupted))
        };
        let done = side_by_side(&[1, 2, 3], 1, &interrupt, work, |_, result| {
            assert_eq!(result, None, "it says nothing");
        });
        assert_eq!(done, [None, None, None]);
    }

    #[test]
    fn at_least_one_and_no_more_than_wanted() {
        assert_eq!(jobs(Some(1), 0), 1);
        assert_eq!(jobs(None, u32::MAX), 1, "no host has room for two");
    }
}
