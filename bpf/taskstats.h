/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of what is counted for each task: one line makes a field of the BPF
 * struct, of the agent's, a column of `scx_freqlock report` and its manual
 * (build.rs reads it).
 *
 * TASK_STAT(name, unit, description). The unit is "ns" or "count"; all of them
 * only grow, so that they can be added up over tasks.
 */
#ifndef TASK_STAT
#error "define TASK_STAT before including taskstats.h"
#endif

TASK_STAT(run, ns, "Time on a CPU")
TASK_STAT(slow, ns, "Of this, while the CPU was at less than three quarters of full speed")
TASK_STAT(work, ns, "What it did in that time, in ns at full speed")
TASK_STAT(wait, ns, "Time in which it could have run and did not")
TASK_STAT(picked, count, "Times that it was given a CPU")
TASK_STAT(migrated, count, "Of these, on another CPU than the time before")
TASK_STAT(woken, count, "Wake-ups, and its birth")
TASK_STAT(to_same, count, "Of these, placed on the CPU that it or its parent had last")
TASK_STAT(to_idle, count, "Of these, placed on an idle CPU")
TASK_STAT(to_wait, count, "Of these, kept waiting for a busy CPU on purpose")
TASK_STAT(preempted, count, "Times that it lost its CPU and wanted to go on")
TASK_STAT(preempted_holding, count, "Of these, while others waited for a lock that it held")
TASK_STAT(lock_waits, count, "Waits, asleep, for locks of which the holder is known")
TASK_STAT(lock_wait, ns, "Time of them, until it was woken")
TASK_STAT(holds, count, "Locks that it held until it gave them to a waiter")
TASK_STAT(hold, ns, "Time of them, from when somebody began to wait")
TASK_STAT(boosted, ns, "Time on a CPU on the terms of those who waited for it")
TASK_STAT(spin, ns, "Time on a CPU while it was known to spin")
TASK_STAT(inversions, count, "Waits for a lock that a task of lesser weight held")
TASK_STAT(inversion, ns, "Time of them")
