// SPDX-License-Identifier: GPL-2.0-only
//! Traces: what the scheduler in charge did, event by event. `record` writes them with
//! bpf/record.bpf.c, `analyze` and `export` read them; docs/TRACE.md describes the file.
//! All but `ring` is pure, so that tests can feed it any bytes.
//!
//! - `kinds`: the table bpf/events.h.
//! - `ring`: the buffers that the BPF side fills, mapped.
//! - `flight`: what a flight recorder has, as a trace.
//! - `trigger`: what makes one write by itself.
//! - `format`: head, chunks and events as bytes.
//! - `writer`, `reader`: a file as it grows, and merged by time.
//! - `frequencies`: put in where the kernel knew none.
//! - `failed`: why nothing was made of one.
//! - `task_names`: what tasks are called, as events go by.
//! - `lock_waits`: who waits for which lock, as events go by.
//! - `perfetto`: a trace in Perfetto's format.
//! - `parquet`: a trace as a table in Parquet's format.
//! - `phases`: how many CPUs ran a task at a time, and how fast.
//! - `analysis`: what the events say of CPUs, waits and wake-ups.
//! - `analysis_text`: the same for people.
//! - `plot`: the same as pictures.
//! - `viewer`: a trace as a page of HTML.
//! - `decided`: what our own scheduler decided.
//! - `replay`: decisions made by the scheduler's own code, compiled for the host.
//! - `weighed`: what decisions of mode auto were made by, put together from events.
//! - `what_if`: the same decisions with other values of knobs.
//! - `comparison`: the same of two traces, with the change.

pub mod analysis;
mod analysis_text;
pub mod comparison;
mod decided;
mod failed;
pub mod flight;
pub mod format;
pub mod frequencies;
mod kinds;
mod lock_waits;
pub mod parquet;
pub mod perfetto;
pub mod phases;
pub mod plot;
pub mod reader;
pub mod replay;
pub mod ring;
mod task_names;
pub mod trigger;
pub mod viewer;
pub mod weighed;
pub mod what_if;
pub mod writer;

pub use failed::Failed;
pub use kinds::Kind;
