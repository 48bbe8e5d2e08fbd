/* SPDX-License-Identifier: GPL-2.0-only */
/* CPUs without ticks: a task that has one for itself, and those that come there. */
#ifndef __FREQLOCK_ALONE_BPF_H
#define __FREQLOCK_ALONE_BPF_H

#include "freqlock.bpf.h"

bool fl_alone_begin(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		    s32 cpu);
bool fl_alone_end(s32 cpu, u64 now);
int fl_alone_tick(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull, s32 cpu,
		  u64 now);
int fl_alone_disturb(s32 cpu, u64 now);

/* A task came to a queue of @cpu, or is about to if it is counted there. */
static __always_inline void fl_came(s32 cpu, u64 now)
{
	if (fl_is_tickless(cpu))
		fl_alone_disturb(cpu, now);
}

#endif /* __FREQLOCK_ALONE_BPF_H */
