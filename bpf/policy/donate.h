/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What flows along the wait-for graph, and its bounds: priority inheritance (Sha,
 * Rajkumar, Lehoczky, "Priority Inheritance Protocols", IEEE ToC 1990) for
 * weights instead of priorities.
 */
#ifndef __FREQLOCK_POLICY_DONATE_H
#define __FREQLOCK_POLICY_DONATE_H

#include "../intf.h"
#include "deadline.h"
#include "graph.h"

/* Donation raises a weight or leaves it. */
static inline u64 donate_weight(u64 weight, u32 level)
{
	u64 given = weight_of_level(level);

	return given > weight ? given : weight;
}

/*
 * Most boosted CPU time of a hold, ns: @most if a waiter's level is above the
 * holder's own; else @keep, since that is no inversion: the holder pays the time
 * back later, so the boost would only reorder a long hold.
 */
static inline u64 donate_most(u32 level, u32 own, u64 keep, u64 most)
{
	return level > own || most < keep ? most : keep;
}

/*
 * Deadline of a holder. A waiter was running when it began to wait, so its
 * vtime was its CPU's clock: what it gives is that, and its weight for the
 * request of the holder. Never later than the holder's own.
 */
static inline u64 donate_deadline(u64 deadline, u64 vclock, u64 request, u64 slice, u64 weight)
{
	u64 given = vtime_deadline(vclock, request, slice, weight);

	return vtime_before(given, deadline) ? given : deadline;
}

/*
 * A task's allowance of boosted time, ns: @share of 1024 of the time
 * that passes, up to @most. Over any time t it thus spends at most
 * @most + t * share / 1024, and one stretch more.
 */
static inline u64 allowance_fill(u64 have, u64 passed, u64 share, u64 most)
{
	const u64 limit = 1ULL << 50;
	u64 earned = (passed < limit ? passed : limit) * share / FL_FULL_SPEED;

	if (have > most)
		have = most;
	return earned < most - have ? have + earned : most;
}

static inline u64 allowance_spend(u64 have, u64 spent)
{
	return spent < have ? have - spent : 0;
}

#endif /* __FREQLOCK_POLICY_DONATE_H */
