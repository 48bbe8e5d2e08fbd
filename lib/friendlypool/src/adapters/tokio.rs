// SPDX-License-Identifier: MIT
//! A tokio runtime with as many workers as run at the same time when it is made.

use crate::available_parallelism;
use tokio::runtime::Builder;

/// Of a runtime with several threads; tokio cannot change their number later.
pub fn runtime_builder() -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(available_parallelism().get());
    builder
}
