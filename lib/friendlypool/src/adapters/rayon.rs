// SPDX-License-Identifier: MIT
//! A rayon pool that is made anew when another number of threads is due, for rayon cannot resize one.

use crate::available_parallelism;
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::sync::{Arc, Mutex, PoisonError};

/// A pool of the present size.
#[derive(Default)]
pub struct SizedPool(Mutex<Option<Arc<ThreadPool>>>);

impl SizedPool {
    /// The pool to use next. One of another size ends when those who use it dropped it. An error:
    /// threads cannot be started.
    pub fn current(&self) -> Result<Arc<ThreadPool>, ThreadPoolBuildError> {
        let threads = available_parallelism().get();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(pool) if pool.current_num_threads() == threads => Ok(Arc::clone(pool)),
            _ => {
                let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
                Ok(Arc::clone(last.insert(Arc::new(pool))))
            }
        }
    }
}
