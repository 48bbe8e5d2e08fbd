// SPDX-License-Identifier: GPL-2.0-only
//! Follows tasks and CPUs through the events, in the order of the ring: that
//! order is right for each task and each CPU (see bpf/observe.bpf.c), so the
//! states below never have to be undone. Times of different CPUs may be a
//! little out of order; nothing here relies on them.

use std::collections::HashMap;

use hdrhistogram::Histogram;

use super::conserve::{Conservation, Interval, LateWait};
use super::event::{Event, Mask, String16, MASK_WORDS};

/// A task that has waited for longer than this should have had an idle CPU.
pub const GRACE_NS: u64 = 1_000_000;

/// Events of a window are complete when a whole further one has passed.
const WINDOW_NS: u64 = 1_000_000_000;

/// Tasks named in the report, those with the most CPU time.
pub const TOP_TASKS: usize = 64;

/// Why a task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Forked,
    Woken,
    Preempted,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Forked, and not yet woken.
    New,
    Runnable {
        since: u64,
        why: Why,
    },
    Running {
        since: u64,
    },
    Asleep,
}

/// How a task came to be, until it has first run.
#[derive(Clone, Copy, Debug)]
struct Birth {
    time: u64,
    parent_cpu: u16,
    parent_alone: bool,
}

struct Task {
    state: State,
    birth: Option<Birth>,
    /// When it went to another CPU during the present wait.
    migrated_at: Option<u64>,
    /// Allowed now, and allowed as the present wait began.
    mask: Mask,
    mask_at_wait: Mask,
    usage: Usage,
}

/// CPU time of one task.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Which task.
    pub pid: u32,
    /// Zeros for a task that has not ended.
    pub comm: String16,
    /// Time on a CPU.
    pub cpu_ns: u64,
    /// Time runnable and not on a CPU, in waits that are over.
    pub waited_ns: u64,
}

/// Children counted by where they first ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forks {
    /// All that ran.
    pub all: u64,
    /// Those that first ran where their parent was.
    pub on_parent_cpu: u64,
}

impl Forks {
    fn add(&mut self, stayed: bool) {
        self.all += 1;
        self.on_parent_cpu += u64::from(stayed);
    }
}

/// Follows one tree of tasks on the CPUs that are online.
pub struct Observer {
    tasks: HashMap<u32, Task>,
    /// By CPU id; None where the CPU is offline.
    cpus: Vec<Option<Cpu>>,
    conserve: Conservation,
    last_event: u64,
    pub(super) figures: Figures,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    idle_since: Option<u64>,
    started: u64,
}

/// What is added up on the way.
pub(super) struct Figures {
    pub events: u64,
    /// Tasks that ran without having been seen to become runnable: an event
    /// was missed without being counted as lost.
    pub unexplained: u64,
    pub forks: Forks,
    pub forks_alone: Forks,
    pub wakeups: u64,
    pub migrations: u64,
    pub first_run: Histogram<u64>,
    pub migrated: Histogram<u64>,
    pub migrated_to_run: Histogram<u64>,
    pub wait_woken: Histogram<u64>,
    pub wait_preempted: Histogram<u64>,
    pub answer: Histogram<u64>,
    pub late_waits: u64,
    pub idle_ns: u64,
    pub finished: Vec<Usage>,
    pub finished_tasks: u64,
    pub cpu_ns: u64,
    /// First task of the tree: all before it is not part of the observation.
    pub start: Option<u64>,
}

/// Nanoseconds up to an hour, three digits.
fn histogram() -> Histogram<u64> {
    const HOUR_NS: u64 = 3_600_000_000_000;
    Histogram::new_with_bounds(1, HOUR_NS, 3).expect("the bounds are constants and valid")
}

impl Observer {
    /// `online`: ids of the CPUs that are online.
    pub fn new(online: &[usize]) -> Self {
        let ids = online.iter().max().map_or(0, |max| max + 1);
        let mut cpus = vec![None; ids];
        for &cpu in online {
            cpus[cpu] = Some(Cpu::default());
        }
        Self {
            tasks: HashMap::new(),
            cpus,
            conserve: Conservation::new(ids),
            last_event: 0,
            figures: Figures {
                events: 0,
                unexplained: 0,
                forks: Forks::default(),
                forks_alone: Forks::default(),
                wakeups: 0,
                migrations: 0,
                first_run: histogram(),
                migrated: histogram(),
                migrated_to_run: histogram(),
                wait_woken: histogram(),
                wait_preempted: histogram(),
                answer: histogram(),
                late_waits: 0,
                idle_ns: 0,
                finished: Vec::new(),
                finished_tasks: 0,
                cpu_ns: 0,
                start: None,
            },
        }
    }

    /// Takes one event, in the order in which they were sent.
    pub fn feed(&mut self, event: Event) {
        self.figures.events += 1;
        match event {
            Event::Fork {
                time,
                cpu,
                child,
                parent_alone,
                root,
            } => {
                self.tick(time);
                self.forked(time, cpu, child, parent_alone, root);
            }
            Event::Wake { time, pid } => {
                self.tick(time);
                self.woken(time, pid);
            }
            Event::Migrate { time, pid } => {
                self.tick(time);
                self.migrated(time, pid);
            }
            Event::Affinity { pid, word, bits } => {
                if let Some(task) = self.tasks.get_mut(&pid) {
                    task.mask[word] = bits;
                }
            }
            Event::Comm { pid, name } => {
                if let Some(task) = self.tasks.get_mut(&pid) {
                    task.usage.comm = name;
                }
            }
            Event::Switch {
                time,
                cpu,
                prev,
                next,
                prev_runnable,
                prev_dead,
            } => {
                self.tick(time);
                let idle_since = self.cpu_switched(time, cpu, prev, next);
                self.left(time, prev, prev_runnable, prev_dead);
                self.entered(time, cpu, next, idle_since);
            }
        }
    }

    fn forked(&mut self, time: u64, cpu: u16, child: u32, parent_alone: bool, root: bool) {
        if root {
            self.figures.start.get_or_insert(time);
        }
        let birth = (!root).then_some(Birth {
            time,
            parent_cpu: cpu,
            parent_alone,
        });
        self.tasks.insert(
            child,
            Task {
                state: State::New,
                birth,
                migrated_at: None,
                mask: [0; MASK_WORDS],
                mask_at_wait: [0; MASK_WORDS],
                usage: Usage {
                    pid: child,
                    comm: [0; 16],
                    cpu_ns: 0,
                    waited_ns: 0,
                },
            },
        );
    }

    fn woken(&mut self, time: u64, pid: u32) {
        let Some(task) = self.tasks.get_mut(&pid) else {
            return;
        };
        let why = match task.state {
            State::New => Why::Forked,
            State::Asleep => Why::Woken,
            // Woken again before it could sleep: it never left its queue.
            State::Runnable { .. } | State::Running { .. } => return,
        };
        task.state = State::Runnable { since: time, why };
        task.migrated_at = None;
        task.mask_at_wait = task.mask;
    }

    fn migrated(&mut self, time: u64, pid: u32) {
        self.figures.migrations += 1;
        if let Some(task) = self.tasks.get_mut(&pid) {
            // A wake-up that moves a sleeping task comes before its wait.
            if let State::Runnable { since, why } = task.state {
                task.migrated_at = Some(time);
                if why == Why::Forked {
                    let waited = time.saturating_sub(since);
                    self.figures.migrated.saturating_record(waited);
                }
            }
        }
    }

    fn left(&mut self, time: u64, pid: u32, runnable: bool, dead: bool) {
        let Some(task) = self.tasks.get_mut(&pid) else {
            return;
        };
        if let State::Running { since } = task.state {
            let ran = time.saturating_sub(since);
            task.usage.cpu_ns += ran;
            self.figures.cpu_ns += ran;
        }
        if dead {
            self.finished(pid);
        } else if runnable {
            task.state = State::Runnable {
                since: time,
                why: Why::Preempted,
            };
            task.mask_at_wait = task.mask;
        } else {
            task.state = State::Asleep;
        }
    }

    fn finished(&mut self, pid: u32) {
        let Some(task) = self.tasks.remove(&pid) else {
            return;
        };
        self.figures.finished_tasks += 1;
        self.figures.finished.push(task.usage);
        if self.figures.finished.len() >= 2 * TOP_TASKS {
            keep_top(&mut self.figures.finished);
        }
    }

    /// `idle_since`: when the CPU went idle that now runs this task.
    fn entered(&mut self, time: u64, cpu: u16, pid: u32, idle_since: Option<u64>) {
        let Some(task) = self.tasks.get_mut(&pid) else {
            return;
        };
        let state = std::mem::replace(&mut task.state, State::Running { since: time });
        let State::Runnable { since, why } = state else {
            self.figures.unexplained += 1;
            return;
        };
        let waited = time.saturating_sub(since);
        task.usage.waited_ns += waited;
        let idle_at_once =
            idle_since.is_some_and(|idle| idle <= since) && task.migrated_at.is_none();
        let placed = why != Why::Preempted && idle_at_once;
        if waited > GRACE_NS {
            self.figures.late_waits += 1;
            // Affinity that changed while it waited: only CPUs that were
            // allowed before and after are held against the scheduler.
            let mut allowed = task.mask_at_wait;
            for (word, now) in allowed.iter_mut().zip(task.mask) {
                *word &= now;
            }
            let time = Interval {
                start: since + GRACE_NS,
                end: time,
            };
            self.conserve.add_late(LateWait {
                time,
                allowed,
                placed,
            });
        }
        if placed {
            self.figures.answer.saturating_record(waited);
        }
        match (why, task.birth.take()) {
            (Why::Preempted, _) => {
                self.figures.wait_preempted.saturating_record(waited);
                return;
            }
            (Why::Woken, _) => {
                self.figures.wakeups += 1;
                self.figures.wait_woken.saturating_record(waited);
            }
            (Why::Forked, Some(birth)) => {
                let stayed = birth.parent_cpu == cpu;
                self.figures.forks.add(stayed);
                if birth.parent_alone {
                    self.figures.forks_alone.add(stayed);
                }
                self.figures
                    .first_run
                    .saturating_record(time.saturating_sub(birth.time));
                if let Some(migrated) = task.migrated_at {
                    let answered = time.saturating_sub(migrated);
                    self.figures.migrated_to_run.saturating_record(answered);
                }
            }
            // The root: the observer forked it, no task of the tree did.
            (Why::Forked, None) => return,
        }
        if let Some(Some(on)) = self.cpus.get_mut(usize::from(cpu)) {
            on.started += 1;
        }
    }

    /// Returns since when the CPU had been idle, if this ends that.
    fn cpu_switched(&mut self, time: u64, cpu: u16, prev: u32, next: u32) -> Option<u64> {
        let on = self.cpus.get_mut(usize::from(cpu))?.as_mut()?;
        let mut idle_since = None;
        if prev == 0 {
            // What it did before its first switch is of no interest: the
            // command starts after every CPU has switched once.
            idle_since = on.idle_since.take();
            if let Some(start) = idle_since {
                let idle = Interval { start, end: time };
                self.conserve.add_idle(usize::from(cpu), idle);
                let counted = start.max(self.figures.start.unwrap_or(time));
                self.figures.idle_ns += time.saturating_sub(counted);
            }
        }
        if next == 0 {
            on.idle_since = Some(time);
        }
        idle_since
    }

    /// Time has come this far: closes the windows that are complete.
    fn tick(&mut self, time: u64) {
        if self.last_event == 0 {
            self.conserve.close(time, &[], &[]);
        }
        self.last_event = self.last_event.max(time);
        while self.last_event >= self.conserve.closed() + 2 * WINDOW_NS {
            self.close_window(self.conserve.closed() + WINDOW_NS);
        }
    }

    fn close_window(&mut self, end: u64) {
        let idle: Vec<(usize, u64)> = self
            .cpus
            .iter()
            .enumerate()
            .filter_map(|(id, cpu)| Some((id, (*cpu)?.idle_since?)))
            .collect();
        let late: Vec<LateWait> = self
            .tasks
            .values()
            .filter_map(|task| match task.state {
                State::Runnable { since, .. } if since + GRACE_NS < end => Some(LateWait {
                    time: Interval {
                        start: since + GRACE_NS,
                        end: u64::MAX,
                    },
                    allowed: task.mask_at_wait,
                    placed: false,
                }),
                _ => None,
            })
            .collect();
        self.conserve.close(end, &idle, &late);
    }

    /// Nothing more comes. Tasks that still run are counted up to the last event.
    pub(super) fn end(&mut self) -> Ended {
        self.close_window(self.last_event);
        let start = self.figures.start.unwrap_or(self.last_event);
        for cpu in self.cpus.iter().flatten() {
            if let Some(since) = cpu.idle_since {
                self.figures.idle_ns += self.last_event.saturating_sub(since.max(start));
            }
        }
        let mut usage = std::mem::take(&mut self.figures.finished);
        for task in self.tasks.values() {
            let mut used = task.usage;
            if let State::Running { since } = task.state {
                let ran = self.last_event.saturating_sub(since);
                used.cpu_ns += ran;
                self.figures.cpu_ns += ran;
            }
            usage.push(used);
        }
        keep_top(&mut usage);
        Ended {
            elapsed_ns: self.last_event.saturating_sub(start),
            wasted_ns: self.conserve.wasted(),
            wasted_unplaced_ns: self.conserve.wasted_unplaced(),
            started: self
                .cpus
                .iter()
                .map(|cpu| cpu.map(|on| on.started))
                .collect(),
            usage,
            live_tasks: self.tasks.len() as u64,
        }
    }
}

/// What is known at the end only.
pub(super) struct Ended {
    pub elapsed_ns: u64,
    pub wasted_ns: u64,
    pub wasted_unplaced_ns: u64,
    /// By CPU id; None where the CPU is offline.
    pub started: Vec<Option<u64>>,
    pub usage: Vec<Usage>,
    pub live_tasks: u64,
}

fn keep_top(usage: &mut Vec<Usage>) {
    usage.sort_by_key(|used| std::cmp::Reverse(used.cpu_ns));
    usage.truncate(TOP_TASKS);
}
