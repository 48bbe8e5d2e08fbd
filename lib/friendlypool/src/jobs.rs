// SPDX-License-Identifier: MIT
//! Jobs: closures on a stack that waits for them, or on the heap, as one kind of pointer.

use crate::latch::Latch;
use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

/// A job that is to be executed once, by any thread.
pub(crate) struct JobRef {
    job: *const (),
    execute: unsafe fn(*const ()),
}

// SAFETY: both kinds of jobs below take closures that are Send, and results that are.
unsafe impl Send for JobRef {}

impl JobRef {
    /// True if it is this one.
    pub(crate) fn is<T>(&self, job: *const T) -> bool {
        self.job == job.cast()
    }

    pub(crate) fn execute(self) {
        // SAFETY: whoever made it keeps the job until this was called, which consumes it.
        unsafe { (self.execute)(self.job) }
    }

    /// A closure on the heap, which must not unwind.
    ///
    /// # Safety
    /// What the closure borrows lives until it was executed.
    pub(crate) unsafe fn on_heap<F: FnOnce() + Send>(closure: F) -> Self {
        unsafe fn execute<F: FnOnce()>(job: *const ()) {
            // SAFETY: the pointer is the box's below; it is taken once.
            let closure = unsafe { Box::from_raw(job.cast_mut().cast::<F>()) };
            closure();
        }
        Self {
            job: Box::into_raw(Box::new(closure)).cast_const().cast(),
            execute: execute::<F>,
        }
    }
}

/// What a closure returned, or its panic.
pub(crate) type Outcome<R> = Result<R, Box<dyn Any + Send>>;

/// A closure and its result, on the stack of the thread that waits for the latch.
pub(crate) struct StackJob<F, R> {
    pub(crate) latch: Latch,
    closure: UnsafeCell<Option<F>>,
    outcome: UnsafeCell<Option<Outcome<R>>>,
}

impl<F: FnOnce() -> R + Send, R: Send> StackJob<F, R> {
    pub(crate) fn new(closure: F, latch: Latch) -> Self {
        Self {
            latch,
            closure: UnsafeCell::new(Some(closure)),
            outcome: UnsafeCell::new(None),
        }
    }

    /// # Safety
    /// The job stays where it is until its latch is set, or the reference is taken back.
    pub(crate) unsafe fn as_ref(&self) -> JobRef {
        unsafe fn execute<F: FnOnce() -> R + Send, R: Send>(job: *const ()) {
            // SAFETY: the waiter keeps the job until the latch is set, and does not look at its
            // cells before. One JobRef is executed once.
            unsafe {
                let job: *const StackJob<F, R> = job.cast();
                if let Some(closure) = (*(*job).closure.get()).take() {
                    let outcome = catch_unwind(AssertUnwindSafe(closure));
                    *(*job).outcome.get() = Some(outcome);
                }
                Latch::set(&raw const (*job).latch);
            }
        }
        JobRef {
            job: std::ptr::from_ref(self).cast(),
            execute: execute::<F, R>,
        }
    }

    /// Calls the closure here, once its reference was taken back.
    pub(crate) fn call(self) -> R {
        match self.closure.into_inner() {
            Some(closure) => closure(),
            None => unreachable!("a job is executed or taken back, not both"),
        }
    }

    /// The result, or the panic goes on, after the latch was set.
    pub(crate) fn result(self) -> R {
        match self.outcome.into_inner() {
            Some(Ok(value)) => value,
            Some(Err(panic)) => resume_unwind(panic),
            None => unreachable!("the latch is set after the job was executed"),
        }
    }
}
