/* SPDX-License-Identifier: GPL-2.0-only */
/* What each cgroup with a quota has left of it. */
#ifndef __FREQLOCK_LIMIT_BPF_H
#define __FREQLOCK_LIMIT_BPF_H

#include "freqlock.bpf.h"
#include "policy/bandwidth.h"

/* Of a cgroup, by its slot. */
struct limit_ctx {
	struct bandwidth b;
	u32 came;   /* 1: a task was throttled since the timer looked */
	bool waits; /* tasks wait for the quota */
} __attribute__((aligned(64)));

extern struct limit_ctx limits[FL_MAX_SHARES];
/* How many cgroups have a quota. */
extern volatile u32 nr_limited;

#define fl_limit(slot) (&limits[in_range(slot, FL_MAX_SHARES)])

int fl_limit_read(u32 slot, u64 task_group);
int fl_limit_forget(u32 slot);
bool fl_limit_is_open(u32 slot);

#endif /* __FREQLOCK_LIMIT_BPF_H */
