// SPDX-License-Identifier: MIT
//! How fast CPUs are now, by the page that scx_freqlock writes (lib/speeds_page.h).
//!
//! The page is mapped once, and the scheduler writes the next one in its place. So nothing is opened later on, when
//! a program may have given up the right to.

use crate::os::{self, Access};
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Where scx_freqlock keeps it, `FL_SPEEDS_PATH`.
pub(crate) const PAGE: &CStr = c"/run/scx_freqlock/speeds";

const MAGIC: u32 = u32::from_ne_bytes(*b"spds");
const VERSION: u32 = 1;
const CPUS: usize = 1024;
const GRACE_NS: u64 = 100_000_000;

/// `struct fl_speeds_page`, which says what each field means.
#[repr(C)]
struct Page {
    magic: AtomicU32,
    version: AtomicU32,
    updated: AtomicU64,
    period: AtomicU64,
    agent: AtomicU32,
    least: AtomicU32,
    most: AtomicU32,
    reserved: [u32; 7],
    speed: [AtomicU16; CPUS],
}

const _: () = assert!(size_of::<Page>() == 64 + 2 * CPUS);

/// The page, mapped for good.
pub(crate) struct Present(&'static Page);

impl Present {
    /// None: there is no page, or none of this version. Allocates nothing.
    pub(crate) fn open(path: &CStr) -> Option<Self> {
        let at = os::map_file(path, size_of::<Page>(), Access::Read)?;
        // SAFETY: as large, never unmapped if it is kept, and any bytes are one; who has the right to
        // make the file shorter, the scheduler, never does.
        let page = unsafe { &*at.cast::<Page>() };
        if (page.magic.load(Relaxed), page.version.load(Relaxed)) != (MAGIC, VERSION) {
            // SAFETY: mapped above, and nobody else has seen it.
            unsafe { os::unmap(ptr::from_ref(page).cast_mut().cast(), size_of::<Page>()) };
            return None;
        }
        Some(Present(page))
    }

    /// Whether somebody writes it.
    pub(crate) fn is_fresh(&self) -> bool {
        let period = self.0.period.load(Relaxed);
        let updated = self.0.updated.load(Relaxed);
        let end = updated.saturating_add(period.saturating_mul(3).saturating_add(GRACE_NS));
        period > 0 && os::coarse_now() < end
    }

    /// Whether a CPU is a fast one at the moment, also where all are about as fast; none: that is not known.
    pub(crate) fn is_big(&self, cpu: usize) -> Option<bool> {
        let speed = u32::from(self.0.speed.get(cpu)?.load(Relaxed));
        if speed == 0 || !self.is_fresh() {
            return None;
        }
        let (least, most) = (self.0.least.load(Relaxed), self.0.most.load(Relaxed));
        Some(are_alike(least, most) || is_nearer_to_most(speed, least, most))
    }
}

/// Speeds vary a little all the time: less than a quarter makes no difference between CPUs.
fn are_alike(least: u32, most: u32) -> bool {
    u64::from(most) * 3 < u64::from(least) * 4
}

/// Nearer to the fastest than to the slowest one.
pub(crate) fn is_nearer_to_most(speed: u32, least: u32, most: u32) -> bool {
    u64::from(speed) * 2 >= u64::from(least) + u64::from(most)
}

#[cfg(test)]
#[path = "present/page_tests.rs"]
pub(crate) mod page_tests;
