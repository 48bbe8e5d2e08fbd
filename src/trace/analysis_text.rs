// SPDX-License-Identifier: GPL-2.0-only
//! What a trace says, as text for people.

use super::analysis::{Analysis, CpuTimes, Wait};
use super::phases::{Phase, BANDS};
use super::Kind;
use crate::foreign::Foreign;
use crate::units::time;
use hdrhistogram::Histogram;
use std::fmt::{self, Display, Formatter};

/// Who is shown of those that ran while a task waited.
const SHOWN: usize = 4;

pub(super) fn share(part: u64, all: u64) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}

fn waits(f: &mut Formatter, what: &str, waits: &Histogram<u64>) -> fmt::Result {
    if waits.is_empty() {
        return writeln!(f, "  {what:<12} none");
    }
    let at = |share| time(waits.value_at_quantile(share));
    writeln!(
        f,
        "  {what:<12} {} waits: median {}, p90 {}, p99 {}, longest {}",
        waits.len(),
        at(0.5),
        at(0.9),
        at(0.99),
        time(waits.max())
    )
}

/// The bounds of a band of speed.
pub(super) fn band_text(band: usize) -> String {
    let bound = |at: usize| 100.0 * at as f64 / BANDS as f64;
    format!("{:>4.1} .. {:>5.1}%", bound(band), bound(band + 1))
}

/// A task's name, or what there is instead, and its PID.
fn task(pid: u32, name: &Foreign) -> String {
    match (pid, name.is_empty()) {
        (0, _) => "idle".into(),
        (_, true) => format!("task {pid}"),
        _ => format!("{name} ({pid})"),
    }
}

impl Analysis {
    fn line(f: &mut Formatter, id: &str, cpu: &CpuTimes, elapsed: u64) -> fmt::Result {
        write!(
            f,
            "  {id:<5} {:>5.1}% busy {:>5.1}% idle",
            share(cpu.busy, elapsed),
            share(cpu.idle, elapsed)
        )?;
        if cpu.unknown > 0 {
            write!(f, " {:>5.1}% unknown", share(cpu.unknown, elapsed))?;
        }
        writeln!(f, "  {} switches, {} wake-ups", cpu.switches, cpu.wakeups)
    }

    fn wait(f: &mut Formatter, wait: &Wait) -> fmt::Result {
        writeln!(
            f,
            "  {} waited {} on CPU {} after it was {}, from {} on",
            task(wait.pid, &wait.name),
            time(wait.ns),
            wait.cpu,
            if wait.woken { "woken" } else { "preempted" },
            time(wait.at)
        )?;
        for (pid, name, ns) in wait.meanwhile.iter().take(SHOWN) {
            writeln!(f, "    {} ran {}", task(*pid, name), time(*ns))?;
        }
        let others = wait.meanwhile.len().saturating_sub(SHOWN);
        if others > 0 {
            writeln!(f, "    and {others} others")?;
        }
        if wait.meanwhile.is_empty() {
            writeln!(f, "    nobody ran there meanwhile")?;
        }
        Ok(())
    }

    /// What our own scheduler decided, where it was in charge.
    fn decided(&self, f: &mut Formatter) -> fmt::Result {
        let decisions = &self.decisions;
        if decisions.places > 0 {
            writeln!(f, "\nPlacements")?;
            writeln!(
                f,
                "  {} tasks were placed by the mode, of which",
                decisions.places
            )?;
        }
        for (what, count) in decisions.outcomes() {
            let share = share(count, decisions.places);
            writeln!(f, "  {count:>8} ({share:.1}%) {what}")?;
        }
        if self.count(Kind::LockWait) > 0 {
            writeln!(f, "\nWaits for locks")?;
            waits(f, "got it", &decisions.lock_waits)?;
            let [boosts, inversions] = [Kind::Boost, Kind::Inversion].map(|kind| self.count(kind));
            writeln!(
                f,
                "  {} ended without the lock, {inversions} were priority inversions; {boosts} boosts of holders",
                decisions.left
            )?;
        }
        Ok(())
    }

    /// Sequential and parallel phases, with the speeds of those that ran a task.
    fn phases(&self, f: &mut Formatter) -> fmt::Result {
        if !self.traces(Kind::Switch) {
            return Ok(());
        }
        let phases = &self.phases;
        let line = |f: &mut Formatter, ns, what| {
            writeln!(f, "  {:>5.1}% of the time {what}", share(ns, self.elapsed))
        };
        writeln!(f, "\nPhases")?;
        line(f, phases.idle, "no CPU ran a task")?;
        for (phase, what) in [
            (Phase::Sequential, "one CPU did (sequential)"),
            (Phase::Parallel, "several did (parallel)"),
        ] {
            line(f, phases.time[phase as usize], what)?;
            let by_speed = &phases.by_speed[phase as usize];
            let all = by_speed.iter().sum();
            for (band, ns) in by_speed[..BANDS].iter().enumerate().rev() {
                if self.speeds_known && *ns > 0 {
                    let share = share(*ns, all);
                    writeln!(f, "         {share:>5.1}% of that at {}", band_text(band))?;
                }
            }
        }
        match phases.unknown {
            0 => Ok(()),
            ns => line(f, ns, "that is not known"),
        }
    }

    /// Whether such events were asked for.
    fn traces(&self, kind: Kind) -> bool {
        self.head.wanted.iter().any(|name| name == kind.name())
    }

    /// How often this kind of event is in the trace.
    pub(super) fn count(&self, kind: Kind) -> u64 {
        self.kinds.get(&(kind as u16)).copied().unwrap_or(0)
    }

    /// How much of what it is, as a line.
    pub(super) fn title(&self) -> String {
        let scheduler = match &self.head.scheduler {
            Some(name) => format!("the scheduler {name}"),
            None => "the kernel's own scheduler".into(),
        };
        let elapsed = time(self.elapsed);
        format!("{} events in {elapsed} under {scheduler}", self.events)
    }

    /// What its figures do not know, a line each.
    pub(super) fn caveats(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.lost > 0 {
            lines.push(format!("{} events are missing: see --buffer", self.lost));
        }
        if self.overwritten > 0 {
            let over = self.overwritten;
            lines.push(format!("{over} older events made room for these"));
        }
        if !self.is_whole {
            let line = "the file has no end: its recorder was killed, or the disk was full";
            lines.push(line.into());
        }
        for (kind, what) in [
            (Kind::Switch, "how CPUs spent their time"),
            (Kind::Wakeup, "waits after wake-ups"),
        ] {
            if !self.traces(kind) {
                let kind = kind.name();
                lines.push(format!("without events `{kind}`: {what} is not known"));
            }
        }
        lines
    }

    /// Of all CPUs.
    pub(super) fn all_cpus(&self) -> CpuTimes {
        let mut all = CpuTimes::default();
        for cpu in self.cpus.values() {
            all.busy = all.busy.saturating_add(cpu.busy);
            all.idle = all.idle.saturating_add(cpu.idle);
            all.unknown = all.unknown.saturating_add(cpu.unknown);
            all.switches += cpu.switches;
            all.wakeups += cpu.wakeups;
        }
        all
    }
}

impl Display for Analysis {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        writeln!(f, "{}", self.title())?;
        for caveat in self.caveats() {
            writeln!(f, "{caveat}")?;
        }
        writeln!(f, "\nCPUs")?;
        for (id, cpu) in &self.cpus {
            Self::line(f, &id.to_string(), cpu, self.elapsed)?;
        }
        let elapsed = self.elapsed.saturating_mul(self.cpus.len() as u64);
        Self::line(f, "all", &self.all_cpus(), elapsed)?;
        self.phases(f)?;
        writeln!(f, "\nWaits for a CPU")?;
        waits(f, "woken", &self.wake_waits)?;
        waits(f, "preempted", &self.preempted_waits)?;
        if self.uncounted > 0 {
            let n = self.uncounted;
            writeln!(
                f,
                "  {n} were not counted, since events are missing in them"
            )?;
        }
        self.decided(f)?;
        writeln!(f, "\nTasks")?;
        writeln!(
            f,
            "  {} forks, {} exec, {} exits, {} migrations",
            self.count(Kind::Fork),
            self.count(Kind::Exec),
            self.count(Kind::Exit),
            self.count(Kind::Migrate)
        )?;
        writeln!(f, "\nSpeed of the CPUs that tasks were woken for")?;
        if self.speeds_ticked {
            let what = "as the scheduler took them to be at its ticks; a CPU that is idle keeps its last one";
            writeln!(f, "  {what}")?;
        }
        if self.speeds_known {
            let all = self.by_speed.iter().sum();
            for (eighth, n) in self.by_speed.iter().enumerate().rev() {
                if *n > 0 {
                    let share = share(*n, all);
                    writeln!(f, "  {}  {n} wake-ups ({share:.1}%)", band_text(eighth))?;
                }
            }
            writeln!(
                f,
                "  frequency inversions: {} wake-ups for a slower CPU than one that went idle within 1 ms",
                self.inversions
            )?;
        } else {
            writeln!(f, "  not known: capacities are equal, no frequency changed")?;
        }
        writeln!(f, "\nLongest waits")?;
        self.longest.iter().try_for_each(|wait| Self::wait(f, wait))
    }
}
