// SPDX-License-Identifier: GPL-2.0-only
//! Signals to the scheduler: SIGINT and SIGTERM end it, SIGHUP has it read its file of
//! contexts again.

use anyhow::{Context, Result};
use crossbeam::channel::{bounded, Receiver};
use nix::sys::signal::{SigSet, Signal};
use std::thread;

/// Each hears of its signals; a second one while the first waits adds nothing.
pub struct Signals {
    pub end: Receiver<()>,
    pub reload: Receiver<()>,
}

impl Signals {
    /// Takes these signals from now on. To be called before there are other threads: those
    /// that are made later leave the signals to the one that waits for them here.
    pub fn take() -> Result<Self> {
        let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]
            .into_iter()
            .collect();
        signals.thread_block().context("cannot handle signals")?;
        let (to_end, end) = bounded(1);
        let (to_reload, reload) = bounded(1);
        thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                while let Ok(signal) = signals.wait() {
                    let to = match signal {
                        Signal::SIGHUP => &to_reload,
                        _ => &to_end,
                    };
                    // Full is as good.
                    let _ = to.try_send(());
                }
            })?;
        Ok(Self { end, reload })
    }
}
