/* SPDX-License-Identifier: GPL-2.0-only */
/* What is learned of a task as it runs, sleeps and wakes others. */
#ifndef __FREQLOCK_LEARN_BPF_H
#define __FREQLOCK_LEARN_BPF_H

#include "freqlock.bpf.h"
#include "policy/learn.h"

/* What @cpu, if it is idle, is expected to take to run a task that is sent to it, ns. */
static __always_inline u64 fl_idle_exit(s32 cpu, u64 now)
{
	const struct cpu_ctx *cctx = fl_cpu(cpu);

	return learn_exit(cctx->idle_exit, elapsed(cctx->idle_exit_at, now), tunables.idle_exit_ns);
}

/* By how much tasks that wait for @cpu on purpose exceed what is predicted of it, ns. */
static __always_inline u64 fl_overrun(s32 cpu, u64 now)
{
	const struct cpu_ctx *cctx = fl_cpu(cpu);

	return learn_exit(cctx->overrun, elapsed(cctx->overrun_at, now), 0);
}

u64 fl_learn_event(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		   u64 now, u64 wake_flags);
int fl_learn_stop(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull, u64 now,
		  bool runnable);
int fl_learn_back(struct task_ctx *tctx __arg_nonnull, u64 now);
int fl_learn_wait(struct task_ctx *tctx __arg_nonnull, s32 cpu, u64 now);

#endif /* __FREQLOCK_LEARN_BPF_H */
