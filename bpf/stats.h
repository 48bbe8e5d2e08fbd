/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of statistics: one line each makes the BPF enum, the agent's struct
 * for scx_stats and the manual (build.rs reads it).
 *
 * STAT(name, group, description). All are counters of events since the
 * scheduler started, kept per CPU and added up by the agent.
 */
#ifndef STAT
#error "define STAT before including stats.h"
#endif

/* What came in. */
STAT(fork, event, "Forked tasks that needed a CPU")
STAT(wake, event, "Woken tasks that needed a CPU")
STAT(pinned, event, "Forked or woken tasks that may run on one CPU only")

/* Where it went: exactly one of these for every fork and wake-up. */
STAT(place_prev_idle, place, "Placed on the previous CPU, which was idle")
STAT(place_idle, place, "Placed on another idle CPU")
STAT(place_local, place, "Kept on the parent's or waker's CPU, which is busy")
STAT(place_prev, place, "Kept on the previous CPU or the home of its parent's children, which is busy")
STAT(place_busy, place, "No idle CPU: queued on the CPU chosen by the mode")
STAT(place_pinned, place, "Only one CPU was allowed")
STAT(place_raced, place, "The idle CPU chosen was taken by another in between: queued, to be stolen")

/* Why, by mode. */
STAT(forklocal_alone, mode, "fork-local: the parent was alone on its CPU")
STAT(forklocal_crowded, mode, "fork-local: the parent was not alone, placed as off")
STAT(forklocal_prev_ok, mode, "fork-local: the wakee's previous CPU had at most one task")
STAT(forklocal_prev_crowded, mode, "fork-local: the wakee's previous CPU had more than one task, placed as off")
STAT(smove_stay, mode, "smove: the idle CPU is slower now, stayed local with the timer set")
STAT(smove_go, mode, "smove: the idle CPU is at least as fast now, taken")
STAT(nest_warm, mode, "nest: found an idle CPU in the warm set")
STAT(nest_grow, mode, "nest: the warm set was busy, took a CPU into it")
STAT(auto_local, mode, "auto: the parent's or waker's CPU finishes first")
STAT(auto_prev, mode, "auto: the previous CPU finishes first")
STAT(auto_home, mode, "auto: the CPU of the parent's previous child finishes first")
STAT(auto_warm, mode, "auto: the warmest idle CPU finishes first")
STAT(auto_fast, mode, "auto: the idle CPU with the highest capacity finishes first")
STAT(auto_free, mode, "auto: the warmest idle CPU to which no task is about to come back finishes first")
STAT(auto_busy, mode, "auto: a busy CPU finishes first and nothing is idle")
STAT(auto_leaving, mode, "auto: the running task of the CPU chosen was about to leave it")
STAT(auto_bought, mode, "auto: a busy CPU finishes first, but waits have cost as much as waking an idle one, which was taken")
STAT(again_here, mode, "auto: a task that was preempted waits for its CPU, which is free soon")
STAT(again_idle, mode, "auto: a task that was preempted goes on at once, on an idle CPU")

/* What became of a task that was kept waiting for a busy CPU. */
STAT(park, park, "Kept waiting for a busy CPU on purpose, with the timer set")
STAT(park_ran, park, "Kept waiting, and ran there in time")
STAT(park_late, park, "Kept waiting, and ran there after the bound, before the timer came")
STAT(park_migrated, park, "Waited too long, migrated by the timer to an idle CPU")
STAT(park_released, park, "Waited too long and nothing was idle: left for any CPU to take")
STAT(park_stolen, park, "Waited too long with the timer late: taken by a CPU that would have idled")
STAT(timer_fire, park, "Timer callbacks")

/* Queues. */
STAT(enq_queue, queue, "Queued by virtual deadline")
STAT(enq_kthread, queue, "Pinned kernel threads put ahead of the queue at wake-up")
STAT(enq_unplugged, queue, "Woken by a CPU that takes no interrupts any more, put into the local queue")
STAT(preempt_wake, queue, "Woken tasks that preempted the running one")
STAT(preempt_later, queue, "Woken tasks that were to preempt the running one when its protected time is over")
STAT(preempt_tick, queue, "Running tasks preempted at a tick by one that waited")
STAT(keep_running, queue, "Slice extended because no queued task has an earlier deadline")
STAT(alone, queue, "Infinite slices given to tasks that have a CPU of nohz_full for themselves")
STAT(disturbed, queue, "Such slices that were given an end, for another task came")
STAT(steal_core, queue, "Taken by an idle CPU from a hardware thread of its core")
STAT(steal_llc, queue, "Taken by an idle CPU from another core under its last-level cache")
STAT(steal_node, queue, "Taken by an idle CPU from another last-level cache of its node")
STAT(steal_far, queue, "Taken by an idle CPU from another node")
STAT(steal_vain, queue, "Looks of an idle CPU through a long queue in which no task may run there")
STAT(balance, queue, "Taken by a busy CPU from one with more weight to run")
STAT(rotate, queue, "Taken by a busy CPU from a queue longer by one, to take turns")
STAT(late, queue, "Waited for half of starve_ms, and put where the order is that of waiting")
STAT(rescued, queue, "Late tasks that were run out of turn")
STAT(displaced, queue, "Queued again because a real-time or deadline task took their CPU")

/* Learning and its bounds. */
STAT(class_hit, learn, "Forks whose parent command and kind of fork were known")
STAT(class_new, learn, "Forks whose parent command and kind of fork were new")
STAT(class_full, learn, "Fork classes that could not be stored")
STAT(cpuperf_set, freq, "Requests for speed made to schedutil")
STAT(freq_sample, freq, "Measured CPU speeds taken in")

/* Locks: waits, boosts and hints. */
STAT(lock_wait, lock, "Waits for a lock of which the holder is known")
STAT(lock_sleep, lock, "Waits for a lock that are in the wait-for graph: the task fell asleep, or a hint reports that it spins")
STAT(lock_unowned, lock, "Waits that may be for a lock whose holder is unknown")
STAT(lock_full, lock, "Waits for a lock that no slot was free for")
STAT(lock_limit, lock, "Waits for a lock that got no slot because the process or the user has as many as one may have")
STAT(lock_cycle, lock, "Waits for a lock that would have closed a cycle, or whose chain is too long to be checked")
STAT(lock_handoff, lock, "Handoffs: a wait ended by the holder; the other waiters then wait for the woken task")
STAT(lock_hop, lock, "Donations passed on to the holder of a further lock")
STAT(hold_full, lock, "Donations that found no room, for the task holds too many contended locks")
STAT(boosted, lock, "Holders queued with inherited priority")
STAT(donate_spent, lock, "Boosts refused because the hold or the task had its share")
STAT(hold_kept, lock, "Slices of holders made longer because others wait for them")
STAT(hold_spared, lock, "Preemptions that were skipped because others wait for the running task")
STAT(hold_preempted, lock, "Holders that lost their CPU while others waited for them")
STAT(hold_here, lock, "Holders run on the CPU that their waiter left")
STAT(hold_called, lock, "Holders for which a real-time task waits, and whose CPU was kicked to run them next")
STAT(hold_ahead, lock, "Holders that may not run on the CPU that their waiter left, put ahead in their queue")
STAT(hold_big, lock, "Holders migrated to a CPU of more capacity")
STAT(held_back, lock, "Tasks held back as they handed off a lock, since they owed others lock time")
STAT(hint_shown, lock, "Hints shown by threads")
STAT(hint_lost, lock, "Hints that became unreadable, or were taken back")
STAT(hint_wait, lock, "Waits that a hint reported, with the holder")
STAT(hint_full, lock, "Holders that a hint reported and that could not be stored")
STAT(profile_new, lock, "Locks for which a profile was begun; the ones that are no longer listed made room for others")
STAT(profile_full, lock, "Waits for which no profile could be begun")

/* Answers of other tasks. */
STAT(ipc_wait, ipc, "Waits for the answer of a task of lesser weight that are in the wait-for graph (--pi-ipc)")
STAT(ipc_answered, ipc, "Such waits that this task ended, by its answer")
STAT(ipc_wrong, ipc, "Such waits that another task, a signal or a timer ended: wrong guesses")

/* What is reported of tasks. */
STAT(exit_reported, report, "Exited tasks whose figures were reported to the agent")
STAT(exit_lost, report, "Exited tasks for whose figures the buffer had no room: they count for the machine, not for their process")
STAT(inversion, report, "Priority inversions: waits for a lock that a task of lesser weight held")
STAT(inversion_reported, report, "Priority inversions reported one by one")
STAT(inversion_lost, report, "Priority inversions not reported because the buffer had no room")
STAT(neighbour_rest, report, "Runs that were not counted by process for the page of CPUs to count on: too many processes took turns on one CPU")

/* Contexts. */
STAT(context_look, context, "Tasks whose context was looked up: new ones, those that changed their name, cgroup or user, and all after a reload")
STAT(context_long, context, "Cgroups whose path is too long: the folders that fit were looked at")
STAT(context_full, context, "Cgroups whose contexts could not be remembered, and will be looked up again")

/* Policies by users. */
STAT(policy_asked, policy, "Decisions about which a user's policy was asked")
STAT(policy_refused, policy, "Answers of a user's policy that were refused: out of range, or a CPU that the task may not use")

/* Cgroups. */
STAT(cgroup_new, cgroup, "Cgroups and autogroups in which a task came to run")
STAT(cgroup_full, cgroup, "Times that a cgroup found no slot: its tasks count as the root's")
STAT(cgroup_pass, cgroup, "Times that the weights of cgroups' tasks were worked out")
STAT(throttled, cgroup, "Tasks put aside, as the quota of their cgroup or of one above it was used up")
STAT(unthrottled, cgroup, "Tasks let go after that")
STAT(quota_used_up, cgroup, "Periods in which tasks waited for a quota that was used up")

/* CPUs. */
STAT(cpu_came, cpu, "CPUs that came online")
STAT(cpu_went, cpu, "CPUs that went offline")
STAT(kick_dropped, cpu, "Kicks not sent, since the CPU that was to send them takes no interrupts any more")
STAT(timer_dropped, cpu, "Timers not set, since the CPU that was to set them takes no interrupts any more")
STAT(drained, cpu, "Tasks that waited for a CPU that went, handed to the kernel to move")

STAT(no_ctx, error, "Tasks without a context, scheduled plainly")

/* Spinners. */
STAT(spin_looked, spin, "Ticks that hit a task of a process with several threads in user mode")
STAT(spin_tick, spin, "Ticks at which a task was taken for a spinner")
STAT(spin_found, spin, "Spinners found at ticks")
STAT(spin_storm, spin, "Storms of sched_yield found")
STAT(spin_gave_way, spin, "Spinners that gave way to a task of their process")
STAT(spin_fetched, spin, "Spinners that gave way to a task of their process in the queue of another CPU")
STAT(spin_turn, spin, "Spinners that let a queued task go first because only spinners of their process waited there")
STAT(spin_alone, spin, "Spinners at the end of a slice that found no task of their process to give way to")
STAT(spin_ended, spin, "Spinners that ended: they slept, or a tick found them elsewhere")
STAT(spin_unreadable, spin, "Ticks at which the code around the instruction pointer could not be read")
