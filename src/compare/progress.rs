// SPDX-License-Identifier: GPL-2.0-only
//! What is going on, on standard error: a bar with the time that is left on a
//! terminal, a line for each run elsewhere.

use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::engine::Watch;
use super::record::{Outcome, Run};

pub struct Progress {
    bar: ProgressBar,
    begin: Instant,
    done: u64,
    total: u64,
    now: String,
}

impl Progress {
    pub fn on_stderr(total: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        // The template is a constant; were it wrong, the default one would do.
        if let Ok(style) = ProgressStyle::with_template("[{pos}/{len}] {wide_bar} {msg}") {
            bar.set_style(style);
        }
        Self {
            bar,
            begin: Instant::now(),
            done: 0,
            total,
            now: String::new(),
        }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn say(&self, line: String) {
        if self.bar.is_hidden() {
            eprintln!("{line}");
        } else {
            self.bar.println(line);
        }
    }

    /// As far as the runs so far tell.
    fn left(&self) -> Option<String> {
        let each = self
            .begin
            .elapsed()
            .div_f64((self.done > 0).then_some(self.done as f64)?);
        let left = each.mul_f64((self.total - self.done) as f64);
        Some(format!(
            "{} left",
            HumanDuration(Duration::from_secs(left.as_secs()))
        ))
    }
}

impl Watch for Progress {
    fn begin(&mut self, round: u32, rounds: u32, workload: &str, scheduler: &str) {
        self.now = format!("round {}/{rounds}: {workload} under {scheduler}", round + 1);
        let left = self
            .left()
            .map(|left| format!(", {left}"))
            .unwrap_or_default();
        self.bar.set_message(format!("{}{left}", self.now));
    }

    fn end(&mut self, run: &Run) {
        self.done += 1;
        self.bar.inc(1);
        match &run.outcome {
            Outcome::Failed(reason) => self.say(format!("{}: failed: {reason}", self.now)),
            Outcome::Metrics(_) if self.bar.is_hidden() => self.say(format!(
                "[{}/{}] {}: {:.1} s{}",
                self.done,
                self.total,
                self.now,
                run.took_s,
                self.left()
                    .map(|left| format!(", {left}"))
                    .unwrap_or_default()
            )),
            Outcome::Metrics(_) => {}
        }
    }
}
