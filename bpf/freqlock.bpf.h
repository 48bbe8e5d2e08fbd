/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all BPF files share among themselves: contexts of tasks and CPUs, knobs, queue
 * ids and statistics. What one file offers to others is in the header of its name.
 * Nothing here is known to the agent; that is intf.h.
 */
#ifndef __FREQLOCK_BPF_H
#define __FREQLOCK_BPF_H

#include <scx/common.bpf.h>
#include <bpf_experimental.h>
#include "intf.h"
#include "policy/answer.h"
#include "policy/learn.h"
#include "policy/spin.h"
#include "policy/verifier.h"

#define FL_USEC   1000ULL
#define FL_NONE   (~0ULL)
#define FL_ASLEEP (-1)

/*
 * Queues: each CPU has one from which every CPU may take (its id is the CPU's),
 * one of parked tasks, which wait for this CPU on purpose and are left alone
 * until their time is over, and one of late tasks, which waited in the first for so
 * long that their deadlines no longer count; this one is in order of waiting. Each
 * slot of cgroups has one of tasks that a quota keeps from running, in that order as well. And one
 * has all that are held back for lock time, by the time at which they are let go.
 */
#define FL_PARK_BIT        (1ULL << 16)
#define FL_LATE_BIT        (1ULL << 17)
#define FL_LIMIT_BIT       (1ULL << 18)
#define FL_DEBTORS         (1ULL << 19)
#define fl_queue(cpu)      ((u64)(cpu))
#define fl_park(cpu)       ((u64)(cpu) | FL_PARK_BIT)
#define fl_late(cpu)       ((u64)(cpu) | FL_LATE_BIT)
#define fl_throttled(slot) ((u64)(slot) | FL_LIMIT_BIT)

/* An action of a task that makes another one runnable; it may leave its CPU next. */
enum fl_event {
	FL_EVENT_FORK,
	FL_EVENT_WAKE,
	FL_EVENT_SYNC, /* synchronous wake-up: the waker is about to sleep */
	FL_NR_EVENTS,
};

/* linux/sched.h, SCHED_BATCH and so on: macros, so not among the kernel's types. */
#define POLICY_BATCH 3
#define POLICY_IDLE  5
#define POLICY_EXT   7

/* linux/sched/prio.h, MAX_RT_PRIO, as well: real-time and deadline tasks are below it. */
#define PRIO_RT_END 100

enum fl_task_flags {
	FL_TASK_FORKED = 1 << 0,     /* has not run yet */
	FL_TASK_PARK = 1 << 1,       /* enqueue shall park it */
	FL_TASK_PREDICTED = 1 << 2,  /* a wait was predicted, to be compared */
	FL_TASK_ASKED = 1 << 3,      /* select_cpu chose its CPU, enqueue follows */
	FL_TASK_TO_IDLE = 1 << 4,    /* was sent to an idle CPU, with FL_TASK_PREDICTED */
	FL_TASK_HANDOFF = 1 << 5,    /* was given the lock, or the answer, that it waited for */
	FL_TASK_DISPLACED = 1 << 6,  /* enqueue follows, for a real-time task takes its CPU */
	FL_TASK_FOLLOWS = 1 << 7,    /* its waker announced that it leaves the CPU to it */
	FL_TASK_HAD_TURN = 1 << 8,   /* ran for half a slice before it was preempted */
	FL_TASK_SENT = 1 << 9,       /* enqueue shall put it into the queue of an idle CPU */
	FL_TASK_HELD = 1 << 10,      /* waits in the warm set, while CPUs outside may be idle */
	FL_TASK_HELD_BACK = 1 << 11, /* is to wait until it owes no lock time, or does */
};

/* A task waits for another of lesser weight, which holds the lock. */
struct inversion {
	u64 holder; /* fl_self(), 0 none */
	u64 holder_ran;
	u64 lock;
	u32 holder_level;
	u32 level; /* its own */
};

/*
 * A woken task went back to its previous CPU, which is this one, as the best of all: when idle
 * again, it is so for a while, and for bursts that are no longer. choose.bpf.c.
 */
struct last_back {
	u64 until; /* 0: it is to be seen */
	u64 burst; /* ns at full speed */
	u32 pid;
	s32 from; /* where the waker was */
};

struct task_ctx {
	/* Queues: clock.bpf.h, policy/deadline.h. */
	u64 vtime;        /* virtual time on the clock of @vtime_cpu; asleep, less that clock */
	u64 slept_vclock; /* the clock of @slept_cpu as it fell asleep */
	u64 deadline;
	u64 weight;        /* in effect: its own times the scale of its cgroup */
	u64 request;       /* CPU time that it asked for, ns, from @run_start on; 0 not yet */
	u64 own_slice;     /* ns, by sched_setattr(); 0: that of its context */
	u64 run_start;     /* 0 when not running */
	u64 charged_at;    /* its time on the CPU is in @vtime up to here */
	u64 served;        /* virtual time that it got recently, as of ... */
	u64 served_at;     /* ... then */
	u64 waiting_since; /* when it last became runnable */
	u64 waited_since;  /* the same, of what it waited for until it was picked */
	u64 owed_since;    /* its last turns were too short to end a wait since then, or 0 */
	u64 queued_work;   /* what it adds to its CPU's queued_work */
	s32 queued_cpu;    /* there, or -1 */
	s32 vtime_cpu;     /* or FL_ASLEEP, ... */
	s32 slept_cpu;     /* ... on the clock of that one */
	u32 flags;         /* enum fl_task_flags */
	/* Its share: cgroup.bpf.c. */
	u64 own_weight; /* by its nice value and its context */
	u64 task_group; /* the address of its struct task_group, ... */
	u32 cgroup;     /* ... and the slot where that one's figures are */
	bool idles;     /* of SCHED_IDLE, or in a cgroup with cpu.idle */
	/* Others here, for they fill a word: */
	bool events;   /* there is an event: learn.bpf.c */
	bool late;     /* it waited for so long that its next turn is a short one: late.bpf.c */
	bool reported; /* it has exited, and the agent has its figures: account.bpf.c */
	u64 counted;   /* what it adds to its cgroup's weight while it is runnable, else 0 */
	/* Quotas: bandwidth.bpf.c. */
	u64 granted;         /* ns that it took from its cgroup's quota ... */
	u64 granted_at;      /* ... as it had run for so long, by the kernel */
	u32 granted_by;      /* the slot of that one, 0 none: it runs without */
	u32 throttled_by;    /* it waits since it runs no more for the quota of this one, else 0 */
	u64 throttled_until; /* for the quota it waited until then, 0 still or never */
	/* Knobs: context.bpf.c. */
	u32 policy;              /* where the values of its knobs stand, policy/context.h */
	u32 context_version;     /* its context was looked up by this one, ... */
	struct fl_traits traits; /* ... and by these */
	/* What it does: learn.bpf.c. */
	u64 ran;                            /* ns since it last slept */
	u64 work;                           /* the same, in ns at full speed */
	u32 burst;                          /* average work between sleeps, 0 unknown */
	u32 away;                           /* average length of one after @left_at, 0 unknown */
	u64 event_at[FL_NR_EVENTS];         /* first since it last left its CPU, 0 none */
	struct learned leave[FL_NR_EVENTS]; /* time from such an event to leaving */
	u64 left_at;                        /* when it fell asleep after one, else 0 */
	u64 class_key;                      /* of the fork that made this task */
	u64 fork_key;                       /* of the fork that it made itself last */
	/* Placement: place.bpf.c, park.bpf.c. */
	s32 child_cpu;      /* home of its children: where they are sent, -1 none yet */
	u32 child_away;     /* children in a row that went elsewhere */
	s32 park_target;    /* idle CPU to go to when the wait was too long, or -1 */
	s32 ran_on;         /* the CPU that it was given last, -1 none yet */
	u32 predicted_wait; /* ns, with FL_TASK_PREDICTED */
	u32 park_spared;    /* ns that it would have waited elsewhere */
	u64 park_until;
	/* Spinning: spin.bpf.c. */
	struct spin_watch spin;
	/* What it holds: graph.bpf.c, donate.bpf.c. A lock's waiters write into its holder's holds.
	 */
	u64 holds;        /* slots of locks that it holds and others wait for */
	u64 boosted_at;   /* boosted since then, 0 not boosted */
	u64 allowance;    /* boosted time that it has left, ns ... */
	u64 allowance_at; /* ... at this time */
	u64 keep_ns;      /* may go on undisturbed for so long, by fl_hold() */
	u64 hold_ns;      /* length of such a hold, 0 unknown, by fl_hold() */
	u64 debt_until;   /* it owes others lock time until then: debt.bpf.c */
	s32 big_cpu;      /* it is to continue there, or -1; written by its waiter */
	u32 level;        /* of its own nice value */
	u32 handed_level; /* with FL_TASK_HANDOFF: a policy orders it as one of this level; 0: none
			     does */
	/* What it waits for: edge.bpf.c, lock.bpf.c. */
	u32 cookie;     /* distinguishes it from another task with its PID */
	u32 edge;       /* to the lock that it waits for, 0 none */
	u64 edge_since; /* when its edge was made */
	u64 wait_hash;  /* of the lock for which it is about to sleep or does, 0 none */
	u64 wait_since; /* 0: the wait is not to be in the profile */
	u64 wait_owner; /* fl_self() of that one's holder, 0 once it slept */
	/* Who answers it: answer.bpf.c. */
	struct answers answers;
	/* What it says of its locks: hint.bpf.c. */
	u64 hint;       /* where its hint is in its memory, 0 none (hint.h) ... */
	u64 hint_exec;  /* ... of the program that it was then, by its number */
	u64 hint_holds; /* hash of the lock that it said to hold, 0 none */
	u64 hint_waits; /* of the one for which it said to spin, while it has an edge */
	u64 hint_since; /* then it began to; 0: that is not to be in the profile */
	/* What is reported of it: account.bpf.c. */
	u64 counted_at; /* its time on the CPU is in @stats up to here */
	struct fl_task_stats stats;
	struct inversion inversion;
};

/*
 * Written by the CPU itself, except queued_work (atomic) and arrivals, of which one may be
 * lost as two tasks come at once: it changes all the same. Others read without a lock: a value that
 * is stale by a task switch makes a worse prediction, and the timer of parked tasks bounds what
 * that can cost.
 */
struct cpu_ctx {
	u64 vclock; /* vtime of the latest task to be picked */
	/* The task that runs: main.bpf.c. */
	u64 running_since; /* 0: runs no task of ours */
	u64 running_deadline;
	u64 running_rest;  /* work the running task was expected to have left at its start */
	u64 running_away;  /* how long the running task will sleep after it left, 0 unknown */
	u64 running_slice; /* ns, at its start */
	u64 running_weight;
	bool running_idles;
	u64 credit;    /* CPU time, ns, that the task is owed which comes from elsewhere next */
	u64 leave_at;  /* when the running task is expected to leave by itself, 0 unknown */
	u64 last_stop; /* when it last ceased to run a task */
	/* Its queues: clock.bpf.h, queue.bpf.c. */
	u64 queued_work; /* and weights: policy/balance.h */
	u32 arrivals;    /* changes as a task comes that others may take */
	u64 next_balance;
	/* Turns: late.bpf.c. */
	u64 next_look; /* for late tasks in its queue */
	u64 look_ns;   /* what such a look took from the running task's turn */
	u64 turn_ends; /* when the timer ends the running task's turn; 0: it is not set */
	/* A task that has it for itself, without ticks: alone.bpf.c. */
	u64 alone_since; /* it is charged up to then; 0: there is none */
	u64 alone_vtime; /* its virtual time as of then */
	u64 slice_since; /* when the last of its slices would have begun, once another came */
	/* Speed: freq.bpf.c. */
	u64 speed_at;  /* time of @speed and @util */
	u64 busy_ns;   /* of the time since then, as far as ... */
	u64 busy_at;   /* ... here, where a task runs, or the last one stopped */
	bool was_idle; /* it found no other since then */
	u32 speed;     /* SPEED_ONE for full */
	u32 util;      /* 0..1024 */
	u32 asked;     /* last request to schedutil */
	u64 done;      /* work that it did, ns at full speed */
	/* Spinning: spin.bpf.c. */
	u32 spinner;           /* process of the running task if that spins, else 0 */
	struct last_back back; /* written by wakers, who may mix two: one is placed worse */
	/* What its tasks do: learn.bpf.c. */
	u64 idle_exit;    /* average time from being sent a task while idle to running it, ... */
	u64 idle_exit_at; /* ... as of then: fl_idle_exit() */
	u64 overrun;      /* by how much waits on purpose exceed what was predicted, ... */
	u64 overrun_at;   /* ... as of then */
	struct learned exit_leave; /* time from waking another to leaving, when exiting */
	u32 running;               /* the task on it, 0 none of ours */
	/* Locks: donate.bpf.c. */
	u32 waits_edge;  /* the last task to leave waits for a lock: its edge, else 0 */
	u32 called_edge; /* a real-time task waits for a task queued here: its edge; by that one */
	bool boosted;    /* the running task was picked with inherited priority */
	/* Wake-ups: wake.bpf.c. */
	bool followed; /* one waits in its local queue for the running one to leave, as it said */
	bool wakee;    /* a woken task preempts the running one */
	/*
	 * A task may be parked here; false says none. Set before one is
	 * inserted, cleared by the CPU when it finds none: in between, one that
	 * just came is overlooked until its timer fires.
	 */
	bool parked;
	bool holds;  /* a task may wait in its queue for which no idle CPU was woken: warm.bpf.c */
	bool in_set; /* it is one of the CPUs that the load keeps warm, if there are any */
	bool late;   /* a task may be in its queue of late ones; set and cleared as parked is */
	bool released; /* one may be in its queue that is not in queued_work: bandwidth.bpf.c */
	bool late_ran; /* of those and the others, they had the last turn */
	/* CPUs that go: hotplug.bpf.c. */
	bool going;   /* it is being made inactive, or about to be */
	bool offline; /* so at load, or from the kernel's notice that it goes until it is back */
} __attribute__((aligned(128)));

struct cpu_stats {
	u64 count[FL_NR_STATS];
} __attribute__((aligned(64)));

struct task_ctx_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
};

/*
 * Weak, not extern: clang gives an extern map a place in .maps where the object
 * has maps of its own, and the linker then sees two definitions.
 */
struct task_ctx_map task_ctxs __weak SEC(".maps");
extern struct cpu_ctx cpu_ctxs[FL_MAX_CPUS];
extern struct cpu_stats cpu_stats[FL_MAX_CPUS];
extern volatile struct tunables tunables;
extern volatile struct fl_policy policies[FL_MAX_POLICIES];
extern volatile struct cpu_topo cpu_topo[FL_MAX_CPUS];
extern u64 tick_ns; /* main.bpf.c: time between two ticks, ns, 0 not known yet */
extern const volatile u32 nr_cpus;
extern volatile u32 nr_present;
extern volatile bool smt_present;
extern const volatile bool capacity_differs;
extern const volatile bool displaces;
extern const volatile bool isolates;
extern const volatile bool partial;
extern const volatile bool sees_locks;
extern const volatile bool sees_answers;
extern const volatile bool tickless;
extern const volatile bool tickless_cpus[FL_MAX_CPUS];
extern const volatile bool reports_tasks;
extern const volatile bool adapts;
extern const volatile bool shares_cgroups;

struct cpu_order_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FL_MAX_CPUS);
	__type(key, u32);
	__type(value, struct cpu_order);
};

struct cpu_order_map cpu_orders __weak SEC(".maps");

/* Masking is how the verifier sees that a CPU id is in range. */
#define fl_cpu(id)  (&cpu_ctxs[(u32)(id) & (FL_MAX_CPUS - 1)])
#define fl_topo(id) (&cpu_topo[(u32)(id) & (FL_MAX_CPUS - 1)])

/*
 * Counts on the CPU that it happens on. An interrupt between load and store may
 * lose a count; that is all it can do.
 */
#define fl_count(name)    fl_count_at(FL_STAT_##name)
#define fl_count_at(stat) (cpu_stats[bpf_get_smp_processor_id() & (FL_MAX_CPUS - 1)].count[stat]++)

static __always_inline struct task_ctx *fl_task(const struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, (struct task_struct *)p, 0, 0);
}

/* True if what happens is the current task's doing, and not an interrupt's. */
static __always_inline bool fl_from_task(void)
{
	return !bpf_in_hardirq() && !bpf_in_serving_softirq();
}

/* The values of the knobs that hold for a task; without a context, those for all. */
static __always_inline const volatile struct fl_policy *fl_policy(const struct task_ctx *tctx)
{
	return &policies[in_range(tctx ? tctx->policy : 0, FL_MAX_POLICIES)];
}

/* Its time slice, ns: what it asks for at a time. */
static __always_inline u64 fl_slice(const struct task_ctx *tctx)
{
	if (tctx && tctx->own_slice)
		return tctx->own_slice;
	return fl_policy(tctx)->slice_us * FL_USEC;
}

/* What the task asks for next: the rest of a request that was cut short, or a slice. */
static __always_inline u64 fl_request(const struct task_ctx *tctx)
{
	return tctx->request ?: fl_slice(tctx);
}

static __always_inline bool fl_is_pinned(const struct task_struct *p)
{
	return p->nr_cpus_allowed == 1 || is_migration_disabled(p);
}

/* True if the CPU is left alone, one of an isolated partition of cpusets. */
static __always_inline bool fl_is_isolated(s32 cpu)
{
	return isolates && fl_topo(cpu)->present == FL_ISOLATED;
}

/*
 * @p as a pointer that nobody has to trust. For each pointer that is loaded by a trusted one the
 * verifier looks up to four names up in the kernel's BTF, each by a search from its start: a fifth
 * of what loading took.
 */
static __always_inline const struct task_struct *fl_cast(const struct task_struct *p)
{
	return bpf_core_cast(p, struct task_struct);
}

/*
 * The CPUs that @p may use. p->cpus_ptr is another mask only while migration is disabled, which
 * whoever takes a task elsewhere looks at first; this one is no pointer to be loaded.
 */
static __always_inline const struct cpumask *fl_cpus(const struct task_struct *p)
{
	return &p->cpus_mask;
}

/* True if @p may run on @cpu, which is online. */
static __always_inline bool fl_may_use(const struct task_struct *p, s32 cpu)
{
	return bpf_cpumask_test_cpu(cpu, fl_cpus(p)) && !fl_cpu(cpu)->offline;
}

/* True if @p may be sent to @cpu as well. */
static __always_inline bool fl_allowed(const struct task_struct *p, s32 cpu)
{
	return fl_may_use(p, cpu) && !fl_is_isolated(cpu);
}

/* True if the CPU runs or is about to run something of ours. */
static __always_inline bool fl_is_busy(s32 cpu)
{
	return fl_cpu(cpu)->running_since != 0;
}

/* The task that ran on the CPU does no more. */
static __always_inline void fl_cpu_left(struct cpu_ctx *cctx, u64 now)
{
	cctx->running_since = 0;
	cctx->running = 0;
	cctx->last_stop = now;
}

/* True if the kernel asks nothing about the CPU, or soon will not. */
static __always_inline bool fl_is_changing(const struct cpu_ctx *cctx)
{
	return cctx->going || cctx->offline;
}

/* True if the kernel may stop the ticks of @cpu while it runs a task. */
static __always_inline bool fl_is_tickless(s32 cpu)
{
	return tickless && tickless_cpus[(u32)cpu & (FL_MAX_CPUS - 1)];
}

/* True if a task waits at @cpu, which runs one. */
static __always_inline bool fl_is_awaited(s32 cpu)
{
	return READ_ONCE(fl_cpu(cpu)->queued_work) || READ_ONCE(fl_cpu(cpu)->released) ||
	       scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) > 0;
}

/* Tasks on a CPU's run queue, of every class, the running one included. */
static __always_inline u32 fl_nr_running(s32 cpu)
{
	struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);

	return rq ? rq->nr_running : 0;
}

/*
 * True if @p is of a class that goes before ours: real-time and deadline tasks; with --partial
 * all that did not ask for us, but for idle threads, whose PID is 0. One of ours that
 * inherits real-time priority is among the first.
 */
static __always_inline bool fl_is_higher(const struct task_struct *p)
{
	return p->prio < PRIO_RT_END || (partial && p->pid && p->policy != POLICY_EXT);
}

/*
 * True if a task of a higher class has the CPU. Nothing reports one that takes an
 * idle CPU, so this looks there, and only where no task of ours runs.
 */
static __always_inline bool fl_is_taken(s32 cpu)
{
	struct rq *rq;

	if (fl_is_busy(cpu))
		return false;
	rq = bpf_per_cpu_ptr(&runqueues, cpu);
	return rq && fl_is_higher(rq->curr);
}

/* A PID may come again, with another cookie. */
static __always_inline u64 fl_self(const struct task_struct *p, const struct task_ctx *tctx)
{
	return (u64)p->pid << 32 | tctx->cookie;
}

/* The task that fl_self() called @self, with a reference, and its context; NULL if it is gone. */
static __always_inline struct task_struct *fl_task_of(u64 self, struct task_ctx **tctx)
{
	struct task_struct *p = bpf_task_from_pid(self >> 32);

	if (!p)
		return NULL;
	*tctx = fl_task(p);
	if (*tctx && fl_self(p, *tctx) == self)
		return p;
	bpf_task_release(p);
	return NULL;
}

/* The id of the cgroup of @p in the unified hierarchy, which is the inode of its folder. */
static __always_inline u64 fl_cgroup_id(struct task_struct *p)
{
	return BPF_CORE_READ(p, cgroups, dfl_cgrp, kn, id);
}

#endif /* __FREQLOCK_BPF_H */
