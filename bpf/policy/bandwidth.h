/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Quotas of cgroups, cpu.max and cpu.max.burst, after the kernel's bandwidth control (Turner, Rao
 * and Rao, "CPU bandwidth control for CFS", Linux Symposium 2010; kernel/sched/fair.c). Each
 * period brings the cgroup its quota of CPU time. A task takes a grant of that as it begins to run
 * and gives back what it did not use.
 *
 * What a cgroup overran, by a late timer or to let a task finish that others wait for, is a debt
 * that the next periods pay: over some periods it never has more than its quota.
 */
#ifndef __FREQLOCK_POLICY_BANDWIDTH_H
#define __FREQLOCK_POLICY_BANDWIDTH_H

#include "../intf.h"
#include "verifier.h"

#define BANDWIDTH_DEBT_NS (1000 * 1000 * 1000LL) /* the longest period */
#define BANDWIDTH_NONE    (~0ULL)                /* kernel/sched/sched.h, RUNTIME_INF: no quota */

enum {
	/* Most and least of a grant; the first is that of sched_cfs_bandwidth_slice_us. */
	BANDWIDTH_GRANT_NS = 5 * 1000 * 1000,
	BANDWIDTH_LEAST_NS = 100 * 1000,
	/* The bounds of cpu.max: kernel/sched/core.c, min_ and max_bw_*_period_us. */
	BANDWIDTH_PERIOD_MIN_NS = 1000 * 1000,
	BANDWIDTH_PERIOD_MAX_NS = 1000 * 1000 * 1000,
	BANDWIDTH_QUOTA_SHIFT = 44,  /* quotas are below 2^44 ns, 4.8 hours a period */
	BANDWIDTH_PERIODS = 1 << 18, /* and no more periods than these are made up for */
	/* A turn of one that runs on debt. */
	BANDWIDTH_GRACE_NS = 100 * 1000,
};

/* What a cgroup may use. */
struct bandwidth {
	u64 quota;     /* ns a period; 0: it has none */
	u64 period;    /* ns */
	u64 burst;     /* ns it may keep of former periods */
	s64 left;      /* ns; below 0 it has to pay */
	u64 refill_at; /* when the next period begins */
};

/* The length of a period, within its bounds. */
static inline u64 bandwidth_period(u64 period)
{
	return lesser(greater(period, BANDWIDTH_PERIOD_MIN_NS), BANDWIDTH_PERIOD_MAX_NS);
}

/* @us of the kernel's, which has all ones for no quota, in ns. */
static inline u64 bandwidth_ns(u64 us)
{
	return us < BANDWIDTH_NONE / 1000 ? us * 1000 : BANDWIDTH_NONE;
}

/* A quota by @quota as the kernel has it; 0 for none. */
static inline u64 bandwidth_quota(u64 quota)
{
	return quota == BANDWIDTH_NONE ? 0 :
					 lesser(greater(quota, 1), 1ULL << BANDWIDTH_QUOTA_SHIFT);
}

/* How many periods have begun by @now, of which the first begins @refill_at. */
static inline u64 bandwidth_periods(u64 refill_at, u64 now, u64 period)
{
	if ((s64)(now - refill_at) < 0)
		return 0;
	return (now - refill_at) / greater(period, 1) + 1;
}

/* A period that ends @refill_at where periods have become @period ns long. */
static inline u64 bandwidth_sooner(u64 refill_at, u64 now, u64 period)
{
	return (s64)(refill_at - now) > (s64)period ? now + period : refill_at;
}

/* The most that a cgroup may have left. */
static inline s64 bandwidth_most(u64 quota, u64 burst)
{
	return lesser(quota, 1ULL << BANDWIDTH_QUOTA_SHIFT) +
	       lesser(burst, 1ULL << BANDWIDTH_QUOTA_SHIFT);
}

/* What is @left beyond that, after the quota was made less. */
static inline s64 bandwidth_excess(s64 left, u64 quota, u64 burst)
{
	s64 most = bandwidth_most(quota, burst);

	return left > most ? left - most : 0;
}

/*
 * What @n periods add to what is @left: up to a quota and a burst, of which debts are paid, but
 * for what is beyond BANDWIDTH_DEBT_NS: a large process may take that to die.
 */
static inline s64 bandwidth_refill(s64 left, u64 n, u64 quota, u64 burst)
{
	s64 more = lesser(n, BANDWIDTH_PERIODS) * lesser(quota, 1ULL << BANDWIDTH_QUOTA_SHIFT);
	s64 room;

	if (left < -BANDWIDTH_DEBT_NS)
		more += -BANDWIDTH_DEBT_NS - left;
	room = bandwidth_most(quota, burst) - left;
	return room > 0 ? lesser(room, more) : 0;
}

/* True if none of its tasks may run now, or, if others wait for it, with @grace ns of debt. */
static inline bool bandwidth_is_used_up(s64 left, s64 grace)
{
	return left <= -grace;
}

/* How many throttled tasks go on where so much is @left: no more than can have some of it. */
static inline u64 bandwidth_batch(s64 left, u64 most)
{
	return left > 0 ? lesser(left / BANDWIDTH_LEAST_NS + 1, most) : 0;
}

/* How long a task runs on its @grant before it asks again, of the @want ns that it would. */
static inline u64 bandwidth_turn(u64 grant, u64 want)
{
	return lesser(want, grant ? grant : BANDWIDTH_GRACE_NS);
}

/* The grant for a task that wants to run for @want ns where so much is @left. */
static inline u64 bandwidth_grant(s64 left, u64 want)
{
	u64 most = lesser(want, BANDWIDTH_GRANT_NS);

	if (left <= 0)
		return 0;
	return lesser(most, greater(left, BANDWIDTH_LEAST_NS));
}

#endif /* __FREQLOCK_POLICY_BANDWIDTH_H */
