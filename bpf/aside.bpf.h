/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks that could run and are put aside: in queues from which no CPU takes, until a timer lets
 * them go. For quotas that is bandwidth.bpf.c, for lock time debt.bpf.c.
 *
 * Timers run without the lock of a task's run queue, and a task's affinity, cgroup or class may
 * change at any moment. So they write nothing in its context that decides anything: a task that
 * they queue adds nothing to what is known to wait there, and cpu_ctx::released says that such are
 * there.
 */
#ifndef __FREQLOCK_ASIDE_BPF_H
#define __FREQLOCK_ASIDE_BPF_H

#include "freqlock.bpf.h"
#include "cgroup.bpf.h"
#include "clock.bpf.h"

bool fl_must_go_on(struct task_struct *p __arg_trusted);
u64 fl_aside_goal(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		  u64 now);
u64 fl_aside_key(struct task_ctx *tctx __arg_nonnull, u64 goal);
int fl_aside_went(u64 goal, u64 now);

/*
 * @tctx, which is enqueued, is put aside: it keeps its lag, as one that sleeps does, and is no
 * competitor to others until it is let go.
 */
static __always_inline void fl_put_aside(struct task_ctx *tctx, u64 now)
{
	vtime_sleep(tctx);
	queued_remove(tctx);
	fl_cgroup_count(tctx, 0, now);
	tctx->flags &= ~FL_TASK_PARK;
}

#endif /* __FREQLOCK_ASIDE_BPF_H */
