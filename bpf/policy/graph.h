/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The wait-for graph: which lock each task waits for, and who holds that.
 *
 * A lock with waiters has a slot, which has the lock's holder and the number of
 * waiters at each level; a level is a nice value, so the best waiter is the highest
 * bit of a word. A task that waits is an edge to a slot, and so is the slot of a
 * lock that such a task holds: it adds its own best level to that slot. A change of
 * the best level is thus passed on along slots alone, at most CHAIN_HOPS of them.
 *
 * No lock is taken. An edge is one word, (slot, level), and whoever replaces it
 * moves exactly what it said from one count to another, so counts return to
 * what they were however updates interleave. In between a level may be seen too
 * high or too low, for the length of an update.
 */
#ifndef __FREQLOCK_POLICY_GRAPH_H
#define __FREQLOCK_POLICY_GRAPH_H

#include "../intf.h"
#include "deadline.h"
#include "verifier.h"

enum {
	/* Level 0 is none, 1 is SCHED_IDLE, 2..41 are nice 19..-20, above are real-time tasks. */
	LEVEL_IDLE = 1,
	LEVEL_NICE_19 = 2,
	LEVEL_NICE_BEST = 41,
	LEVEL_MAX = 42,
	LEVEL_SLOTS = 64, /* a power of two: masking keeps the verifier content */
	CHAIN_HOPS = 8,
	/* Locks that a task may hold while others wait for them. */
	MAX_HOLDS = 4,
	HOLD_BITS = 16,
	EDGE_LEVEL_BITS = 8,
};

struct lock_slot {
	u64 id;    /* 48 bits of the lock's hash, and 16 that count its waiters */
	u64 owner; /* fl_self() of the holder, 0 not known */
	u64 mask;  /* levels with waiters */
	u64 since; /* when the holder began to be waited for */
	u64 used;  /* CPU time that this hold got since then, ns */
	u64 hold;  /* average length of such a hold, ns, 0 unknown */
	u32 out;   /* edge to the lock that the holder waits for, 0 none */
	u32 payer; /* what it is charged to (policy/quota.h), 0 nothing */
	u32 waiting[LEVEL_SLOTS];
};

/* Level of a static priority, 100..139 being nice -20..19; of real-time tasks the highest. */
static inline u32 level_of_prio(s32 static_prio)
{
	if (static_prio < 100)
		return LEVEL_MAX;
	if (static_prio > 139)
		return LEVEL_NICE_19;
	return LEVEL_NICE_19 + (139 - static_prio);
}

static inline u64 weight_of_level(u32 level)
{
	s32 prio = 139 - ((s32)level - LEVEL_NICE_19);

	if (level < LEVEL_NICE_19)
		return level ? WEIGHT_IDLE : 0;
	/* As in in_range(). */
	__asm__ volatile("" : "+r"(prio));
	return weight_of_prio(prio);
}

/* The highest level that gives no more than @weight, which is at least that of SCHED_IDLE. */
static inline u32 level_of_weight(u64 weight)
{
	u32 i, level = LEVEL_IDLE;

	/* Counted without a branch, as in lesser(). */
	policy_for(i, NR_NICE)
	{
		level += 1 ^ (weight - weight_of_step(i)) >> 63;
	}
	return level;
}

static inline void levels_add(struct lock_slot *s, u32 level)
{
	level = in_range(level, LEVEL_SLOTS);
	if (level && !__sync_fetch_and_add(&s->waiting[level], 1))
		__sync_fetch_and_or(&s->mask, 1ULL << level);
}

/* Another may come to this level between the count and the bit: look again. */
static inline void levels_remove(struct lock_slot *s, u32 level)
{
	level = in_range(level, LEVEL_SLOTS);
	if (!level || __sync_fetch_and_sub(&s->waiting[level], 1) != 1)
		return;
	__sync_fetch_and_and(&s->mask, ~(1ULL << level));
	if (*(volatile u32 *)&s->waiting[level])
		__sync_fetch_and_or(&s->mask, 1ULL << level);
}

/*
 * The best level with waiters, 0 if there are none. Three that come and
 * go at once may leave a bit behind, so its count has the last word.
 */
static inline u32 levels_best(const struct lock_slot *s)
{
	u64 mask = *(volatile u64 *)&s->mask;
	u32 i, level;

	policy_for(i, 3)
	{
		if (!mask)
			break;
		level = in_range(highest_bit(mask), LEVEL_SLOTS);
		if (*(volatile u32 *)&s->waiting[level])
			return level;
		mask &= ~(1ULL << level);
	}
	return 0;
}

static inline u32 edge_to(u32 slot, u32 level)
{
	return (slot + 1) << EDGE_LEVEL_BITS | level;
}

static inline u32 edge_slot(u32 edge)
{
	return in_range((edge >> EDGE_LEVEL_BITS) - 1, FL_MAX_LOCKS);
}

static inline u32 edge_level(u32 edge)
{
	return edge & (LEVEL_SLOTS - 1);
}

/* Results of slot_get(): refused, joined other waiters, or first. */
enum slot_got { SLOT_NOT, SLOT_JOINED, SLOT_FIRST };

/* Hash of the lock whose slot @s is. */
static inline u64 slot_hash(const struct lock_slot *s)
{
	return *(volatile u64 *)&s->id & ~(u64)FL_SLOT_REFS;
}

/*
 * Take a reference on @s for the lock @hash (its low 16 bits are 0), if the slot is
 * that lock's, or was free and is now. What is known of an earlier hold is dropped
 * if there were no waiters: since then the lock was free, or the boost of its
 * holder had no use. So the owner is not known, and time counts from now on.
 * Without @may_be_first it is taken only where there are waiters already.
 */
static inline enum slot_got slot_get(struct lock_slot *s, u64 hash, bool may_be_first)
{
	u64 old = *(volatile u64 *)&s->id, seen;
	int i;

	for (i = 0; i < 4; i++) {
		u64 refs = old & FL_SLOT_REFS;

		if ((old & ~(u64)FL_SLOT_REFS) != hash) {
			if (refs)
				return SLOT_NOT;
		} else if (refs == FL_SLOT_REFS) {
			return SLOT_NOT;
		}
		if (!refs && !may_be_first)
			return SLOT_NOT;
		seen = __sync_val_compare_and_swap(&s->id, old, hash | (refs + 1));
		if (seen == old) {
			/* What the lock before this one has left behind. */
			if ((old & ~(u64)FL_SLOT_REFS) != hash)
				s->hold = 0;
			if (refs)
				return SLOT_JOINED;
			__sync_lock_test_and_set(&s->owner, 0);
			return SLOT_FIRST;
		}
		old = seen;
	}
	return SLOT_NOT;
}

/* True if it was the last reference. */
static inline bool slot_put(struct lock_slot *s)
{
	return (__sync_fetch_and_sub(&s->id, 1) & FL_SLOT_REFS) == 1;
}

/*
 * The best level at slot @from may have changed: pass it on to the lock that
 * its holder waits for, and so on. Returns how many hops that took.
 */
static inline u32 chain_update(struct lock_slot *slots, u32 from)
{
	u32 i, hops = 0;

	policy_for(i, CHAIN_HOPS)
	{
		struct lock_slot *s = &slots[in_range(from, FL_MAX_LOCKS)], *to;
		u32 out = *(volatile u32 *)&s->out, best = levels_best(s);

		if (!out || edge_level(out) == best)
			break;
		/* Lost to another update, which may have seen an older best. */
		if (__sync_val_compare_and_swap(&s->out, out, edge_to(edge_slot(out), best)) != out)
			continue;
		from = edge_slot(out);
		to = &slots[in_range(from, FL_MAX_LOCKS)];
		levels_add(to, best);
		levels_remove(to, edge_level(out));
		/* Not counted up, for the verifier's sake: a constant for each round. */
		hops = i + 1;
	}
	return hops;
}

/* The holder of @from waits for the lock of @edge now; 0: no longer for any. */
static inline void chain_link(struct lock_slot *slots, u32 from, u32 edge)
{
	struct lock_slot *s = &slots[in_range(from, FL_MAX_LOCKS)];
	u32 best = levels_best(s), out = edge ? edge_to(edge_slot(edge), best) : 0, old;

	if (*(volatile u32 *)&s->out == out)
		return;
	old = __sync_lock_test_and_set(&s->out, out);
	if (out)
		levels_add(&slots[edge_slot(out)], best);
	if (old)
		levels_remove(&slots[edge_slot(old)], edge_level(old));
}

/* The holder of the lock that @edge leads to; @edge is then the one that this lock's holder has. */
static inline u64 chain_next(const struct lock_slot *slots, u32 *edge)
{
	const struct lock_slot *s = &slots[edge_slot(*edge)];
	u64 owner = *(volatile u64 *)&s->owner;

	*edge = *(volatile u32 *)&s->out;
	return owner;
}

/*
 * True if the locks that follow from @edge on are held by @self somewhere: an
 * edge from @self to the first of them would close a cycle. A longer chain than
 * is looked at is taken for one, too.
 */
static inline bool chain_reaches(const struct lock_slot *slots, u32 edge, u64 self)
{
	u32 i;

	policy_for(i, CHAIN_HOPS)
	{
		if (!edge)
			return false;
		if (chain_next(slots, &edge) == self)
			return true;
	}
	return true;
}

/* The holder of the last lock that follows from @edge on, or of the last that is looked at. */
static inline u64 chain_end(const struct lock_slot *slots, u32 edge)
{
	u64 owner = 0;
	u32 i;

	policy_for(i, CHAIN_HOPS)
	{
		if (!edge)
			break;
		owner = chain_next(slots, &edge);
	}
	return owner;
}

/* The locks that a task holds, four slot numbers in a word, each plus one; 0 is none. */
static inline u32 holds_slot(u64 holds, u32 i)
{
	return (holds >> (i * HOLD_BITS)) & ((1U << HOLD_BITS) - 1);
}

/* The same number in every place. */
#define HOLDS_EACH(n) ((u64)(n) * 0x0001000100010001ULL)

/*
 * The highest bit of each place of @holds that is 0; of those above the first,
 * some more. All places at once (Warren, "Hacker's Delight", section 6-1).
 */
static inline u64 holds_free(u64 holds)
{
	return (holds - HOLDS_EACH(1)) & ~holds & HOLDS_EACH(1U << (HOLD_BITS - 1));
}

static inline bool holds_has(u64 holds, u32 slot)
{
	return holds_free(holds ^ HOLDS_EACH(slot + 1));
}

/* @holds, which lacks @slot, with it in the first free place; unchanged if there is no room. */
static inline u64 holds_with(u64 holds, u32 slot)
{
	u64 free = holds_free(holds), first = free & (0 - free);

	return holds | (first >> (HOLD_BITS - 1)) * (slot + 1);
}

static inline u64 holds_without(u64 holds, u32 i)
{
	return holds & ~(((1ULL << HOLD_BITS) - 1) << (i * HOLD_BITS));
}

#endif /* __FREQLOCK_POLICY_GRAPH_H */
