/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of knobs: one line each, and the only place where a knob's name,
 * unit, default and range stand. `struct tunables` (intf.h), the command line,
 * its manual and the checks of the agent all come from here (build.rs reads it).
 *
 * KNOB(name, unit, default, min, max, when, meaning). All are u64. When they may be
 * set: `start` is read at the scheduler's start, `live` may change while it runs, and
 * `task` is live and may have another value for the tasks of a context (context.bpf.c).
 * The unit is also the suffix of the name, where the name carries one: us, ns, or
 * "0..1024" for shares and speeds.
 *
 * KNOB_WAS(old, new), at the end, are the retired names. Each works for one version more
 * (flag, `set`, `get`, contexts, control socket) with a warning, and help hides it.
 */
#ifndef KNOB
#error "define KNOB before including knobs.h"
#endif
#ifndef KNOB_WAS
#define KNOB_WAS(old, new)
#endif

/* Base scheduler. */
KNOB(partial, "0..1", 0, 0, 1, start, "Schedule only tasks of policy SCHED_EXT, which `scx_freqlock run` gives a command, beside the kernel's own scheduler: all others stay there, and go before them")
KNOB(slice_us, "us", 4000, 100, 100000, task, "Time slice: how long a task runs before another that waits on the CPU may take its place; a timer ends it if somebody waits and no tick comes then")
KNOB(lag_us, "us", 8000, 0, 1000000, live, "Most CPU time of credit or debt that a task takes along when it sleeps or changes CPU, at the weight of nice 0")
KNOB(preempt_margin_us, "us", 100, 0, 100000, live, "A waking task preempts a running one when its virtual deadline is earlier by more than this")
KNOB(preempt_after_us, "us", 100, 0, 100000, live, "A running task is not preempted by a waking one before it ran this long for each task on its CPU, or for its slice; less if it weighs less than that one")
KNOB(balance_us, "us", 4000, 500, 1000000, live, "How often a busy CPU looks for one with more weight to run, to take a task from it")
KNOB(rotate_us, "us", 8000, 1000, 10000000, live, "A busy CPU takes a task that waits elsewhere if that one got less CPU time recently, for its weight, than the one it runs, by this much of its own, so that the tasks of unequal queues take turns")
KNOB(starve_ms, "ms", 4000, 10, 20000, live, "A queued task runs within this time, whatever its nice value and however many others there are: after 30 s the kernel would end the scheduler")
KNOB(weight_min, "weight", 1, 1, 88761, task, "Least weight that a task has, whatever its nice value; 1024 is that of nice 0, and each step of nice a factor of 1.25")
KNOB(weight_max, "weight", 88761, 1, 88761, task, "Most weight that a task has, whatever its nice value and weight_min")
KNOB(cgroups, "0..1", 1, 0, 1, start, "Share CPU time along the tree of cgroups, by cpu.weight and cpu.idle, and among autogroups where the kernel has them on, and follow cpu.max")

/* Placement. */
KNOB(prefer_big, "0..1", 0, 0, 1, task, "Where CPUs differ in capacity, a task that needs a CPU goes to the biggest idle one, before the mode is asked")
KNOB(smove_delay_us, "us", 50, 1, 100000, live, "Mode smove: a task kept on its parent's or waker's CPU moves to the idle CPU when it still waits after this long")
KNOB(disperse_us, "us", 800, 10, 100000, live, "Modes fork-local and fork-all: a task kept local may be taken by idle CPUs when it still waits after this long")
KNOB(nest_idle_us, "us", 10000, 100, 10000000, live, "Mode nest: an idle CPU stays in the warm set this long after it last ran a task")
KNOB(park_margin_us, "us", 50, 1, 100000, live, "Mode auto: a task that waits for a CPU to become free moves when it still waits this long after twice the predicted wait")
KNOB(park_max_us, "us", 1000, 0, 100000, live, "Mode auto: longest predicted wait for which a task is kept waiting for a busy CPU while another is idle")
KNOB(warm_up, "0..1024", 400, 0, 1024, live, "Mode auto: share of what the warmest idle CPU lacks to its full speed that is not held against it, since work there warms it for what comes next")
KNOB(warm_set, "0..1", 1, 0, 1, live, "Mode auto: confine the load to as many CPUs as its work keeps warm; needs decay_us and decay_after_us as the machine has them")
KNOB(scan_cpus, "CPUs", 32, 1, 1024, live, "Modes smove, nest and auto: how many CPUs, nearest first, are looked at for an idle one before any idle one is taken")
KNOB(idle_exit_ns, "ns", 3000, 0, 1000000, live, "Time that an idle CPU takes to run a task sent to it, until it has been measured")
KNOB(migrate_smt_ns, "ns", 1000, 0, 10000000, live, "Migration cost of a task to another hardware thread of its core")
KNOB(migrate_llc_ns, "ns", 8000, 0, 10000000, live, "Migration cost of a task to another core under the same last-level cache")
KNOB(migrate_node_ns, "ns", 40000, 0, 10000000, live, "Migration cost of a task to another last-level cache of the same node")
KNOB(migrate_far_ns, "ns", 120000, 0, 10000000, live, "Migration cost of a task to another node")
KNOB(cold_smt_ns, "ns", 0, 0, 10000000, live, "What cold caches cost a woken task on another hardware thread of its core, if its burst is as long; measured at start unless given, as the three below")
KNOB(cold_llc_ns, "ns", 0, 0, 10000000, live, "What cold caches cost a woken task on another core under the same last-level cache")
KNOB(cold_node_ns, "ns", 0, 0, 10000000, live, "What cold caches cost a woken task under another last-level cache of the same node")
KNOB(cold_far_ns, "ns", 0, 0, 10000000, live, "What cold caches cost a woken task on another node")

/* CPU speed. */
KNOB(ramp_us, "us", 29000, 1, 10000000, live, "Recency model: busy time from the floor to full speed (Gouicem et al., USENIX ATC 2020, section 2: 29 ms from 1.25 to 3.00 GHz on the E7-8870 v4)")
KNOB(decay_us, "us", 98000, 1, 10000000, live, "Recency model: idle time from full speed to the floor, once it falls")
KNOB(decay_after_us, "us", 0, 0, 10000000, live, "Recency model: idle time for which a CPU keeps its speed before it falls")
KNOB(speed_floor, "0..1024", 410, 1, 1024, live, "Recency model: speed of a CPU that has long been idle; 1024 says that speeds never change (default 1.2 GHz of 3.0 GHz)")
KNOB(turbo_back_us, "us", 10000, 0, 10000000, live, "Mode auto: time in which active cores win back the speed that one more has cost them (10 ms: how often the kernel's intel_pstate driver looks)")
KNOB(smt_share, "0..1024", 640, 1, 1024, live, "Speed of a hardware thread whose sibling is busy, against one whose sibling is idle")
KNOB(cpuperf, "0..1", 1, 0, 1, live, "Ask the schedutil governor for speed by the load of each CPU")

/* Spinners. */
KNOB(spin, "0..1", 1, 0, 1, task, "Tasks that are found spinning give way to runnable tasks of their process")
KNOB(spin_ticks, "ticks", 2, 2, 1000, task, "Ticks in a row that must see a task stand still before it is taken for a spinner")
KNOB(spin_window_bytes, "bytes", 64, 0, 4096, task, "A task stands still only if its instruction pointer stays within this distance of where it was at the first of those ticks")

/* Locks. */
KNOB(locks, "0..1", 1, 0, 1, start, "Find the holders of locks that others wait for; without it the knobs below have no effect")
KNOB(pi_weight, "0..1", 1, 0, 1, task, "A lock's holder inherits the weight and the deadline of its best waiter")
KNOB(pi_nopreempt, "0..1", 1, 0, 1, task, "A lock's holder is not preempted while others wait for it")
KNOB(pi_run_now, "0..1", 1, 0, 1, task, "A lock's holder that does not run goes ahead of its queue, or to the CPU that the waiter leaves")
KNOB(pi_ipc, "0..1", 0, 0, 1, start, "A task that others of greater weight wait for, since it answers them over a pipe, a socket or an eventfd, is treated as the holder of a lock; needs --locks")
KNOB(pi_big, "0..1", 1, 0, 1, task, "Where CPUs differ in capacity, a lock's holder that others wait for goes to a big one")
KNOB(pi_big_us, "us", 200, 0, 1000000, task, "A lock's holder that runs on a small CPU is migrated to a big one only if such holds usually last this long")
KNOB(pi_nopreempt_us, "us", 4000, 0, 1000000, task, "Longest time in one hold of a lock for which its holder is not preempted because of its waiters")
KNOB(pi_budget_us, "us", 50000, 0, 10000000, task, "Most CPU time in one hold of a lock that the holder gets with the priority of waiters of greater weight; pi_nopreempt_us where no waiter has a greater weight")
KNOB(pi_bandwidth, "0..1024", 512, 0, 1024, task, "Largest share of a CPU that a task gets with inherited priority, beyond pi_budget_us")
KNOB(lock_debt_us, "us", 0, 0, 1000000, task, "Longest time for which a task is held back as it hands off a lock of user space, so that those that waited have the lock for as long as it had it, by weight; 0 for never")

/* What is reported. */
KNOB(telemetry, "0..1", 1, 0, 1, start, "Count for each task what it ran, waited, held and waited for, and report priority inversions")
KNOB(inversion_us, "us", 1000, 0, 10000000, live, "Priority inversions that last this long are reported one by one; all of them are counted")
KNOB(cpus_ms, "ms", 0, 0, 1000, live, "How often the page of CPUs that processes can count on is written (lib/cpus_page.h); 0 for never, and then nothing is counted for it")
KNOB(speeds_ms, "ms", 0, 0, 1000, live, "How often the page of CPUs' present speeds is written, by which the locks of libfreqlock know which CPUs are fast (lib/speeds_page.h); 0 for never")

/* Policies by users. */
KNOB(policy_max_ns, "ns", 2000, 10, 1000000, live, "A user's policy is taken out when its answers take more than this on average")

/* Trying modes (src/adapt). */
KNOB(adapt, "0..1", 0, 0, 1, start, "Try other modes in short slots, in each context that sets none, and keep those in which its tasks get their work done sooner")
KNOB(adapt_slot_ms, "ms", 200, 20, 60000, live, "Length of such a slot; the first quarter is not counted")
KNOB(adapt_margin, "%", 3, 0, 90, live, "Another mode is kept only if the time to get work done is less by this")
KNOB(adapt_share, "%", 10, 1, 100, live, "Most of the time that is spent on trials, after those at the start")

/* Retired in 0.1.0. */
KNOB_WAS(move_core_ns, migrate_smt_ns)
KNOB_WAS(move_llc_ns, migrate_llc_ns)
KNOB_WAS(move_node_ns, migrate_node_ns)
KNOB_WAS(move_far_ns, migrate_far_ns)
KNOB_WAS(cold_core_ns, cold_smt_ns)
KNOB_WAS(donate, pi_weight)
KNOB_WAS(hold_now, pi_run_now)
KNOB_WAS(hold_keep, pi_nopreempt)
KNOB_WAS(hold_keep_us, pi_nopreempt_us)
KNOB_WAS(hold_max_us, pi_budget_us)
KNOB_WAS(hold_share, pi_bandwidth)
KNOB_WAS(hold_big, pi_big)
KNOB_WAS(hold_big_us, pi_big_us)
KNOB_WAS(episode_us, inversion_us)
