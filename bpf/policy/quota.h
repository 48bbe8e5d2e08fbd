/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many slots of the wait-for graph a process and a user may have, so that none takes
 * all of them: locks of the kernel have a part of the table of their own, and a
 * lock's slot is charged to the process and the user of its first waiter until
 * there are no waiters.
 *
 * Charges are counted in places, by a hash with the key of lock.h; two that meet in
 * one share the limit.
 */
#ifndef __FREQLOCK_POLICY_QUOTA_H
#define __FREQLOCK_POLICY_QUOTA_H

#include "../intf.h"
#include "graph.h"
#include "lock.h"

enum {
	/* Of the slots, those for locks of the kernel. */
	KERNEL_SLOTS = FL_MAX_LOCKS / 4,
	SLOTS_A_USER = FL_MAX_LOCKS / 8,
	SLOTS_A_PROCESS = FL_MAX_LOCKS / 16,
	QUOTA_PLACES = 1024, /* a power of two */
	QUOTA_BITS = 16,
	/* A lock without a slot in this many places has none. */
	LOCK_PROBES = 4,
	PUT_TRIES = 4,
};

/* So that no payer is 0. */
#define QUOTA_PAID (1U << 31)

struct lock_quota {
	u32 users[QUOTA_PLACES];
	u32 processes[QUOTA_PLACES];
};

/* The first slot that the lock @hash may have; LOCK_PROBES from there on are in its part. */
static inline u32 slot_first(u64 hash)
{
	u32 kernels = lock_is_kernels(hash);
	u32 size = kernels ? KERNEL_SLOTS : FL_MAX_LOCKS - KERNEL_SLOTS;
	u32 from = kernels ? FL_MAX_LOCKS - KERNEL_SLOTS : 0;

	return from + (u32)((hash >> 32) * (size - LOCK_PROBES + 1) >> 32);
}

static inline u32 quota_payer(u64 key, u32 uid, u32 tgid)
{
	u32 user = fl_mix(key, (u64)uid << 1) % QUOTA_PLACES;
	u32 process = fl_mix(key, (u64)tgid << 1 | 1) % QUOTA_PLACES;

	return QUOTA_PAID | user << QUOTA_BITS | process;
}

static inline u32 *quota_user(struct lock_quota *q, u32 payer)
{
	return &q->users[in_range(payer >> QUOTA_BITS, QUOTA_PLACES)];
}

static inline u32 *quota_process(struct lock_quota *q, u32 payer)
{
	return &q->processes[in_range(payer, QUOTA_PLACES)];
}

static inline void quota_give(struct lock_quota *q, u32 payer)
{
	__sync_fetch_and_sub(quota_user(q, payer), 1);
	__sync_fetch_and_sub(quota_process(q, payer), 1);
}

/* False, with nothing taken, if that would be more than the process or the user may have. */
static inline bool quota_take(struct lock_quota *q, u32 payer)
{
	u32 user = __sync_fetch_and_add(quota_user(q, payer), 1);
	u32 process = __sync_fetch_and_add(quota_process(q, payer), 1);

	if (user < SLOTS_A_USER && process < SLOTS_A_PROCESS)
		return true;
	quota_give(q, payer);
	return false;
}

/*
 * A wait for the lock of @s is over. The last waiter to leave takes the charge away first
 * and puts it back if it was not the last after all: so it is always that of the slot's
 * present lock. With others in between each time, the slot's next lock may be charged to
 * the payer of this one.
 */
static inline void slot_put_paid(struct lock_slot *s, struct lock_quota *q)
{
	u64 old = *(volatile u64 *)&s->id, seen;
	u32 payer = 0;
	int i;

	for (i = 0; i < PUT_TRIES; i++) {
		if ((old & FL_SLOT_REFS) == 1)
			payer = __sync_lock_test_and_set(&s->payer, 0);
		seen = __sync_val_compare_and_swap(&s->id, old, old - 1);
		if (seen == old)
			break;
		if (payer)
			__sync_lock_test_and_set(&s->payer, payer);
		payer = 0;
		old = seen;
	}
	if (i == PUT_TRIES && slot_put(s))
		payer = __sync_lock_test_and_set(&s->payer, 0);
	if (payer)
		quota_give(q, payer);
}

#endif /* __FREQLOCK_POLICY_QUOTA_H */
