/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is counted of each task: where it was placed, what it ran, and for which locks it waited.
 */
#ifndef __FREQLOCK_ACCOUNT_BPF_H
#define __FREQLOCK_ACCOUNT_BPF_H

#include "freqlock.bpf.h"

int fl_account_placed(struct task_ctx *tctx __arg_nonnull, bool kept, bool idle, bool park);
int fl_account_picked(struct task_ctx *tctx __arg_nonnull, s32 cpu, u64 now);
int fl_account_run(struct task_ctx *tctx __arg_nonnull, u64 now, u32 speed);
int fl_account_waits(struct task_ctx *wctx __arg_nonnull, struct task_ctx *hctx __arg_nonnull,
		     u64 holder, u64 lock, u64 now);
int fl_account_waited(struct task_ctx *wctx __arg_nonnull, u64 self, bool handoff, u64 now);
int fl_account_exit(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull);

#endif /* __FREQLOCK_ACCOUNT_BPF_H */
