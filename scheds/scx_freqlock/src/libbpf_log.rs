// SPDX-License-Identifier: GPL-2.0-only
//! What libbpf says: kept quiet, unless asked for, and searched for the cause
//! when a load fails.

use freqlock::report;
use libbpf_rs::PrintLevel;
use log::debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Takes what libbpf prints from now on, all of it if `verbose`.
pub fn install(verbose: bool) {
    warnings().clear();
    let level = if verbose {
        PrintLevel::Debug
    } else {
        PrintLevel::Warn
    };
    libbpf_rs::set_print(Some((level, |level, message| {
        debug!("{}", message.trim_end());
        if level == PrintLevel::Warn {
            warnings().push(message);
        }
    })));
}

/// What the warnings since [`install`] say about a load that failed.
pub fn failure() -> Option<String> {
    report::load_failure(&warnings())
}

fn warnings() -> MutexGuard<'static, Vec<String>> {
    WARNINGS.lock().unwrap_or_else(PoisonError::into_inner)
}
