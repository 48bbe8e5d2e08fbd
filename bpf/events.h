/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of events that a trace has: one line each makes the BPF enum, the agent's
 * enum, the names on the command line and in the file (build.rs reads it).
 *
 * EVENT(name, "name in lists and files", flags of enum fl_trace_flags, "help"). What pid
 * and arg of each hold, docs/TRACE.md says. New ones come last: their numbers are part of
 * the format.
 */
#ifndef EVENT
#error "define EVENT before including events.h"
#endif

/* clang-format off */
EVENT(fork, "fork", TRACED, "A task was born")
EVENT(exec, "exec", TRACED, "A task executes another program")
EVENT(exit, "exit", TRACED, "A task begins to exit")
EVENT(wakeup, "wakeup", TRACED, "A task became runnable")
EVENT(wakeup_new, "wakeup-new", TRACED, "A task became runnable for the first time")
EVENT(switch, "switch", TRACED, "A CPU goes from one task to the next")
EVENT(migrate, "migrate", TRACED, "A task goes to another CPU")
EVENT(idle, "idle", TRACED, "A CPU enters an idle state")
EVENT(idle_end, "idle-end", TRACED, "A CPU leaves its idle state")
EVENT(frequency, "frequency", TRACED, "The frequency of a CPU changes")
EVENT(name, "name", TRACED, "The name of a task, its first eight bytes")
EVENT(name_rest, "name-rest", TRACED, "The name of a task, the others")
EVENT(tick, "tick", 0, "A tick, with the CPU's speed")
EVENT(place, "place", 0, "The scheduler chose a CPU, with its reason")
EVENT(throttle, "throttle", 0, "A task waits for the quota of its cgroup")
EVENT(lock_wait, "lock-wait", 0, "A task begins to wait for a lock")
EVENT(lock_hold, "lock-hold", 0, "A task holds a lock that others wait for")
EVENT(handoff, "handoff", 0, "A lock passes on to a waiter")
EVENT(boost, "boost", 0, "A lock's holder inherits priority")
EVENT(slice_end, "slice-end", 0, "A timer ended a slice")
EVENT(spinner, "spinner", 0, "A task was found spinning")
EVENT(inversion, "inversion", 0, "A priority inversion ended")
/* clang-format on */
