/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cgroups: how a task's weight follows from those of its cgroup and the ones above it.
 */
#ifndef __FREQLOCK_CGROUP_BPF_H
#define __FREQLOCK_CGROUP_BPF_H

#include "freqlock.bpf.h"
#include "policy/cgroup.h"

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
	u64 burst;  /* the longest below it as of the last pass, ns, ... */
	u64 bursts; /* ... and in this one */
	struct {
		u64 used, runnable, load, active;
		u64 all_used, all_runnable;
		u64 time;
	} fading;
	struct cgroup_member own; /* its own tasks, among its children */
	struct cgroup_member all; /* all below it, among its siblings */
	struct cgroup_pool pool;  /* what it shares out */
	u64 unit;
	u64 newcomer; /* scale of a new one below it, 0 before the first pass */
} __attribute__((aligned(64)));

/*
 * What a CPU has added up of a cgroup. Tasks may begin to be runnable on one CPU and end to be so
 * on another one: @nr and @weight are right in the sum over all, and so is @runnable, even if
 * those of a CPU are below 0.
 */
struct cgroup_sum {
	u64 used;     /* ns */
	u64 runnable; /* ns over all tasks, up to @since */
	u64 since;    /* when @nr changed last */
	s64 weight;   /* of tasks that began to be runnable here, less those that ended here */
	s32 nr;       /* how many */
	u32 period;   /* it said that it runs some in this one, the last bits */
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

int fl_cgroup_follow(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		     u64 now);
int fl_cgroup_leave(struct task_ctx *tctx __arg_nonnull, u64 now);
int fl_cgroup_active(u32 slot, u64 since, u64 now);
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
static __always_inline void fl_cgroup_weigh(struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	if (!shares_cgroups)
		return;
	if ((u64)p->sched_task_group != tctx->task_group)
		fl_cgroup_follow(p, tctx, now);
	fl_cgroup_scale(p, tctx);
}

/* For how long the tasks of @sum were runnable up to @now, ns over all of them. */
static __always_inline u64 fl_cgroup_runnable(const struct cgroup_sum *sum, u64 now)
{
	return sum->runnable + (s64)sum->nr * (s64)(now - sum->since);
}

/* @tctx is runnable from now on, if it was not, and counts with its weight; 0: it is not. */
static __always_inline void fl_cgroup_count(struct task_ctx *tctx, u64 weight, u64 now)
{
	u32 slot = tctx->cgroup;
	struct cgroup_sum *sum;

	if (!shares_cgroups || tctx->counted == weight)
		return;
	sum = bpf_map_lookup_elem(&cgroup_sums, &slot);
	if (!sum)
		return;
	__sync_fetch_and_add(&sum->weight, (s64)(weight - tctx->counted));
	if (!weight != !tctx->counted) {
		sum->runnable = fl_cgroup_runnable(sum, now);
		sum->since = now;
		__sync_fetch_and_add(&sum->nr, weight ? 1 : -1);
	}
	tctx->counted = weight;
}

/* Until when @tctx waited for a quota since it became runnable, 0 if it did not. */
static __always_inline u64 fl_throttled_until(const struct task_ctx *tctx, u64 now)
{
	return shares_cgroups && tctx->throttled_by ? tctx->throttled_until ?: now : 0;
}

/* @tctx begins to run, and is kept from that by no quota. */
static __always_inline void fl_cgroup_picked(struct task_ctx *tctx, u64 now)
{
	fl_cgroup_count(tctx, tctx->own_weight, now);
	if (!shares_cgroups)
		return;
	tctx->throttled_until = fl_throttled_until(tctx, now);
	tctx->throttled_by = 0;
}

/* @tctx @ran until @now, which counts for its cgroup. */
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
	if (sum->period != (u32)(now >> CGROUP_PERIOD_SHIFT)) {
		sum->period = now >> CGROUP_PERIOD_SHIFT;
		fl_cgroup_active(slot, now - ran, now);
	}
}

#endif /* __FREQLOCK_CGROUP_BPF_H */
