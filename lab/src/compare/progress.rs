// SPDX-License-Identifier: GPL-2.0-only
//! What is going on, on standard error: a bar with the time that is left on a
//! terminal, a line for each run elsewhere, and for each simulated one.

use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::plan::Plan;
use super::runs::{Outcome, Run, Watch};
use freqlock::output;
use freqlock::units::time;

pub struct Progress {
    bar: ProgressBar,
    begin: Instant,
    done: u64,
    total: u64,
    /// Runs of the same kind that come after these.
    later: u64,
    budget: Option<Duration>,
    rounds: u32,
    /// Whose clock the times of runs are by.
    clock: &'static str,
}

impl Progress {
    /// `later` more runs come after those of the plan.
    pub fn on_simulated(plan: &Plan, later: u64) -> Self {
        Self {
            later,
            clock: " of the machine's time",
            ..Self::on_stderr(plan)
        }
    }

    pub fn on_stderr(plan: &Plan) -> Self {
        Self::of(plan.total_runs(), plan.rounds(), plan.budget)
    }

    /// Of so many runs, whatever they are part of.
    pub fn of(total: u64, rounds: u32, budget: Option<Duration>) -> Self {
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
            later: 0,
            budget,
            rounds,
            clock: "",
        }
    }

    fn say(&self, line: String) {
        if self.bar.is_hidden() {
            output::say(line);
        } else {
            self.bar.println(line);
        }
    }

    /// To be added to a line; empty as long as nothing is known.
    fn left(&self) -> String {
        let all = self.total + self.later;
        left(self.begin.elapsed(), self.done, all, self.budget)
            .map(|left| Duration::from_secs(left.as_secs()))
            .map(|left| format!(", {} left", HumanDuration(left)))
            .unwrap_or_default()
    }
}

fn name(round: u32, rounds: u32, workload: &str, scheduler: &str) -> String {
    format!("round {}/{rounds}: {workload} under {scheduler}", round + 1)
}

/// What is said of a run that is over. Others may have begun since it did: simulated
/// machines run side by side.
fn line(run: &Run, rounds: u32, clock: &str) -> String {
    let name = name(run.round, rounds, &run.workload, &run.scheduler);
    match &run.outcome {
        Outcome::Failed(reason) => format!("{name}: failed: {reason}"),
        Outcome::Metrics(_) => {
            let took = time((run.took_s * 1e9) as u64);
            format!("{name}: {took}{clock}")
        }
    }
}

/// As far as the runs so far show, and the budget allows.
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
        let name = name(round, rounds, workload, scheduler);
        self.bar.set_message(format!("{name}{}", self.left()));
    }

    fn end(&mut self, run: &Run) {
        self.done += 1;
        self.bar.inc(1);
        let line = line(run, self.rounds, self.clock);
        if self.bar.is_hidden() {
            let left = self.left();
            self.say(format!("[{}/{}] {line}{left}", self.done, self.total));
        } else if !self.clock.is_empty() || matches!(run.outcome, Outcome::Failed(_)) {
            // What a simulated run takes by its own clock, the bar cannot tell.
            self.say(line);
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
    fn a_run_that_is_over_goes_by_its_own_name() {
        let mut run = Run {
            workload: "kbuild".into(),
            scheduler: "nest".into(),
            round: 2,
            warmup: false,
            ops: None,
            start_s: 0.0,
            took_s: 1.5,
            outcome: Outcome::Metrics(Vec::new()),
        };
        assert_eq!(
            line(&run, 4, " of the machine's time"),
            "round 3/4: kbuild under nest: 1.50 s of the machine's time"
        );
        run.outcome = Outcome::Failed("no result".into());
        assert_eq!(
            line(&run, 4, ""),
            "round 3/4: kbuild under nest: failed: no result"
        );
    }

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
