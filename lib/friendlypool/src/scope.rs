// SPDX-License-Identifier: MIT
//! A scope: tasks that may borrow, and that all end before it does.

use crate::jobs::{JobRef, Outcome};
use crate::latch::Latch;
use crate::registry::Registry;
use crate::worker::{submit, Worker};
use std::any::Any;
use std::marker::PhantomData;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Spawns tasks that may borrow what lives longer than the scope.
pub struct Scope<'scope> {
    registry: Arc<Registry>,
    /// Tasks that have not ended, and the scope's own closure.
    pending: AtomicUsize,
    done: Latch,
    /// The first one.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    invariant: PhantomData<fn(&'scope ()) -> &'scope ()>,
}

/// Of a scope that waits for the task which has it.
struct ScopePtr<'scope>(*const Scope<'scope>);

// SAFETY: a Scope is shared among threads.
unsafe impl Send for ScopePtr<'_> {}

impl<'scope> ScopePtr<'scope> {
    fn get(&self) -> *const Scope<'scope> {
        self.0
    }
}

impl<'scope> Scope<'scope> {
    /// Queues a task. The scope waits for it, and for those that it spawns.
    pub fn spawn(&self, task: impl FnOnce(&Scope<'scope>) + Send + 'scope) {
        self.pending.fetch_add(1, Ordering::Relaxed);
        let scope = ScopePtr(self);
        let job = move || {
            let scope = scope.get();
            // SAFETY: the scope waits until all that it counts ended.
            unsafe {
                (*scope).keep(catch_unwind(AssertUnwindSafe(|| task(&*scope))));
                Self::end_one(scope);
            }
        };
        // SAFETY: what the task borrows outlives 'scope, and the scope waits for the task.
        submit(&self.registry, unsafe { JobRef::on_heap(job) });
    }

    fn keep<R>(&self, outcome: Outcome<R>) -> Option<R> {
        outcome
            .map_err(|panic| {
                let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert(panic);
            })
            .ok()
    }

    /// # Safety
    /// It is there while it counts the caller, and may be gone after this.
    unsafe fn end_one(scope: *const Self) {
        // SAFETY: as above; the last one sets the latch, and nobody leaves before.
        unsafe {
            if (*scope).pending.fetch_sub(1, Ordering::AcqRel) == 1 {
                Latch::set(&raw const (*scope).done);
            }
        }
    }
}

/// Calls the closure, then executes jobs until all tasks of the scope ended.
pub(crate) fn scope<'scope, R>(worker: &Worker, op: impl FnOnce(&Scope<'scope>) -> R) -> R {
    let scope = Scope {
        registry: Arc::clone(worker.registry()),
        pending: AtomicUsize::new(1),
        done: worker.latch(),
        panic: Mutex::new(None),
        invariant: PhantomData,
    };
    let result = scope.keep(catch_unwind(AssertUnwindSafe(|| op(&scope))));
    // SAFETY: it is here until the latch is set.
    unsafe { Scope::end_one(&raw const scope) };
    worker.wait(&scope.done);
    let panic = scope
        .panic
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    match (panic, result) {
        (None, Some(result)) => result,
        (Some(panic), _) => resume_unwind(panic),
        (None, None) => unreachable!("without a result there is a panic"),
    }
}
