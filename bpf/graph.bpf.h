/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The wait-for graph in memory: a slot for each lock with waiters, the chains from slot to slot,
 * and the slots that a task holds (policy/graph.h).
 */
#ifndef __FREQLOCK_GRAPH_BPF_H
#define __FREQLOCK_GRAPH_BPF_H

#include "freqlock.bpf.h"
#include "policy/graph.h"
#include "policy/lock.h"
#include "policy/quota.h"

extern const volatile u64 lock_key;
extern struct lock_slot lock_slots[FL_MAX_LOCKS];
extern struct lock_quota lock_quota;

#define fl_slot(i) (&lock_slots[in_range(i, FL_MAX_LOCKS)])

int fl_slot_of(struct task_struct *w __arg_trusted, u64 hash);
u32 fl_levels_best(u32 slot);
u32 fl_chain_update(u32 from);
int fl_chain_link(u32 from, u32 edge);
bool fl_chain_reaches(u32 edge, u64 self);
int fl_link_holds(u64 holds, u64 self, u32 edge);
int fl_holds_add(struct task_ctx *hctx __arg_nonnull, u32 slot, u64 self);

/* The name of a lock in the graph, policy/lock.h. */
static __always_inline u64 fl_lock_hash(enum lock_space space, u64 addr, u32 tgid)
{
	return lock_hash(lock_key, space, addr, tgid);
}

/* True if @edge leads to what is no lock, but the answers of a task (answer.bpf.c). */
static __always_inline bool fl_is_answer(u32 edge)
{
	return sees_answers && edge && lock_is_answer(slot_hash(fl_slot(edge_slot(edge))));
}

#endif /* __FREQLOCK_GRAPH_BPF_H */
