/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of knobs: one line each, and the only place where a knob's name,
 * unit, default and range stand. `struct tunables` (intf.h), the command line,
 * its manual and the checks of the agent all come from here (build.rs reads it).
 *
 * KNOB(name, unit, default, min, max, meaning). All are u64 and may change
 * while the scheduler runs. The unit is also the suffix of the name, where the
 * name carries one: us, ns, or "0..1024" for shares and speeds.
 */
#ifndef KNOB
#error "define KNOB before including knobs.h"
#endif

/* Base scheduler. */
KNOB(slice_us, "us", 4000, 100, 100000, "Time slice: how long a task runs before another that waits on the CPU may take its place")
KNOB(lag_us, "us", 20000, 0, 1000000, "Most CPU time of credit or debt that a task takes along when it sleeps or changes CPU, at the weight of nice 0")
KNOB(preempt_margin_us, "us", 500, 0, 100000, "A waking task preempts a running one when its virtual deadline is earlier by more than this")
KNOB(preempt_after_us, "us", 1500, 0, 100000, "A running task is not preempted by a waking one before it ran this long")
KNOB(balance_us, "us", 4000, 500, 1000000, "How often a busy CPU looks for a longer queue to take a task from")
KNOB(rotate_us, "us", 24000, 1000, 10000000, "A queue longer by one task gives it away after it waited this long, so that unequal queues take turns")

/* Placement. */
KNOB(smove_delay_us, "us", 50, 1, 100000, "Mode smove: a task kept on its parent's or waker's CPU moves to the idle CPU when it still waits after this long")
KNOB(disperse_us, "us", 800, 10, 100000, "Modes fork-local and fork-all: a task kept local may be taken by idle CPUs when it still waits after this long")
KNOB(nest_idle_us, "us", 10000, 100, 10000000, "Mode nest: an idle CPU stays in the warm set this long after it last ran a task")
KNOB(park_margin_us, "us", 50, 1, 100000, "Mode auto: a task that waits for a CPU to become free moves when it still waits this long after twice the predicted wait")
KNOB(park_max_us, "us", 1000, 0, 100000, "Mode auto: longest predicted wait for which a task is kept waiting for a busy CPU while another is idle")
KNOB(scan_cpus, "CPUs", 32, 1, 1024, "Modes smove, nest and auto: how many CPUs, nearest first, are looked at for an idle one before any idle one is taken")
KNOB(idle_exit_ns, "ns", 3000, 0, 1000000, "Time that an idle CPU takes to run a task sent to it, until it has been measured")
KNOB(move_core_ns, "ns", 1000, 0, 10000000, "Cost of moving a task to another hardware thread of its core")
KNOB(move_llc_ns, "ns", 8000, 0, 10000000, "Cost of moving a task to another core under the same last-level cache")
KNOB(move_node_ns, "ns", 40000, 0, 10000000, "Cost of moving a task to another last-level cache of the same node")
KNOB(move_far_ns, "ns", 120000, 0, 10000000, "Cost of moving a task to another node")

/* CPU speed. */
KNOB(ramp_us, "us", 29000, 1, 10000000, "Recency model: busy time from the floor to full speed (Gouicem et al., USENIX ATC 2020, section 2: 29 ms from 1.25 to 3.00 GHz on the E7-8870 v4)")
KNOB(decay_us, "us", 98000, 1, 10000000, "Recency model: idle time from full speed to the floor")
KNOB(speed_floor, "0..1024", 410, 1, 1024, "Recency model: speed of a CPU that has long been idle; 1024 says that speeds never change (default 1.2 GHz of 3.0 GHz)")
KNOB(turbo_back_us, "us", 10000, 0, 10000000, "Mode auto: time in which active cores win back the speed that one more has cost them (10 ms: how often the kernel's intel_pstate driver looks)")
KNOB(smt_share, "0..1024", 640, 1, 1024, "Speed of a hardware thread whose sibling is busy, against one whose sibling is idle")
KNOB(cpuperf, "0..1", 1, 0, 1, "Ask the schedutil governor for speed by the load of each CPU")

/* Spinners. */
KNOB(spin, "0..1", 1, 0, 1, "Tasks that are found spinning give way to runnable tasks of their process")
KNOB(spin_ticks, "ticks", 2, 2, 1000, "So many ticks in a row must see a task stand still before it is taken for a spinner")
KNOB(spin_window_bytes, "bytes", 64, 0, 4096, "A task stands still only if its instruction pointer stays within this distance of where it was at the first of those ticks")

/* Locks. */
KNOB(locks, "0..1", 0, 0, 1, "Find out who holds the locks that others wait for; read at start only, and without it the knobs below have no effect. Off until its cost is measured")
KNOB(donate, "0..1", 1, 0, 1, "A lock's holder is queued with the weight and the deadline of its best waiter")
KNOB(hold_keep, "0..1", 1, 0, 1, "A lock's holder is not preempted while others wait for it")
KNOB(hold_now, "0..1", 1, 0, 1, "A lock's holder that does not run goes ahead of its queue, or to the CPU that the waiter leaves")
KNOB(hold_big, "0..1", 1, 0, 1, "Where CPUs differ in capacity, a lock's holder that others wait for goes to a big one")
KNOB(hold_big_us, "us", 200, 0, 1000000, "A lock's holder that runs on a small CPU is moved to a big one only if such holds usually last this long")
KNOB(hold_keep_us, "us", 4000, 0, 1000000, "Longest time that one hold of a lock can keep others from the CPU because somebody waits for it")
KNOB(hold_max_us, "us", 50000, 0, 10000000, "Most CPU time in one hold of a lock that the holder gets on its waiters' terms")
KNOB(hold_share, "0..1024", 512, 0, 1024, "Share of a CPU that a task gets on others' terms at most, beyond hold_max_us")
