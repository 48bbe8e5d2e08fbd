/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cgroups: how a task's weight follows from those of its cgroup and the ones above it.
 */
#ifndef __FREQLOCK_CGROUP_BPF_H
#define __FREQLOCK_CGROUP_BPF_H

#include "freqlock.bpf.h"
#include "policy/cgroup.h"

/* CPUs add up what cgroups use for 2^24 ns, 17 ms, before others see it. */
#define CGROUP_PERIOD_SHIFT 24

/* A cgroup with tasks, or with others below it; slot 0 is the root. */
struct cgroup_ctx {
	u64 task_group; /* the address of its struct task_group, 0 none */
	u64 scale;      /* of its tasks' weights, CGROUP_ONE for 1 */
	u32 parent;     /* slot of the one above it */
	u32 refs;       /* 0 free, 1 unused, else one more than its tasks and children */
	bool linked;    /* @parent is known */
	bool idle;      /* cpu.idle, its own or of one above */
	/* The timer's: the sums of all CPUs as of the last pass, ns; own tasks alone. */
	u64 used, runnable;
	s64 weight; /* of those that are runnable */
	struct {
		u64 used, runnable;
		u64 weight; /* in the mean */
	} grew;
	/* What all below it grew by, then all of that as it fades. */
	u64 all_used, all_runnable;
	u64 longest; /* of their waits, forgotten slowly */
	struct {
		u64 used, runnable, load, active;
		u64 all_used, all_runnable;
		u32 slowness;
	} fading;
	struct cgroup_member own; /* its own tasks, among its children */
	struct cgroup_member all; /* all below it, among its siblings */
	struct cgroup_pool pool;  /* what it shares out */
	u64 claim;                /* its own tasks' weight in the mean */
	u64 unit;
} __attribute__((aligned(64)));

/* What a CPU has added up of a cgroup: half a cache line, for each CPU and cgroup. */
struct cgroup_sum {
	u64 used, runnable; /* ns */
	s64 weight;     /* of tasks that began to be runnable here, less those that ended here */
	u32 period;     /* it said that it runs some in this one, the last bits */
	u32 longest_us; /* wait */
};

struct cgroup_sums_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, FL_MAX_SHARES);
	__type(key, u32);
	__type(value, struct cgroup_sum);
};

struct cgroup_sums_map cgroup_sums __weak SEC(".maps");
extern struct cgroup_ctx cgroups[FL_MAX_SHARES];

/* Levels of the tree; deeper cgroups count as children of the root. */
#define CGROUP_DEPTH 32

#define fl_cgroup(slot) (&cgroups[in_range(slot, FL_MAX_SHARES)])

int fl_cgroup_follow(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull);
int fl_cgroup_leave(struct task_ctx *tctx __arg_nonnull);
int fl_cgroup_active(u32 slot, u64 now);
int fl_cgroup_init(void);

/* @tctx's weight in effect, by its own and its cgroup. */
static __always_inline void fl_cgroup_scale(struct task_struct *p, struct task_ctx *tctx)
{
	struct cgroup_ctx *c = fl_cgroup(tctx->cgroup);

	tctx->weight = tctx->own_weight;
	tctx->idles = p->policy == POLICY_IDLE;
	if (!shares_cgroups)
		return;
	tctx->weight = cgroup_scaled(tctx->own_weight, READ_ONCE(c->scale));
	tctx->idles |= c->idle;
}

/* The same before a decision: it may be in another cgroup, and scales change. */
static __always_inline void fl_cgroup_weigh(struct task_struct *p, struct task_ctx *tctx)
{
	if (!shares_cgroups)
		return;
	if ((u64)p->sched_task_group != tctx->task_group)
		fl_cgroup_follow(p, tctx);
	fl_cgroup_scale(p, tctx);
}

/* @tctx is runnable from now on, if it was not: it counts with its weight. */
static __always_inline void fl_cgroup_count(struct task_ctx *tctx, u64 weight)
{
	u32 slot = tctx->cgroup;
	struct cgroup_sum *sum;

	if (!shares_cgroups || tctx->counted == weight)
		return;
	sum = bpf_map_lookup_elem(&cgroup_sums, &slot);
	if (!sum)
		return;
	__sync_fetch_and_add(&sum->weight, (s64)(weight - tctx->counted));
	tctx->counted = weight;
}

/* @tctx begins to run after it waited @since then, 0 not at all. */
static __always_inline void fl_cgroup_picked(struct task_ctx *tctx, u64 since, u64 now)
{
	if (!shares_cgroups)
		return;
	fl_cgroup_count(tctx, tctx->own_weight);
	/* What kept it from running was its quota, not others. */
	if (since && !tctx->throttled_by)
		tctx->waited += elapsed(since, now);
	tctx->throttled_by = 0;
}

/* @tctx @ran until @now, after what it had waited: both count for its cgroup. */
static __always_inline void fl_cgroup_charge(struct task_ctx *tctx, u64 ran, u64 now)
{
	u32 slot = tctx->cgroup;
	struct cgroup_sum *sum;

	if (!shares_cgroups)
		return;
	sum = bpf_map_lookup_elem(&cgroup_sums, &slot);
	if (!sum)
		return;
	sum->used += ran;
	sum->runnable += ran + tctx->waited;
	if (tctx->waited / FL_USEC > sum->longest_us)
		sum->longest_us = tctx->waited / FL_USEC;
	tctx->waited = 0;
	if (sum->period != (u32)(now >> CGROUP_PERIOD_SHIFT)) {
		sum->period = now >> CGROUP_PERIOD_SHIFT;
		fl_cgroup_active(slot, now);
	}
}

#endif /* __FREQLOCK_CGROUP_BPF_H */
