/* SPDX-License-Identifier: GPL-2.0-only */
/* Late tasks, and the timer that ends the turn of the running one. */
#ifndef __FREQLOCK_LATE_BPF_H
#define __FREQLOCK_LATE_BPF_H

#include "freqlock.bpf.h"

bool fl_take_late(s32 cpu, u64 now, bool wakee);
int fl_turn(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull, s32 cpu,
	    u64 now);
bool fl_still_late(struct task_struct *p, struct task_ctx *tctx, s32 cpu, u64 now, u64 enq_flags);
int fl_end_turn(s32 cpu, u64 now, u64 left);
int fl_turn_ends(s32 cpu);
int fl_look_for_late(s32 cpu, u64 now);
int fl_late_init(u32 cpu);

#endif /* __FREQLOCK_LATE_BPF_H */
