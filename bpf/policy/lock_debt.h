/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a task owes to those who waited for locks that it held: lock time by weight, as
 * scheduler-cooperative locks have it (Patel et al., "Avoiding Scheduler Subversion using
 * Scheduler-Cooperative Locks", EuroSys 2020, section 4: a thread that held a lock for longer than
 * its share is banned from it until the others can have had theirs).
 *
 * A debt is a time: until then the task leaves the lock to others. So it fades as time passes,
 * whatever the task does meanwhile, but for time in which it holds a lock that others wait for.
 */
#ifndef __FREQLOCK_POLICY_LOCK_DEBT_H
#define __FREQLOCK_POLICY_LOCK_DEBT_H

#include "../intf.h"
#include "graph.h"
#include "verifier.h"

enum {
	/* Less is not worth two context switches and a timer. */
	DEBT_LEAST_NS = 20 * 1000,
};

/* The weights of all that wait at @s. */
static inline u64 levels_weight(const struct lock_slot *s)
{
	u64 sum = 0;
	u32 level;

	policy_for(level, LEVEL_MAX + 1)
	{
		sum += *(volatile u32 *)&s->waiting[in_range(level, LEVEL_SLOTS)] *
		       weight_of_level(level);
	}
	return sum;
}

/* Debt, ns, at @now of a task that owes until @until. */
static inline u64 debt_left(u64 until, u64 now)
{
	return elapsed(now, until);
}

/*
 * What a hold of @held ns costs a task of @weight while @waiting in all wait, ns: those are to
 * have the lock for as long as their weights say. At most @most.
 */
static inline u64 debt_of_hold(u64 held, u64 weight, u64 waiting, u64 most)
{
	return lesser(lesser(held, most) * waiting / greater(weight, 1), most);
}

/*
 * Until when a task owes that ends at @now a hold for which others waited since @since. What it
 * owed as that began did not fade meanwhile. No debt is above @most.
 */
static inline u64 debt_after(u64 until, u64 since, u64 now, u64 weight, u64 waiting, u64 most)
{
	u64 debt = debt_left(until, since) +
		   debt_of_hold(elapsed(since, now), weight, waiting, most);

	return now + lesser(debt, most);
}

/*
 * True if a task is held back that owed until @until as others began to wait, @since: it came to
 * the lock before its time. One that stays away by itself is left alone.
 */
static inline bool debt_delays(u64 until, u64 since)
{
	return debt_left(until, since) >= DEBT_LEAST_NS;
}

#endif /* __FREQLOCK_POLICY_LOCK_DEBT_H */
