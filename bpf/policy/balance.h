/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What waits at a CPU, as a sum of work and one of weights, and when a CPU takes a task from
 * another one. Both sums share a word: who queues a task changes them with one atomic addition.
 */
#ifndef __FREQLOCK_POLICY_BALANCE_H
#define __FREQLOCK_POLICY_BALANCE_H

#include "../intf.h"
#include "verifier.h"

enum {
	QUEUED_NS_SHIFT = 6,          /* work is in units of 64 ns ... */
	QUEUED_WEIGHT_SHIFT = 36,     /* ... and has these bits; weights have those above */
	QUEUED_NS_MOST = 1 << 30,     /* of one task, ns: 4096 of these fit */
	QUEUED_WEIGHT_MOST = 1 << 18, /* of one task: 1024 of these fit */
};

/* What a task counts with where weights are added up. */
static inline u64 load_weight(u64 weight)
{
	return shorter(longer(weight, 1), QUEUED_WEIGHT_MOST);
}

/* What a task of @weight that will run for @ns adds to the word of its CPU, never 0. */
static inline u64 queued_entry(u64 ns, u64 weight)
{
	return shorter(ns, QUEUED_NS_MOST) >> QUEUED_NS_SHIFT | load_weight(weight)
									<< QUEUED_WEIGHT_SHIFT;
}

/* The work in such a word, ns. */
static inline u64 queued_ns(u64 queued)
{
	return (queued & ((1ULL << QUEUED_WEIGHT_SHIFT) - 1)) << QUEUED_NS_SHIFT;
}

/* The weights in such a word. */
static inline u64 queued_weight(u64 queued)
{
	return queued >> QUEUED_WEIGHT_SHIFT;
}

/*
 * The weight below which a task is to go from a CPU with the load @from to one with @here: it
 * makes the greater of both loads less. Of equal tasks, one goes where two more are.
 */
static inline u64 balance_room(u64 from, u64 here)
{
	return elapsed(here, from);
}

enum {
	/*
	 * A CPU looks through the tasks of another for one that may run on it, and finds none: some
	 * 30 ns each, for a task's affinity is seldom in a cache. It looks again after 64 times
	 * that at the soonest, unless another task came there, so that looks in vain take no more
	 * than 1/64 of its time, however many tasks are bound to a CPU.
	 */
	VAIN_TASK_NS = 64 * 30,
	/* So few are looked through each time. */
	VAIN_TASKS = 16,
};

/* For how long a look in vain through @nr tasks holds, ns; 0: it costs too little. */
static inline u64 vain_ns(s32 nr)
{
	return nr > VAIN_TASKS ? (u64)nr * VAIN_TASK_NS : 0;
}

#endif /* __FREQLOCK_POLICY_BALANCE_H */
