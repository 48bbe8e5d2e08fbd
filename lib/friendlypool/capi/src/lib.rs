// SPDX-License-Identifier: MIT
//! The functions of `lib/friendlypool.h`, which says what they do: here they are translated.
//! Each takes pointers that are valid for the time of the call, or NULL where the header says so.
#![allow(missing_docs, clippy::missing_safety_doc)]

use libc::{c_int, c_void};
use pool::{adapters::openmp, Pool, PoolBuilder};
use std::io::ErrorKind;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// FRIENDLYPOOL_VERSION.
const VERSION: u32 = 1;
/// Pieces of a loop for each worker, so that the last ones end at about the same time.
const PIECES: usize = 8;

/// A pool, and the tasks that have not ended.
pub struct CPool {
    pool: Pool,
    tasks: Arc<Tasks>,
}

#[derive(Default)]
struct Tasks {
    count: Mutex<usize>,
    none: Condvar,
}

impl Tasks {
    fn change(&self, by: isize) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count = count.wrapping_add_signed(by);
        if *count == 0 {
            self.none.notify_all();
        }
    }

    fn wait(&self) {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = self.none.wait_while(count, |count| *count > 0);
        drop(ended.unwrap_or_else(PoisonError::into_inner));
    }
}

/// The program's pointer, for its own tasks.
#[derive(Clone, Copy)]
struct Argument(*mut c_void);

// SAFETY: what the program hands to tasks is for them to use in any thread.
unsafe impl Send for Argument {}
// SAFETY: as above.
unsafe impl Sync for Argument {}

impl Argument {
    fn get(&self) -> *mut c_void {
        self.0
    }
}

/// A pool with workers, or what the call returns.
fn usable<'a>(pool: *const CPool) -> Result<&'a CPool, c_int> {
    // SAFETY: the program's, valid for the time of the call.
    let pool = unsafe { pool.as_ref() }.ok_or(libc::EINVAL)?;
    if pool.pool.has_workers() {
        Ok(pool)
    } else {
        Err(libc::ECHILD)
    }
}

#[no_mangle]
pub extern "C" fn friendlypool_version() -> u32 {
    VERSION
}

#[no_mangle]
pub unsafe extern "C" fn friendlypool_new(
    pool: *mut *mut CPool,
    workers: usize,
    overcommit: f64,
) -> c_int {
    if pool.is_null() {
        return libc::EINVAL;
    }
    let mut builder = PoolBuilder::default().overcommit(overcommit);
    if workers > 0 {
        builder = builder.workers(workers);
    }
    match builder.build() {
        Ok(made) => {
            let made = CPool {
                pool: made,
                tasks: Arc::default(),
            };
            // SAFETY: not NULL, so valid.
            unsafe { *pool = Box::into_raw(Box::new(made)) };
            0
        }
        Err(why) if why.kind() == ErrorKind::InvalidInput => libc::EINVAL,
        Err(_) => libc::EAGAIN,
    }
}

#[no_mangle]
pub unsafe extern "C" fn friendlypool_free(pool: *mut CPool) {
    if !pool.is_null() {
        // SAFETY: the program's, from friendlypool_new(), and not used any more.
        drop(unsafe { Box::from_raw(pool) });
    }
}

#[no_mangle]
pub unsafe extern "C" fn friendlypool_submit(
    pool: *mut CPool,
    task: Option<unsafe extern "C" fn(*mut c_void)>,
    arg: *mut c_void,
) -> c_int {
    let (pool, task) = match (usable(pool), task) {
        (Ok(pool), Some(task)) => (pool, task),
        (Err(why), _) => return why,
        (_, None) => return libc::EINVAL,
    };
    let (arg, tasks) = (Argument(arg), Arc::clone(&pool.tasks));
    tasks.change(1);
    pool.pool.spawn(move || {
        // SAFETY: the program's task and argument.
        unsafe { task(arg.get()) };
        tasks.change(-1);
    });
    0
}

#[no_mangle]
pub unsafe extern "C" fn friendlypool_wait(pool: *mut CPool) -> c_int {
    let pool = match usable(pool) {
        Ok(pool) => pool,
        Err(why) => return why,
    };
    if pool.pool.is_worker() {
        return libc::EDEADLK;
    }
    pool.tasks.wait();
    0
}

#[no_mangle]
pub unsafe extern "C" fn friendlypool_parallel_for(
    pool: *mut CPool,
    begin: usize,
    end: usize,
    grain: usize,
    body: Option<unsafe extern "C" fn(usize, *mut c_void)>,
    arg: *mut c_void,
) -> c_int {
    let (pool, body) = match (usable(pool), body) {
        (Ok(pool), Some(body)) => (&pool.pool, body),
        (Err(why), _) => return why,
        (_, None) => return libc::EINVAL,
    };
    let arg = Argument(arg);
    // SAFETY: the program's function and argument.
    let call = |index| unsafe { body(index, arg.get()) };
    let grain = match grain {
        0 => (end.saturating_sub(begin) / (PIECES * pool.workers())).max(1),
        grain => grain,
    };
    if begin < end {
        pool.install(|| in_pieces(begin, end, grain, &call));
    }
    0
}

/// Calls it for each of these, halves in parallel.
fn in_pieces(begin: usize, end: usize, grain: usize, call: &(impl Fn(usize) + Sync)) {
    if end - begin <= grain {
        (begin..end).for_each(call);
    } else {
        let middle = begin + (end - begin) / 2;
        pool::join(
            || in_pieces(begin, middle, grain, call),
            || in_pieces(middle, end, grain, call),
        );
    }
}

#[no_mangle]
pub unsafe extern "C" fn friendlypool_active_workers(pool: *const CPool) -> usize {
    usable(pool).map_or(0, |pool| pool.pool.active_workers())
}

#[no_mangle]
pub extern "C" fn friendlypool_available_parallelism() -> usize {
    pool::available_parallelism().get()
}

#[no_mangle]
pub extern "C" fn friendlypool_size_openmp() -> c_int {
    match openmp::size_process() {
        Some(_) => 0,
        None => libc::ENOSYS,
    }
}
