/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only ABI between the BPF side and the agent: constants, knobs,
 * statistics and shared structs. Fixed-width types only; a change of layout
 * changes FL_ABI_VERSION, which the agent compares with the loaded object's.
 */
#ifndef __FREQLOCK_INTF_H
#define __FREQLOCK_INTF_H

#ifndef __VMLINUX_H__
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
#include <stdbool.h>
#endif

enum fl_consts {
	FL_ABI_VERSION = 7,
	FL_MAX_CPUS = 1024,
	FL_GROUP_CPUS = 64, /* CPUs in a group: the bits of a word */
	FL_MAX_GROUPS = 256,
	FL_FULL_SPEED = 1024,   /* speeds and shares are 0..1024 */
	FL_HIST_SLOTS = 24,     /* log2 buckets of microseconds: [0,1), [1,2), [2,4) ... */
	FL_MAX_CLASSES = 4096,  /* fork classes remembered, least recently used go */
	FL_MAX_LOCKS = 4096,    /* locks with waiters, at one time */
	FL_MAX_PROFILES = 4096, /* locks profiled, least recently waited for go */
	FL_PROFILE_SLOTS = 128, /* buckets of times, policy/profile.h */
	FL_PROFILE_STACK = 32,  /* words of stack kept of a lock's first waiter */
	FL_COMM = 16,           /* bytes of a task's name, with a 0 at the end */
	FL_NICE_IDLE = 20,     /* stands for the policy SCHED_IDLE where a nice value is reported */
	FL_MAX_CONTEXTS = 64,  /* contexts in a file: as many as a word has bits */
	FL_MAX_POLICIES = 256, /* two banks: one for tasks in no context, one for each context */
	FL_VERSION_NR = 1,     /* bits of a version: the bank, from here the number of contexts, */
	FL_VERSION_CHANGES = 8, /* and from here a count of changes (policy/context.h) */
	FL_GLOB = 256,          /* bytes of a pattern, with a 0 at the end */
	FL_GLOB_TEXT =
		512, /* the same of what it is to fit; of longer paths, the folders that do */
	FL_MAX_CGROUPS = 4096, /* cgroups remembered with the contexts that ask for them */
	FL_MAX_SHARES = 1024,  /* cgroups with tasks that share CPU time by weight */
	FL_SLOT_REFS = 0xffff, /* of a lock slot's id, those that count its waiters */
	FL_LEDGER_SLOTS = 64,  /* processes that are counted separately on one CPU in one period */
};

/* Placement, as ARCHITECTURE.md describes each. */
enum fl_mode {
#define MODE(name, cli, flags, help) FL_MODE_##name,
#include "modes.h"
#undef MODE
	FL_NR_MODES,
};

enum fl_mode_flags {
	SCANS = 1 << 0,     /* looks at the idle CPUs before it decides */
	BY_TASKS = 1 << 1,  /* places what a task forks or wakes; off, what an interrupt wakes */
	WARM = 1 << 2,      /* a waiting task is taken by the fastest idle CPU, not by any */
	WARM_ONLY = 1 << 3, /* looks at CPUs of the warm set alone */
	PREDICTS = 1 << 4,  /* goes by predictions, which are compared with what came */
};

/* Where a CPU's present speed comes from. */
enum fl_freq_source {
#define SOURCE(name, cli, flags, help) FL_FREQ_##name,
#include "sources.h"
#undef SOURCE
	FL_NR_FREQ_SOURCES,
};

enum fl_source_flags {
	GIVEN = 1 << 0,    /* speeds are as the agent was told, and no model changes them */
	MODELLED = 1 << 1, /* nothing is measured: speed rises with busy time by the model, too */
	CPUFREQ = 1 << 2,  /* needs cpufreq, ... */
	COUNTERS = 1 << 3, /* ... APERF and MPERF, ... */
	HOOKED = 1 << 4,   /* ... or the tracepoint power:cpu_frequency */
};

/*
 * What a trace has: bpf/record.bpf.c writes those that the kernel's tracepoints report,
 * bpf/decisions.bpf.c those that our scheduler alone knows of.
 */
enum fl_trace {
#define EVENT(name, cli, flags, help) FL_TRACE_##name,
#include "events.h"
#undef EVENT
	FL_NR_TRACE,
};

enum fl_trace_flags {
	TRACED = 1 << 0, /* a tracepoint reports it, under any scheduler */
	OURS = 1 << 1,   /* it is our scheduler's own doing */
	ASKED = 1 << 2,  /* there are many of them: recorded where they are named alone */
};

/* Decisions that a user's policy may make, freqlock_policy.bpf.h. */
enum fl_hook_name {
#define HOOK(name, cli, flags, help) FL_HOOK_##name,
#include "hook_names.h"
#undef HOOK
	FL_NR_HOOKS,
};

enum fl_hook_flags {
	HOOK_ANY = 0,
	HOOK_LOCKS = 1 << 0,  /* without --locks nobody is asked */
	HOOK_TRACES = 1 << 1, /* asked where the kernel is traced, too */
};

/* About whom a policy is asked. */
enum fl_hook_whose {
	FL_HOOK_OFF,
	FL_HOOK_ALL,
	FL_HOOK_CONTEXT, /* and more: tasks in the context of this number beyond, 0 those in none */
};

/* One of these decisions. */
struct fl_hook {
	u32 whose; /* enum fl_hook_whose */
	u32 slow;  /* 1: its policy took too long, and is asked no more */
	u64 timed; /* calls that were timed, and what they took */
	u64 ns;
};

/* Distances between two CPUs; each includes the ones before it. */
enum fl_distance {
	FL_SAME_CPU,
	FL_SAME_CORE,
	FL_SAME_LLC,
	FL_SAME_NODE,
	FL_FAR,
	FL_NR_DISTANCES,
};

/* Those for all, and those that may differ from context to context. */
#define KNOB(name, unit, def, min, max, when, meaning) KNOB_##when(name)
#define KNOB_start(name)                               u64 name;
#define KNOB_live(name)                                u64 name;
#define KNOB_task(name)
struct tunables {
#include "knobs.h"
};
#undef KNOB_start
#undef KNOB_live
#undef KNOB_task
#define KNOB_start(name)
#define KNOB_live(name)
#define KNOB_task(name) u64 name;
struct fl_policy {
	u64 mode; /* enum fl_mode */
#include "knobs.h"
};
#undef KNOB_start
#undef KNOB_live
#undef KNOB_task
#undef KNOB

/* What a context may ask of its tasks; the first two are patterns. */
enum fl_asks { FL_ASKS_COMMAND, FL_ASKS_CGROUP, FL_NR_GLOBS, FL_ASKS_USER = FL_NR_GLOBS };

struct fl_glob {
	u8 pattern[FL_GLOB];
};

struct fl_rule {
	u32 asks; /* a bit for each; all that is asked for must be so */
	u32 uid;
	struct fl_glob glob[FL_NR_GLOBS];
};

/* What of a task its context depends on. */
struct fl_traits {
	u64 comm[FL_COMM / 8];
	u64 cgroup; /* id of its cgroup in the unified hierarchy */
	u64 uid;    /* its real user */
};

enum fl_stat {
#define STAT(name, group, desc) FL_STAT_##name,
#include "stats.h"
#undef STAT
	FL_NR_STATS,
};

/* What the BPF side makes of the task @pid. */
struct fl_explained {
	u32 pid;
	u32 found; /* 0: it has no such task */
	u32 tgid;
	u32 version; /* policy/context.h */
	u32 context; /* number of the context that it fits, 0 none */
	u32 policy;  /* where the policy stands that it has now */
	u64 weight;
	struct fl_traits traits;
	u8 path[FL_GLOB_TEXT]; /* of its cgroup */
};

enum fl_present {
	FL_ABSENT,
	FL_KNOWN,    /* online when the agent looked */
	FL_CAME,     /* came since then: where it is, is not known */
	FL_ISOLATED, /* online, and left alone: only tasks that are bound there run there */
};

/* Where each CPU is; written by the agent at start, and when CPUs come and go. */
struct cpu_topo {
	u32 core; /* all ids are global and dense */
	u32 llc;
	u32 node;
	u32 capacity; /* 0..1024 of the machine's largest */
	s32 sibling;  /* another hardware thread of the core, or -1 */
	u32 present;  /* enum fl_present */
	u32 group;    /* FL_MAX_GROUPS: none is known yet */
	u32 place;    /* in its group */
};

/* CPUs under one last-level cache; the groups of a node have numbers in a row. */
struct cpu_group {
	u16 first; /* group of its node */
	u16 end;   /* and one after the last */
	u16 nr;    /* CPUs in it */
	u16 cpu[FL_GROUP_CPUS];
};

/* All CPUs that are present, nearest first; `first[d]` is where distance d begins. */
struct cpu_order {
	u32 first[FL_NR_DISTANCES + 1];
	u32 nr;
	u16 cpu[FL_MAX_CPUS];
};

/* Predicted (row) against real (column), log2 of microseconds. */
struct fl_hist2 {
	u64 slot[FL_HIST_SLOTS][FL_HIST_SLOTS];
};

enum fl_hist { FL_HIST_WAIT, FL_HIST_BURST, FL_NR_HISTS };

enum fl_lock_kind {
	FL_LOCK_NONE, /* a profile that is not filled yet */
	FL_LOCK_FUTEX,
	FL_LOCK_PI,
	FL_LOCK_MUTEX,
	FL_LOCK_RWSEM,
	FL_LOCK_MMAP, /* the rwsem of a process's address space */
	FL_LOCK_HINT, /* reported by its threads, hint.h */
};

/* What is known of one lock; times in ns. All but the counts is of its first waiter. */
struct fl_lock_profile {
	u64 addr;
	u64 cgroup; /* inode of its folder */
	/* Of futexes, words from the top of the user's stack; else callers in the kernel. */
	u64 stack[FL_PROFILE_STACK];
	u32 tgid; /* 0: a lock of the kernel */
	u32 kind; /* enum fl_lock_kind */
	char comm[FL_COMM];
	u64 waits;
	u64 wait_ns;
	u64 wait_longest_ns;
	u64 holds;       /* that ended with a handoff by the holder, and for how long before ... */
	u64 hold_ns;     /* ... there had been waiters */
	u64 holds_small; /* of these, ended on a CPU that is not of the largest */
	u64 preempted;   /* times when a holder lost its CPU while there were waiters */
	u32 wait_slot[FL_PROFILE_SLOTS];
	u32 hold_slot[FL_PROFILE_SLOTS]; /* of @holds */
};

struct fl_task_stats {
#define TASK_STAT(name, unit, desc) u64 name;
#include "taskstats.h"
#undef TASK_STAT
};

/* What the tasks of one policy did, for --adapt: sums that only grow, in ns. */
struct fl_done {
	u64 run;       /* on a CPU */
	u64 wait;      /* could have run and did not, from wake-up or preemption on */
	u64 inversion; /* asleep for a lock that a task of lesser weight holds */
	u64 work;      /* done while on a CPU and not known to spin, at full speed */
};

/* A task as it is reported to the agent: by the iterator, and when it exits. */
struct fl_task_record {
	u64 start;         /* when it was born, ns since boot: with the PID it is unique */
	u64 process_start; /* the same of its process's first thread */
	u64 cgroup;        /* inode of its folder */
	u32 pid;
	u32 tgid;
	s32 nice; /* or FL_NICE_IDLE */
	u32 uid;
	char comm[FL_COMM];
	char process[FL_COMM]; /* name of its process's first thread */
	struct fl_task_stats stats;
};

/* A CPU as it is at one moment. */
struct fl_cpu_state {
	u32 speed;   /* 0..1024 of the machine's fastest at its best */
	u32 util;    /* 0..1024, recently */
	u32 running; /* the task on it, 0 none of ours */
	u32 warm;    /* 1: busy, or was within nest_idle_us */
	u64 queued;  /* work that waits there, ns at full speed */
};

/* What a process did on one CPU in one period, neighbours.bpf.c. */
struct fl_ledger_entry {
	u64 period;    /* the word of that period; an entry of any other is free */
	u64 start;     /* when the process was born, ns since boot */
	u64 cgroup;    /* inode of its folder */
	u64 ran;       /* ns on the CPU */
	u64 waited;    /* ns in which a task waited for it, summed over tasks */
	u64 throttled; /* ns in which a task waited for a quota, summed likewise */
	u64 claim;     /* all three, each task's times its weight over that of nice 0 */
	u32 tgid;      /* 0: threads of the kernel */
	u32 unused;
};

struct fl_ledger_bank {
	struct fl_ledger_entry entry[FL_LEDGER_SLOTS];
	struct fl_ledger_entry rest; /* of those that found no room */
};

/* A CPU's: periods in turn have the banks `even` and `odd`, by the word's last bit. */
struct fl_ledger {
	struct fl_ledger_bank even;
	struct fl_ledger_bank odd;
	struct fl_ledger_bank look; /* what ran and waited as the period ended */
};

/* The period that ended last. */
struct fl_period {
	u64 word;   /* when it began, and its bank; 0: there was none */
	u64 length; /* ns */
};

/* A process as it is reported to the agent. */
struct fl_process_record {
	u64 start;  /* when it was born, ns since boot */
	u64 cgroup; /* inode of its folder */
	u64 weight; /* of its first thread */
	u32 pid;
	u32 unused;
};

/* How the wait in an inversion event ended. */
enum fl_inversion_end {
	FL_END_HANDED,  /* the holder woke the waiter */
	FL_END_PASSED,  /* another task did: the lock had gone to that one before */
	FL_END_GAVE_UP, /* its time was up, or it waits no more by its hint */
	FL_NR_INVERSION_ENDS,
};

/* A task waited for a lock that a task of lesser weight held. */
struct fl_inversion {
	u64 at;          /* when it ended, ns of CLOCK_MONOTONIC */
	u64 length;      /* ns */
	u64 holder_off;  /* ns of these in which the holder was not on a CPU */
	u64 lock;        /* key of its profile */
	u32 end;         /* enum fl_inversion_end */
	s16 waiter_nice; /* -21: of a real-time task */
	s16 holder_nice;
	u32 waiter;
	u32 waiter_tgid;
	u32 holder;
	u32 holder_tgid; /* 0: it is gone */
	char waiter_comm[FL_COMM];
	char holder_comm[FL_COMM];
};

_Static_assert(sizeof(struct cpu_topo) == 32, "cpu_topo is shared with the agent");
_Static_assert(sizeof(struct cpu_order) == 28 + 2 * FL_MAX_CPUS,
	       "cpu_order is shared with the agent");

#endif /* __FREQLOCK_INTF_H */
