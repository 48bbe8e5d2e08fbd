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
TASK_STAT(slow, ns, "Time on a CPU that was at less than three quarters of full speed")
TASK_STAT(work, ns, "Work done, in ns at full speed")
TASK_STAT(wait, ns, "Time in which it could have run and did not")
TASK_STAT(throttled, ns, "Time in which it could have run but for a quota or a lock debt")
TASK_STAT(picked, count, "Times that it was given a CPU")
TASK_STAT(migrated, count, "Migrations: times that it was given another CPU than the time before")
TASK_STAT(woken, count, "Wake-ups, and its birth")
TASK_STAT(to_same, count, "Wake-ups placed on the CPU that it or its parent had last")
TASK_STAT(to_idle, count, "Wake-ups placed on an idle CPU")
TASK_STAT(to_wait, count, "Wake-ups kept waiting for a busy CPU on purpose")
TASK_STAT(preempted, count, "Times that it lost its CPU and wanted to go on")
TASK_STAT(preempted_holding, count, "Times that it was preempted while others waited for its lock")
TASK_STAT(lock_waits, count, "Waits, asleep, for locks of which the holder is known")
TASK_STAT(lock_wait, ns, "Time asleep in waits for such locks")
TASK_STAT(holds, count, "Holds of a lock that ended with a handoff to a waiter")
TASK_STAT(hold, ns, "Time of such holds, from the begin of the first wait")
TASK_STAT(boosted, ns, "Time on a CPU with inherited priority")
TASK_STAT(spin, ns, "Time on a CPU while it was known to spin")
TASK_STAT(inversions, count, "Waits for a lock that a task of lesser weight held")
TASK_STAT(inversion, ns, "Time of waits for a lock that a task of lesser weight held")
