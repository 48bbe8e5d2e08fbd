// SPDX-License-Identifier: GPL-2.0-only
//! The figures of an observation, for JSON (serde) and as text (Display).

use crate::foreign::Foreign;
use std::fmt;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::raw::text;

use super::observer::{Forks, Observer, Usage};

/// What was seen of one tree of tasks.
#[derive(Debug, Deserialize, Serialize)]
pub struct Report {
    /// From the first fork to the last event.
    pub elapsed_ms: f64,
    /// Those online.
    pub cpus: usize,
    /// Events that were read.
    pub events: u64,
    /// Lost for want of room.
    pub dropped: u64,
    /// Tasks that ran without having been seen to become runnable.
    pub unexplained: u64,
    /// A CPU went offline or came online: idle time is not known then.
    pub cpus_changed: bool,
    /// False if anything was lost or CPUs changed: figures are then not to be used.
    pub valid: bool,
    /// Where tasks first ran after a fork or wake-up.
    pub started: Started,
    /// What became of forks.
    pub forks: ForkFigures,
    /// Times that a task went to another CPU.
    pub migrations: u64,
    /// From runnable to running, us.
    pub wait_us: Waits,
    /// Time on CPUs, and idle time.
    pub cpu_time: CpuTime,
    /// Idle CPUs beside waiting tasks.
    pub work_conservation: WorkConservation,
    /// None where the kernel lacks the hook.
    pub mutexes: Option<Mutexes>,
}

/// Mutexes of glibc whose holder is known, as the mutexes themselves show.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Mutexes {
    /// Times when a task went to sleep for one.
    pub waits: u64,
    /// Times when a holder lost its CPU while somebody slept for its mutex.
    pub holders_preempted: u64,
}

/// Forks and wake-ups, each counted on the CPU on which the task then ran.
#[derive(Debug, Deserialize, Serialize)]
pub struct Started {
    /// Forks, without that of the tree's first task.
    pub forks: u64,
    /// Wake-ups that led to a run.
    pub wakeups: u64,
    /// By CPU id, those online.
    pub per_cpu: Vec<CpuStarted>,
    /// Share of the CPU with most of them, 0..=1.
    pub busiest_one: f64,
    /// Share of the two CPUs with most of them.
    pub busiest_two: f64,
}

/// How many tasks began to run on a CPU.
#[derive(Debug, Deserialize, Serialize)]
pub struct CpuStarted {
    /// Its id.
    pub cpu: usize,
    /// Forks and wake-ups.
    pub started: u64,
}

/// Where children went, and how soon.
#[derive(Debug, Deserialize, Serialize)]
pub struct ForkFigures {
    /// Children that ran, without the tree's first task.
    pub all: u64,
    /// Share of these that first ran where the parent was, 0..=1.
    pub on_parent_cpu: f64,
    /// Those whose parent was the only runnable task of its CPU.
    pub parent_alone: u64,
    /// The share of these that first ran there.
    pub parent_alone_on_parent_cpu: f64,
    /// From the fork until the child first ran.
    pub first_run_us: Quantiles,
    /// From the fork until a child that still waited was migrated to another CPU.
    pub migrated_us: Quantiles,
    /// From the migration of such a child until it ran.
    pub migrated_to_run_us: Quantiles,
}

/// Waits by what came before them.
#[derive(Debug, Deserialize, Serialize)]
pub struct Waits {
    /// From wake-up until the task ran.
    pub woken: Quantiles,
    /// From preemption, or the end of a slice, until the task ran again.
    pub preempted: Quantiles,
    /// From the wake-up of a task until the idle CPU that it was given runs
    /// it: no scheduler is faster than the machine here, and a virtual CPU
    /// that its host does not run is slow to answer.
    pub answer: Quantiles,
}

/// In microseconds.
#[derive(Debug, Deserialize, Serialize)]
pub struct Quantiles {
    /// How many values there are; with none the others are 0.
    pub count: u64,
    /// The median, us.
    pub p50: f64,
    /// The 99th percentile, us.
    pub p99: f64,
    /// The 99.9th percentile, us.
    pub p999: f64,
    /// The longest, us.
    pub max: f64,
}

/// Where CPU time went.
#[derive(Debug, Deserialize, Serialize)]
pub struct CpuTime {
    /// On CPUs, of all tasks of the tree.
    pub total_ms: f64,
    /// Of all CPU time, 0..=1.
    pub idle_share: f64,
    /// Those that ended and those that had not.
    pub tasks_seen: u64,
    /// Those with the most CPU time.
    pub tasks: Vec<TaskTime>,
}

/// CPU time of one task.
#[derive(Debug, Deserialize, Serialize)]
pub struct TaskTime {
    /// Which task.
    pub pid: u32,
    /// Empty for a task that has not ended.
    pub comm: Foreign,
    /// Time on a CPU.
    pub cpu_ms: f64,
    /// Time runnable and not on a CPU.
    pub waited_ms: f64,
}

/// CPU time that was idle while an eligible task of the tree had been waiting
/// for longer than a millisecond (see `conserve`).
#[derive(Debug, Deserialize, Serialize)]
pub struct WorkConservation {
    /// Waits of more than a millisecond.
    pub late_waits: u64,
    /// Idle CPU time beside such waits, of all CPUs.
    pub idle_while_waiting_ms: f64,
    /// That, of all CPU time, 0..=1.
    pub share: f64,
    /// Without the waits of tasks that had been given an idle CPU at once: how
    /// soon that answers is the machine's part.
    pub share_unplaced: f64,
}

const NS_PER_MS: f64 = 1e6;
const NS_PER_US: f64 = 1e3;

/// 0 of nothing is 0.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Share of the `n` CPUs on which most tasks started.
fn busiest(per_cpu: &[CpuStarted], n: usize) -> f64 {
    let mut counts: Vec<u64> = per_cpu.iter().map(|cpu| cpu.started).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    share(counts.iter().take(n).sum(), counts.iter().sum())
}

impl Quantiles {
    fn of(h: &Histogram<u64>) -> Self {
        let at = |q| h.value_at_quantile(q) as f64 / NS_PER_US;
        Self {
            count: h.len(),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: h.max() as f64 / NS_PER_US,
        }
    }
}

impl From<&Usage> for TaskTime {
    fn from(used: &Usage) -> Self {
        Self {
            pid: used.pid,
            comm: text(&used.comm),
            cpu_ms: used.cpu_ns as f64 / NS_PER_MS,
            waited_ms: used.waited_ns as f64 / NS_PER_MS,
        }
    }
}

impl Report {
    /// `dropped`: events that were lost; `cpus_changed`: not the same CPUs
    /// were online all the time.
    pub fn new(mut observer: Observer, dropped: u64, cpus_changed: bool) -> Self {
        let ended = observer.end();
        let figures = observer.figures;
        let per_cpu: Vec<CpuStarted> = ended
            .started
            .iter()
            .enumerate()
            .filter_map(|(cpu, started)| {
                Some(CpuStarted {
                    cpu,
                    started: (*started)?,
                })
            })
            .collect();
        let capacity_ns = ended.elapsed_ns * per_cpu.len() as u64;
        let on_parent = |forks: Forks| share(forks.on_parent_cpu, forks.all);
        Self {
            elapsed_ms: ended.elapsed_ns as f64 / NS_PER_MS,
            cpus: per_cpu.len(),
            events: figures.events,
            dropped,
            unexplained: figures.unexplained,
            cpus_changed,
            valid: dropped == 0 && figures.unexplained == 0 && !cpus_changed,
            started: Started {
                forks: figures.forks.all,
                wakeups: figures.wakeups,
                busiest_one: busiest(&per_cpu, 1),
                busiest_two: busiest(&per_cpu, 2),
                per_cpu,
            },
            forks: ForkFigures {
                all: figures.forks.all,
                on_parent_cpu: on_parent(figures.forks),
                parent_alone: figures.forks_alone.all,
                parent_alone_on_parent_cpu: on_parent(figures.forks_alone),
                first_run_us: Quantiles::of(&figures.first_run),
                migrated_us: Quantiles::of(&figures.migrated),
                migrated_to_run_us: Quantiles::of(&figures.migrated_to_run),
            },
            migrations: figures.migrations,
            wait_us: Waits {
                woken: Quantiles::of(&figures.wait_woken),
                preempted: Quantiles::of(&figures.wait_preempted),
                answer: Quantiles::of(&figures.answer),
            },
            cpu_time: CpuTime {
                total_ms: figures.cpu_ns as f64 / NS_PER_MS,
                idle_share: share(figures.idle_ns, capacity_ns),
                tasks_seen: figures.finished_tasks + ended.live_tasks,
                tasks: ended.usage.iter().map(TaskTime::from).collect(),
            },
            work_conservation: WorkConservation {
                late_waits: figures.late_waits,
                idle_while_waiting_ms: ended.wasted_ns as f64 / NS_PER_MS,
                share: share(ended.wasted_ns, capacity_ns),
                share_unplaced: share(ended.wasted_unplaced_ns, capacity_ns),
            },
            mutexes: None,
        }
    }
}

/// Tasks named in the text; JSON has more.
const TEXT_TASKS: usize = 8;

fn percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

impl fmt::Display for Quantiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.count == 0 {
            return f.write_str("none");
        }
        write!(
            f,
            "p50 {:.1} us, p99 {:.1} us, p99.9 {:.1} us, max {:.1} us ({})",
            self.p50, self.p99, self.p999, self.max, self.count
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "observed          {:.1} ms on {} CPUs, {} events",
            self.elapsed_ms, self.cpus, self.events
        )?;
        if self.dropped > 0 {
            writeln!(
                f,
                "NOT VALID         {} events were lost: observe a shorter or lighter run",
                self.dropped
            )?;
        }
        if self.unexplained > 0 {
            writeln!(
                f,
                "NOT VALID         {} times a task ran that was not seen to wake up",
                self.unexplained
            )?;
        }
        if self.cpus_changed {
            writeln!(
                f,
                "NOT VALID         CPUs went offline or came online during the run"
            )?;
        }
        writeln!(
            f,
            "started           {} forks, {} wake-ups",
            self.started.forks, self.started.wakeups
        )?;
        write!(f, "  by CPU         ")?;
        for cpu in &self.started.per_cpu {
            write!(f, " {}:{}", cpu.cpu, cpu.started)?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "  busiest CPUs    one {}, two {}",
            percent(self.started.busiest_one),
            percent(self.started.busiest_two)
        )?;
        writeln!(
            f,
            "forks             {} on the parent's CPU; {} of {} whose parent was alone there",
            percent(self.forks.on_parent_cpu),
            percent(self.forks.parent_alone_on_parent_cpu),
            self.forks.parent_alone
        )?;
        writeln!(f, "  first run       {}", self.forks.first_run_us)?;
        writeln!(f, "  migrated        {}", self.forks.migrated_us)?;
        writeln!(f, "migrations        {}", self.migrations)?;
        writeln!(f, "wait, woken       {}", self.wait_us.woken)?;
        writeln!(f, "wait, preempted   {}", self.wait_us.preempted)?;
        writeln!(f, "idle CPUs answer  {}", self.wait_us.answer)?;
        writeln!(
            f,
            "work conservation {} of CPU time idle while a task waited over 1 ms, {} without slow answers ({:.2} ms; {} such waits)",
            percent(self.work_conservation.share),
            percent(self.work_conservation.share_unplaced),
            self.work_conservation.idle_while_waiting_ms,
            self.work_conservation.late_waits
        )?;
        if let Some(mutexes) = self.mutexes {
            writeln!(
                f,
                "mutexes           {} waits; holders preempted meanwhile {} times",
                mutexes.waits, mutexes.holders_preempted
            )?;
        }
        writeln!(
            f,
            "CPU time          {:.1} ms by {} tasks; {} of all CPU time idle",
            self.cpu_time.total_ms,
            self.cpu_time.tasks_seen,
            percent(self.cpu_time.idle_share)
        )?;
        for task in self.cpu_time.tasks.iter().take(TEXT_TASKS) {
            let comm = match task.comm.is_empty() {
                true => &Foreign::from("-"),
                false => &task.comm,
            };
            writeln!(
                f,
                "  {:>7} {:<15} {:>10.1} ms, waited {:.1} ms",
                task.pid, comm, task.cpu_ms, task.waited_ms
            )?;
        }
        Ok(())
    }
}
