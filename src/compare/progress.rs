// SPDX-License-Identifier: GPL-2.0-only
//! What is going on, on standard error: a bar with the time that is left on a
//! terminal, a line for each run elsewhere.

use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::engine::Watch;
use super::plan::Plan;
use super::record::{Outcome, Run};
use crate::output;

pub struct Progress {
    bar: ProgressBar,
    begin: Instant,
    done: u64,
    total: u64,
    budget: Option<Duration>,
    now: String,
}

impl Progress {
    pub fn on_stderr(plan: &Plan) -> Self {
        let total = plan.total_runs();
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
            budget: plan.budget,
            now: String::new(),
        }
    }

    fn say(&self, line: String) {
        if self.bar.is_hidden() {
            output::say(line);
        } else {
            self.bar.println(line);
        }
    }

    fn left(&self) -> Option<String> {
        let left = left(self.begin.elapsed(), self.done, self.total, self.budget)?;
        Some(format!(
            "{} left",
            HumanDuration(Duration::from_secs(left.as_secs()))
        ))
    }
}

/// As far as the runs so far tell, and the budget allows.
fn left(elapsed: Duration, done: u64, total: u64, budget: Option<Duration>) -> Option<Duration> {
    let each = elapsed.div_f64((done > 0).then_some(done as f64)?);
    let all = each.mul_f64((total - done) as f64);
    Some(match budget {
        Some(budget) => all.min(budget.saturating_sub(elapsed).max(each)),
        None => all,
    })
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

    fn finish(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_bounded_by_the_budget() {
        let seconds = Duration::from_secs;
        assert_eq!(left(seconds(9), 0, 10, None), None);
        assert_eq!(left(seconds(10), 2, 10, None), Some(seconds(40)));
        assert_eq!(
            left(seconds(10), 2, 10, Some(seconds(600))),
            Some(seconds(40))
        );
        assert_eq!(
            left(seconds(10), 2, 10, Some(seconds(30))),
            Some(seconds(20))
        );
        // The last round may take longer than it should.
        assert_eq!(
            left(seconds(40), 8, 10, Some(seconds(30))),
            Some(seconds(5))
        );
    }
}
