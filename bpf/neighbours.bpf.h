/* SPDX-License-Identifier: GPL-2.0-only */
/* The ledgers of what ran on each CPU, for the page of CPUs to count on. */
#ifndef __FREQLOCK_NEIGHBOURS_BPF_H
#define __FREQLOCK_NEIGHBOURS_BPF_H

#include "freqlock.bpf.h"

/* The period that goes on, 0: switched off. */
extern volatile u64 neighbours_period;

int fl_neighbour_ran(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		     s32 cpu, u64 now);

#endif /* __FREQLOCK_NEIGHBOURS_BPF_H */
