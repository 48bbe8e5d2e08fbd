// SPDX-License-Identifier: GPL-2.0-only
//! What the program says.

use std::io::Write;

/// To standard error; what cannot be written there is lost.
pub fn say(what: &str) {
    drop(writeln!(std::io::stderr(), "freqlock-jobserver: {what}"));
}
