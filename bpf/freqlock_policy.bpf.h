/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For policies by users: C that `scx_freqlock policy load FILE.bpf.c` compiles, has the kernel
 * verify, and puts into the running scheduler, without a restart. A policy has one or more of
 * these functions, each written as
 *
 *	FREQLOCK_POLICY(may_preempt_holder, about)
 *	{
 *		return about->task.tgid == 4242 ? FREQLOCK_NO : FREQLOCK_DEFAULT;
 *	}
 *
 * where the first word is the function and the second what it calls its one argument:
 *
 * may_preempt_holder(const struct freqlock_holder *)
 *	A lock's holder runs, others wait for the lock, and another task wants the CPU.
 *	FREQLOCK_YES: it loses the CPU as if nobody waited. FREQLOCK_NO: it keeps the CPU.
 * boost_holder(const struct freqlock_holder *)
 *	What a holder inherits is worked out. A level: that of its best waiter is taken to be
 *	this. FREQLOCK_NO: it inherits nothing.
 * waiter_level(const struct freqlock_waiter *)
 *	A task is about to sleep for a lock. A level: what it gives to the holder.
 * order_handoff(const struct freqlock_handoff *)
 *	A waiter is woken for a lock that is to be its now. By default it preempts what runs on
 *	its CPU at once, if its deadline is the earlier one. A level: the same, and its deadline
 *	is that of a task of this level. FREQLOCK_NO: it takes its turn, as if it had waited for
 *	something else; whoever runs may take the lock before it.
 * profile_filter(const struct freqlock_profiled *)
 *	A task is about to wait for a lock. FREQLOCK_NO: the wait is left out of the profile of
 *	locks, and of a lock that has no other one nothing is kept. FREQLOCK_YES: it is in.
 * is_spinner(const struct freqlock_spinner *)
 *	A tick hit a task of a process with several threads, in user mode. FREQLOCK_YES: it
 *	only waits, and gives way to runnable tasks of its process. FREQLOCK_NO: it works.
 * place(const struct freqlock_placement *)
 *	A woken or forked task needs a CPU. A CPU's number: it goes there.
 *
 * FREQLOCK_DEFAULT leaves the decision to the scheduler. Answers out of range, and CPUs that the
 * task may not use, count as that (statistic policy_refused). pi_budget_us, pi_nopreempt_us and
 * pi_bandwidth hold whatever a policy says.
 *
 * A policy may have variables, constants and functions of its own. It may call neither helpers nor
 * kernel functions, so what it knows is what it is given. Hooks of locks are asked in the
 * scheduler's own operations, profile_filter where a lock is waited for; on behalf of real-time
 * waiters only the latter is.
 */
#ifndef __FREQLOCK_POLICY_BPF_H
#define __FREQLOCK_POLICY_BPF_H

#ifndef __VMLINUX_H__
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;
typedef _Bool bool;
#define true  1
#define false 0
#endif

/* Of the functions and structs here; a policy of another version is refused. */
#define FREQLOCK_POLICY_ABI 2

/* Answers; where a CPU is asked for, 0 and 1 are CPUs. */
#define FREQLOCK_DEFAULT (-1)
#define FREQLOCK_NO      0
#define FREQLOCK_YES     1

/*
 * Levels: what a task weighs by its nice value, 2 for nice 19 to 41 for nice -20. 1 stands for
 * SCHED_IDLE, and 42 for real-time tasks, which is no answer.
 */
#define FREQLOCK_LEVEL(nice) (21 - (nice))
#define FREQLOCK_LEVEL_MIN   1
#define FREQLOCK_LEVEL_MAX   FREQLOCK_LEVEL(-20)

/* A task. Times are in ns, a weight is 100 for nice 0. */
struct freqlock_task {
	char comm[16];
	u32 pid;
	u32 tgid; /* its process */
	u32 level;
	u32 context; /* number in the file of contexts, from 1; 0: in none */
	u64 weight;  /* with that of its cgroup */
	u64 ran;     /* CPU time since it last slept, until it last stopped */
};

/* A task holds a lock that others wait for. */
struct freqlock_holder {
	struct freqlock_task task;
	u64 other_weight; /* of the task that wants its CPU, 0 if that is not asked */
	u32 best;         /* level of the best waiter */
	u32 cpu;          /* where it runs or ran last */
};

/* A task is about to wait for a lock. */
struct freqlock_waiter {
	struct freqlock_task task;
	u64 lock; /* a number that stands for the lock while the scheduler runs */
	u32 holder_pid;
	u32 unused;
};

/* A task is woken for a lock, by whoever held it or another task. */
struct freqlock_handoff {
	struct freqlock_task task;
	u64 lock; /* as above */
	u32 waker_pid;
	u32 waker_cpu;
	u32 waker_node;
	u32 waker_llc;      /* number of its last-level cache */
	u32 waker_capacity; /* 1024 for the biggest CPU */
	u32 prev_cpu;       /* where the task ran last, and so on */
	u32 prev_node;
	u32 prev_llc;
	u32 prev_capacity;
	u32 waiting; /* tasks that still wait for the lock */
};

/* A task is about to wait for a lock, which may enter the profile. */
struct freqlock_profiled {
	struct freqlock_task task;
	u64 lock; /* as above */
	u64 addr; /* of the lock, in the process's memory or the kernel's */
	u32 kind; /* FREQLOCK_FUTEX and so on */
	u32 unused;
};

/* Kinds of locks. */
#define FREQLOCK_FUTEX 1 /* glibc's mutexes and what has their words */
#define FREQLOCK_PI    2 /* PI futexes */
#define FREQLOCK_MUTEX 3 /* mutexes of the kernel */
#define FREQLOCK_RWSEM 4 /* its semaphores for readers and writers */
#define FREQLOCK_HINT  6 /* reported by threads, as libfreqlock's are */

/* A tick hit a task. */
struct freqlock_spinner {
	struct freqlock_task task;
	u64 ip;  /* where it executes */
	u64 ran; /* CPU time since it last slept, until now */
	u32 cpu;
	u32 found; /* 1: the scheduler takes it for a spinner */
};

/* A task needs a CPU. */
struct freqlock_placement {
	struct freqlock_task task;
	u32 prev_cpu; /* where it ran last */
	u32 prev_node;
	u32 this_cpu; /* where it is woken or forked */
	u32 this_node;
	u32 nr_cpus; /* CPUs have numbers below this */
	u32 fork;    /* 1: it is new */
	u32 waker;   /* number of the task on @this_cpu, 0: an interrupt wakes it */
	u32 unused;
};

/*
 * A question, as the scheduler writes it, and the answer. One map has all of them; the scheduler
 * and all policies share it.
 */
struct freqlock_call {
	s32 answer;
	u32 busy; /* 1: the question stands, so no other one is asked meanwhile */
	union {
		struct freqlock_holder may_preempt_holder;
		struct freqlock_holder boost_holder;
		struct freqlock_waiter waiter_level;
		struct freqlock_handoff order_handoff;
		struct freqlock_profiled profile_filter;
		struct freqlock_spinner is_spinner;
		struct freqlock_placement place;
	};
} __attribute__((aligned(128)));

/* A function may be added as long as policies that were compiled before have the same map. */
_Static_assert(sizeof(struct freqlock_call) == 128, "a new FREQLOCK_POLICY_ABI is due");

/* Places for questions: one for each CPU, and one more for what is asked on behalf of its tasks. */
#define FREQLOCK_CPUS   1024
#define FREQLOCK_PLACES (2 * FREQLOCK_CPUS) /* a power of two */
#define FREQLOCK_CALLS                                       \
	struct freqlock_call freqlock_calls[FREQLOCK_PLACES] \
		__attribute__((weak, section(".bss.policy")))

#ifndef FREQLOCK_SCHEDULER
FREQLOCK_CALLS;

__attribute__((section("license"), used)) static char __freqlock_license[] = "GPL";

#define __FREQLOCK_TEXT(x)     #x
#define __FREQLOCK_ABI(abi)    __FREQLOCK_TEXT(abi)
#define __FREQLOCK_ABOUT(name) typeof(((struct freqlock_call *)0)->name)
/* A program on the scheduler's function fl_hook_NAME(place), which does nothing itself. */
#define FREQLOCK_POLICY(name, about)                                                               \
	static inline __attribute__((always_inline)) int __##name(const __FREQLOCK_ABOUT(name) *); \
	__attribute__((section("fentry/" __FREQLOCK_ABI(FREQLOCK_POLICY_ABI) "/" #name),           \
		       used)) int                                                                  \
	name(const u64 *args)                                                                      \
	{                                                                                          \
		struct freqlock_call *call = &freqlock_calls[args[0] & (FREQLOCK_PLACES - 1)];     \
		call->answer = __##name(&call->name);                                              \
		return 0;                                                                          \
	}                                                                                          \
	static inline int __##name(const __FREQLOCK_ABOUT(name) * about __attribute__((unused)))
#endif

#endif /* __FREQLOCK_POLICY_BPF_H */
