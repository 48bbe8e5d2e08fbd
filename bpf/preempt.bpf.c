/* SPDX-License-Identifier: GPL-2.0-only */
/* When a task that waits for a CPU preempts the one that runs there: policy/deadline.h. */
#include "freqlock.bpf.h"
#include "preempt.bpf.h"

/*
 * In how many ns @tctx, which waits on @cpu, preempts the running task, FL_NONE: not at all. A task
 * is left to run for a while: what it was woken for is often done by then. But not while it holds
 * up others: @urgent.
 */
u64 fl_preempts_in(struct task_ctx *tctx __arg_nonnull, s32 cpu, bool urgent, u64 now)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	u64 ran = elapsed(cctx->running_since, now), margin = tunables.preempt_margin_us * FL_USEC;
	u64 rest = cctx->running_rest, outlived, left;

	/* An idle task gives way to one that is not, whatever it is owed. */
	if (cctx->running_idles && !tctx->idles && !cctx->boosted)
		return 0;
	/* A task that usually leaves before is left to do that, but not for all of a slice. */
	if (cctx->boosted || deadline_preempts(tctx->deadline, cctx->running_deadline, margin))
		rest = 0;
	outlived = deadline_outlived(cctx->running_deadline, rest, cctx->running_slice,
				     cctx->running_weight);
	if (!deadline_preempts(tctx->deadline, outlived, margin) ||
	    (sees_locks && fl_hold_spares(cpu, tctx->weight, now)))
		return FL_NONE;
	/* A boosted task has had what it was picked for when the boost is over. */
	if (urgent || cctx->boosted)
		return 0;
	left = protected_ns(tunables.preempt_after_us * FL_USEC, fl_nr_running(cpu),
			    cctx->running_weight, tctx->weight, cctx->running_slice);
	left = greater(left, rest);
	/* The end of its slice comes anyway. */
	if (left >= cctx->running_slice)
		return FL_NONE;
	return left > ran ? left - ran : 0;
}

/* @p was parked at @cpu, for longer than it was to; now it waits there as others do. */
int fl_released(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull, s32 cpu,
		u64 now)
{
	call_cpu(cpu, decide_preemption(p, tctx, cpu, false, now), now);
	return 0;
}
