/* SPDX-License-Identifier: GPL-2.0-only */
/* Tasks that spin: found at ticks and by sched_yield, and made to give way. */
#ifndef __FREQLOCK_SPIN_BPF_H
#define __FREQLOCK_SPIN_BPF_H

#include "freqlock.bpf.h"

bool fl_spin_tick(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull, s32 cpu,
		  u64 now);
int fl_spin_yield(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		  u64 now);
int fl_spin_sleep(struct task_ctx *tctx __arg_nonnull);
bool fl_spin_give_way(struct task_struct *prev __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		      s32 cpu);
u64 fl_spin_deadline(struct task_ctx *tctx __arg_nonnull, s32 cpu);
int fl_spin_init(void);

#endif /* __FREQLOCK_SPIN_BPF_H */
