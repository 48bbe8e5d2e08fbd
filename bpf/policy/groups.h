/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * In which order a CPU looks for work elsewhere. CPUs are in groups of at most
 * FL_GROUP_CPUS under one last-level cache, and a word for each group says which of them
 * have tasks in their queues: a CPU with nothing to do reads a word for each group, and
 * not a line of each CPU.
 */
#ifndef __FREQLOCK_POLICY_GROUPS_H
#define __FREQLOCK_POLICY_GROUPS_H

#include "../intf.h"
#include "verifier.h"

/*
 * The @i-th of @nr groups to look at from the group @own, whose node has the groups from
 * @first to before @end: itself, the others of its node, then the rest. Each CPU goes on
 * from its own group, so that not all look into the same one first.
 */
static inline u32 group_nth(u32 own, u32 first, u32 end, u32 nr, u32 i)
{
	u32 near = end - first;

	if (!near || nr < near)
		return own;
	if (i < near)
		return first + (own - first + i) % near;
	return (end + i - near) % nr;
}

/* The place, 0..63, of the first bit of @work, which is not 0, from that of @place on. */
static inline u32 group_next(u64 work, u32 place)
{
	u64 turned;

	place &= 63;
	turned = place ? work >> place | work << (64 - place) : work;
	/* Its lowest bit is the first. */
	return (highest_bit(turned & -turned) + place) & 63;
}

/*
 * True if an idle CPU is to take a task across nodes from a queue of @waiting tasks, of
 * which the first waits for @waited ns: where more than one waits, some have to wait for
 * long; one alone has its CPU soon, unless it has waited for longer than the way costs, @ns.
 */
static inline bool group_worth_crossing(s32 waiting, u64 waited, u64 ns)
{
	return waiting > 1 || (s64)(waited - ns) >= 0;
}

#endif /* __FREQLOCK_POLICY_GROUPS_H */
