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
EVENT(tick, "tick", OURS, "A tick, with the CPU's speed")
EVENT(place, "place", OURS, "The scheduler chose a CPU, with its reason")
EVENT(throttle, "throttle", OURS, "A task waits for the quota of its cgroup")
EVENT(lock_wait, "lock-wait", OURS, "A task begins to wait for a lock")
EVENT(lock_hold, "lock-hold", OURS, "A task holds a lock that others wait for")
EVENT(handoff, "handoff", OURS, "A lock passes on to a waiter")
EVENT(boost, "boost", OURS, "A lock's holder inherits priority")
EVENT(slice_end, "slice-end", OURS, "A timer ended a slice")
EVENT(spinner, "spinner", OURS, "A task was found spinning")
EVENT(inversion, "inversion", OURS, "A priority inversion ended")
EVENT(lock_left, "lock-left", OURS, "A task waits for a lock no more, and did not get it")
EVENT(weigh, "weigh", OURS | ASKED, "What mode auto goes by in a decision, its first eight bytes")
EVENT(weigh_rest, "weigh-rest", OURS | ASKED, "The same, the next eight bytes")
EVENT(chosen, "chosen", OURS | ASKED, "Which of the candidates mode auto chose")
/* clang-format on */
