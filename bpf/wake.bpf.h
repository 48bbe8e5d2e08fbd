/* SPDX-License-Identifier: GPL-2.0-only */
/* Operations: a task needs a CPU; and when a task that waits preempts the running one. */
#ifndef __FREQLOCK_WAKE_BPF_H
#define __FREQLOCK_WAKE_BPF_H

#include "freqlock.bpf.h"

s32 freqlock_select_cpu(unsigned long long *ctx);
void freqlock_enqueue(unsigned long long *ctx);
u64 fl_preempts_in(struct task_ctx *tctx __arg_nonnull, s32 cpu, bool urgent, u64 now);

#endif /* __FREQLOCK_WAKE_BPF_H */
