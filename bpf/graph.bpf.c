/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The wait-for graph in memory, whose structure policy/graph.h describes: the table of
 * slots, limited by policy/quota.h, and what is said along chains of them. Functions that
 * are not static are verified once each.
 */
#include "freqlock.bpf.h"
#include "graph.bpf.h"

/* Written by the agent before it is loaded; unpredictable. */
const volatile u64 lock_key;

struct lock_slot lock_slots[FL_MAX_LOCKS];
struct lock_quota lock_quota;

/* True if the slot is the lock's, with a reference; @payer, unless 0, pays as the first waiter. */
__noinline bool fl_slot_take(u32 slot, u64 hash, u32 payer)
{
	struct lock_slot *s = fl_slot(slot);
	enum slot_got got = slot_get(s, hash, payer);

	if (got == SLOT_FIRST)
		s->payer = payer;
	else if (got == SLOT_JOINED && payer)
		quota_give(&lock_quota, payer);
	return got != SLOT_NOT;
}

/* The slot from @first on that is or was the lock's, -1 none. */
__noinline int fl_slot_find(u32 first, u64 hash)
{
	u32 i;

	bpf_for(i, 0, LOCK_PROBES) {
		if (slot_hash(fl_slot(first + i)) == hash)
			return first + i;
	}
	return -1;
}

/*
 * Slot of the lock @hash for which @w waits, referenced, or -1. Two that look for the same
 * lock at once, while a slot before becomes free, may find two slots for it: each is
 * then right for its own waiters.
 */
__noinline int fl_slot_of(struct task_struct *w __arg_trusted, u64 hash)
{
	u32 first = slot_first(hash), payer, i;
	s32 known = fl_slot_find(first, hash);

	if (known >= 0 && fl_slot_take(known, hash, 0))
		return known;
	payer = quota_payer(lock_key, BPF_CORE_READ(w, real_cred, uid.val), w->tgid);
	if (!quota_take(&lock_quota, payer)) {
		fl_count(lock_limit);
		return -1;
	}
	if (known >= 0 && fl_slot_take(known, hash, payer))
		return known;
	bpf_for(i, 0, LOCK_PROBES) {
		if (fl_slot_take(first + i, hash, payer))
			return in_range(first + i, FL_MAX_LOCKS);
	}
	quota_give(&lock_quota, payer);
	fl_count(lock_full);
	return -1;
}

__noinline u32 fl_levels_best(u32 slot)
{
	return levels_best(fl_slot(slot));
}

__noinline u32 fl_chain_update(u32 from)
{
	u32 hops = chain_update(lock_slots, from);

	if (hops)
		__sync_fetch_and_add(&cpu_stats[bpf_get_smp_processor_id() & (FL_MAX_CPUS - 1)]
					      .count[FL_STAT_lock_hop],
				     hops);
	return hops;
}

__noinline int fl_chain_link(u32 from, u32 edge)
{
	chain_link(lock_slots, from, edge);
	return 0;
}

__noinline bool fl_chain_reaches(u32 edge, u64 self)
{
	return chain_reaches(lock_slots, edge, self);
}

/* The locks that a task holds are waited for through what it waits for itself. */
__noinline int fl_link_holds(u64 holds, u64 self, u32 edge)
{
	u32 i;

	bpf_for(i, 0, MAX_HOLDS) {
		u32 slot = holds_slot(holds, i);

		if (slot && fl_slot(slot - 1)->owner == self)
			fl_chain_link(slot - 1, edge);
	}
	return 0;
}

/* CAS retries before a hold goes unrecorded. */
#define HOLD_TRIES 4

/* Record in @hctx that there are waiters for the lock at @slot, which it holds. */
__noinline int fl_holds_add(struct task_ctx *hctx __arg_nonnull, u32 slot, u64 self)
{
	u64 holds = hctx->holds, with, seen;
	u32 i, place = slot % MAX_HOLDS;

	bpf_for(i, 0, HOLD_TRIES) {
		if (holds_has(holds, slot))
			return 0;
		with = holds_with(holds, slot);
		/* No room, but what is there may be over. */
		if (with == holds) {
			if (fl_slot(holds_slot(holds, place) - 1)->owner == self)
				break;
			with = holds_with(holds_without(holds, place), slot);
		}
		seen = __sync_val_compare_and_swap(&hctx->holds, holds, with);
		if (seen == holds)
			return 0;
		/* Others begin to wait for what it holds, or it drops what is over. */
		holds = seen;
	}
	fl_count(hold_full);
	return 0;
}
