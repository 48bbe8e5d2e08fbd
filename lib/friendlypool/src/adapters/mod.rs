// SPDX-License-Identifier: MIT
//! Sizes pools of other libraries by [`available_parallelism`](crate::available_parallelism).

pub mod openmp;
#[cfg(feature = "rayon")]
pub mod rayon;
#[cfg(feature = "tokio")]
pub mod tokio;
