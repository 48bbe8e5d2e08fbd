// SPDX-License-Identifier: GPL-2.0-only
//! What the decision about a queued task is made by, as far as user space knows it: the candidates
//! that bpf/place.bpf.c would find, and what is known of their CPUs. docs/LAB.md says what is not.

use crate::choice::{Chooser, Inputs};
use crate::watch::{Cpu, Task, Watch};
use freqlock::topology::Layout;
use freqlock::trace::format::{DecidesBy, Place};
use freqlock::trace::replay::{self, abi};
use std::collections::{BTreeMap, HashMap};

/// Of enum auto_why, bpf/decision.bpf.h.
const LOCAL: u8 = 0;
const PREV: u8 = 1;
const WARM: u8 = 3;
const FAST: u8 = 4;
const FREE: u8 = 5;

/// Of the recency model, enum fl_freq_source.
const RECENCY: u32 = freqlock::intf::fl_freq_source_FL_FREQ_recency;
/// bpf/policy/speed.h: SPEED_ONE.
const FULL: u32 = freqlock::intf::fl_consts_FL_FULL_SPEED << 10;
/// bpf/policy/learn.h: LEARN_UNKNOWN_BURST_NS.
const UNKNOWN_BURST: u64 = 1_000_000;
/// How long work and idle time of a CPU are taken for one of each, ns.
const STEP: u64 = 1_000_000;
/// Of more tasks than these nothing is kept: most of them are gone.
const MOST_TASKS: usize = 16384;

/// A task that is placed.
pub struct Queued<'a> {
    pub pid: u32,
    /// Where it ran before.
    pub prev_cpu: usize,
    /// Whether it may use a CPU.
    pub allowed: &'a dyn Fn(usize) -> bool,
}

/// What was learned of a task.
#[derive(Clone, Copy, Default)]
struct Learned {
    bursts: u32,
    /// Work, ns at full speed; 0 is not known.
    burst: u64,
    /// How long it sleeps, ns; 0 is not known.
    away: u64,
}

/// Speed of a CPU as of `at`, when it had run tasks for `busy` ns in all.
#[derive(Clone, Copy)]
struct Speed {
    speed: u32,
    at: u64,
    busy: u64,
}

/// A task that was sent to a CPU and does not run yet.
struct Sent {
    pid: u32,
    cpu: usize,
    at: u64,
    burst: u64,
}

/// All of it.
pub struct Gatherer {
    layout: Layout,
    /// By CPU, nearest first.
    orders: Vec<Vec<usize>>,
    speeds: Vec<Speed>,
    learned: HashMap<u32, Learned>,
    sent: Vec<Sent>,
    slice: u64,
    /// This process: where it runs, a CPU is as good as idle.
    own: u32,
}

/// What decisions on this machine are made by that is the same for all.
pub fn decides_by(layout: &Layout, knobs: BTreeMap<String, u64>) -> DecidesBy {
    let place = |topo: &freqlock::intf::cpu_topo| Place {
        core: topo.core,
        llc: topo.llc,
        node: topo.node,
        capacity: topo.capacity,
        sibling: u16::try_from(topo.sibling).ok(),
    };
    DecidesBy {
        knobs,
        source: RECENCY,
        smt: layout.smt,
        turbo: vec![FULL >> 10],
        places: layout.cpus.iter().map(place).collect(),
    }
}

/// As many bits as a trace has for it.
fn word(ns: u64) -> u32 {
    u32::try_from(ns).unwrap_or(u32::MAX)
}

impl Gatherer {
    /// `scan`: how many CPUs are looked at; `slice`: how long a task runs where others wait, ns.
    pub fn new(layout: Layout, scan: usize, slice: u64, own: u32, now: u64) -> Self {
        let order = |cpu| {
            let order = layout.order(cpu);
            let near = order.cpu.iter().take(order.nr as usize);
            near.take(scan).map(|&cpu| usize::from(cpu)).collect()
        };
        let nr = layout.cpus.len();
        let speed = Speed {
            speed: FULL,
            at: now,
            busy: 0,
        };
        Self {
            orders: (0..nr).map(order).collect(),
            speeds: vec![speed; nr],
            learned: HashMap::new(),
            sent: Vec::new(),
            layout,
            slice,
            own,
        }
    }

    /// How many CPUs there are.
    pub fn present(&self) -> usize {
        self.layout.present().count()
    }

    /// What a decision about this task is made by.
    pub fn inputs(&mut self, task: &Queued, watch: &Watch, chooser: &Chooser, now: u64) -> Inputs {
        self.sent.retain(|sent| {
            watch.task(sent.pid).began_at < sent.at && now - sent.at < 1_000_000_000
        });
        for cpu in 0..self.speeds.len() {
            self.roll(cpu, &watch.cpu(cpu), chooser, now);
        }
        let seen = watch.task(task.pid);
        let learned = self.learn(task, &seen, watch, chooser, now);
        let burst = match learned.burst {
            0 => UNKNOWN_BURST,
            // It did not sleep since: what is left of it.
            burst if seen.ran > 0 && seen.ran < burst => burst - seen.ran,
            burst => burst,
        };
        let soon = burst + learned.away;
        let wakes = seen.ran == 0;
        let from_task = wakes && seen.from_task;
        let this_cpu = match from_task {
            true => seen.waker as usize,
            false => task.prev_cpu,
        };

        let idle = self.idle(task, watch, now);
        let any_idle = !idle.is_empty();
        let near = idle.first().map(|c| usize::from(c.cpu));
        let mut candidates = pick(&idle, soon, chooser, &self.layout);
        if from_task && (task.allowed)(this_cpu) {
            candidates.push(self.candidate(this_cpu, LOCAL, false, watch, now));
        }
        if task.prev_cpu != this_cpu || !from_task {
            let idle = near == Some(task.prev_cpu);
            candidates.push(self.candidate(task.prev_cpu, PREV, idle, watch, now));
        }
        let flag = |is: bool, flag| if is { flag } else { 0 };
        let flags = flag(wakes && seen.fork, abi::rec_decides_REC_DECIDES_FORK)
            | flag(from_task, abi::rec_decides_REC_DECIDES_FROM_TASK)
            | flag(any_idle, abi::rec_decides_REC_DECIDES_ANY_IDLE);
        // SAFETY: integers.
        let mut decision: abi::rec_decision = unsafe { std::mem::zeroed() };
        decision.prev_cpu = task.prev_cpu as u16;
        decision.this_cpu = this_cpu as u16;
        decision.flags = flags as u16;
        decision.candidates = candidates.len() as u16;
        decision.burst = word(burst);
        decision.soon = word(soon);
        decision.leave = u32::MAX;
        Inputs {
            at: now,
            pid: task.pid,
            decision,
            candidates,
        }
    }

    /// The task was sent there.
    pub fn sent(&mut self, pid: u32, cpu: usize, inputs: &Inputs) {
        self.sent.push(Sent {
            pid,
            cpu,
            at: inputs.at,
            burst: inputs.decision.burst.into(),
        });
    }

    /// Takes in what the CPU did since that was done.
    fn roll(&mut self, cpu: usize, seen: &Cpu, chooser: &Chooser, now: u64) {
        let speed = &mut self.speeds[cpu];
        let past = now.saturating_sub(speed.at);
        if past < STEP {
            return;
        }
        let total = total_busy(seen, now);
        let busy = total.saturating_sub(speed.busy).min(past);
        *speed = Speed {
            speed: (chooser.machine).speed(&chooser.knobs, speed.speed, busy, past - busy),
            at: now,
            busy: total,
        };
    }

    fn learn(
        &mut self,
        task: &Queued,
        seen: &Task,
        watch: &Watch,
        chooser: &Chooser,
        now: u64,
    ) -> Learned {
        if self.learned.len() > MOST_TASKS {
            self.learned.clear();
        }
        let mut learned = self.learned.get(&task.pid).copied().unwrap_or_default();
        if learned.bursts != seen.bursts {
            let at = self.candidate(task.prev_cpu, PREV, true, watch, now);
            let speed = u64::from(chooser.machine.idle(&chooser.knobs, &at).speed);
            learned = Learned {
                bursts: seen.bursts,
                burst: replay::average(learned.burst, seen.burst * speed / u64::from(FULL >> 10)),
                away: match seen.slept {
                    0 => learned.away,
                    slept => replay::average(learned.away, slept),
                },
            };
            self.learned.insert(task.pid, learned);
        }
        learned
    }

    /// All that are idle and allowed, nearest first.
    fn idle(&self, task: &Queued, watch: &Watch, now: u64) -> Vec<abi::rec_candidate> {
        let near = self.orders.get(task.prev_cpu).into_iter().flatten();
        near.copied()
            .filter(|&cpu| self.is_idle(cpu, watch) && (task.allowed)(cpu))
            .map(|cpu| self.candidate(cpu, WARM, true, watch, now))
            .collect()
    }

    fn is_idle(&self, cpu: usize, watch: &Watch) -> bool {
        let seen = watch.cpu(cpu);
        let is_ours = seen.pid == self.own;
        (seen.pid == 0 || is_ours) && !self.sent.iter().any(|sent| sent.cpu == cpu)
    }

    fn runs(&self, cpu: usize, watch: &Watch) -> bool {
        let seen = watch.cpu(cpu);
        seen.pid != 0 && seen.pid != self.own && !seen.taken
    }

    fn candidate(
        &self,
        cpu: usize,
        why: u8,
        idle: bool,
        watch: &Watch,
        now: u64,
    ) -> abi::rec_candidate {
        let seen = watch.cpu(cpu);
        let speed = self.speeds.get(cpu).copied();
        let speed = speed.unwrap_or(Speed {
            speed: FULL,
            at: now,
            busy: 0,
        });
        // SAFETY: integers.
        let mut c: abi::rec_candidate = unsafe { std::mem::zeroed() };
        let sibling = self.layout.cpus.get(cpu).map_or(-1, |topo| topo.sibling);
        let shared = usize::try_from(sibling).is_ok_and(|sibling| self.runs(sibling, watch));
        let runs = self.runs(cpu, watch);
        let flag = |is: bool, flag: u32| if is { flag as u8 } else { 0 };
        c.cpu = cpu as u16;
        c.why = why;
        c.flags = flag(idle, abi::rec_candidate_flags_REC_CANDIDATE_IDLE)
            | flag(runs, abi::rec_candidate_flags_REC_CANDIDATE_RUNS)
            | flag(shared, abi::rec_candidate_flags_REC_CANDIDATE_SHARED)
            | flag(seen.taken, abi::rec_candidate_flags_REC_CANDIDATE_TAKEN);
        c.speed = speed.speed;
        c.speed_age = word(now.saturating_sub(speed.at));
        c.busy = word(total_busy(&seen, now).saturating_sub(speed.busy));
        let last = self.learned.get(if runs { &seen.pid } else { &seen.last });
        let last = last.copied().unwrap_or_default();
        let age = word(now.saturating_sub(seen.since));
        if runs {
            let ran = watch.task(seen.pid).ran;
            c.running_age = age;
            c.rest = word(last.burst.saturating_sub(ran));
        } else {
            c.stopped_age = age;
            c.rest = word(last.burst);
        }
        c.away = word(last.away);
        c.slice = word(self.slice);
        let queued = self.sent.iter().filter(|sent| sent.cpu == cpu);
        c.queued = word(queued.map(|sent| sent.burst).sum());
        c
    }
}

/// For how long it ran tasks, in all.
fn total_busy(seen: &Cpu, now: u64) -> u64 {
    match seen.pid {
        0 => seen.busy,
        _ => seen.busy + now.saturating_sub(seen.since),
    }
}

/// Of the idle ones, nearest first, those that are candidates: the fastest now, that of the highest
/// capacity if it is greater, the fastest that its last task does not want back soon if it is
/// another. As fl_scan_idle() and begin_choice() choose them.
fn pick(
    idle: &[abi::rec_candidate],
    soon: u64,
    chooser: &Chooser,
    layout: &Layout,
) -> Vec<abi::rec_candidate> {
    let capacity = |c: &abi::rec_candidate| layout.cpus[usize::from(c.cpu)].capacity;
    let (mut warm, mut free, mut fast) = (None, None, None);
    for c in idle {
        let now = chooser.machine.idle(&chooser.knobs, c);
        let is_faster = |than: &Option<(u32, abi::rec_candidate)>| {
            than.as_ref().is_none_or(|(speed, _)| now.speed > *speed)
        };
        if is_faster(&warm) {
            warm = Some((now.speed, *c));
        }
        if now.back >= soon && is_faster(&free) {
            free = Some((now.speed, *c));
        }
        if fast
            .as_ref()
            .is_none_or(|than| capacity(c) > capacity(than))
        {
            fast = Some(*c);
        }
    }
    let Some((_, warm)) = warm else {
        return Vec::new();
    };
    let mut picked = vec![warm];
    picked.extend(
        fast.filter(|fast| capacity(fast) > capacity(&warm))
            .map(|fast| abi::rec_candidate { why: FAST, ..fast }),
    );
    picked.extend(
        free.filter(|(_, free)| free.cpu != warm.cpu)
            .map(|(_, free)| abi::rec_candidate { why: FREE, ..free }),
    );
    picked
}
