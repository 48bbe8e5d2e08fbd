/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which task a CPU runs next: from its own queues or from others'. Each group of CPUs has a word
 * in which those are marked that may have a task to spare.
 */
#ifndef __FREQLOCK_QUEUE_BPF_H
#define __FREQLOCK_QUEUE_BPF_H

#include "freqlock.bpf.h"

/* Its CPUs in whose queues a task may be. */
struct group_work {
	u64 cpus;
} __attribute__((aligned(128)));

extern volatile struct cpu_group cpu_groups[FL_MAX_GROUPS];
extern volatile u32 nr_groups;
extern struct group_work group_works[FL_MAX_GROUPS];

#define fl_group(id)      (&cpu_groups[in_range(id, FL_MAX_GROUPS)])
#define fl_group_work(id) (&group_works[in_range(id, FL_MAX_GROUPS)].cpus)

bool fl_take_own(s32 cpu);
bool fl_steal(s32 cpu);
bool fl_balance(s32 cpu, u64 now, u64 served);
bool fl_call_idle(s32 cpu, u64 now);
u64 fl_head_deadline(s32 cpu);
u32 fl_nr_parked(s32 cpu);

/* The mark of @cpu in the word of its group. */
static __always_inline u64 fl_work_bit(s32 cpu)
{
	return 1ULL << (fl_topo(cpu)->place & (FL_GROUP_CPUS - 1));
}

/* A task may be in a queue of @cpu, for others to see; before it is inserted. */
static __always_inline void fl_mark_work(s32 cpu)
{
	u64 bit = fl_work_bit(cpu);
	u32 group = fl_topo(cpu)->group;

	if (group < FL_MAX_GROUPS && !(READ_ONCE(*fl_group_work(group)) & bit))
		__sync_fetch_and_or(fl_group_work(group), bit);
}

#endif /* __FREQLOCK_QUEUE_BPF_H */
