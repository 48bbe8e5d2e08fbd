/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A task's virtual time, on the clock of the CPU that it is on, and
 * the work that waits on each CPU. For main.bpf.c, which knows when they change.
 */
#ifndef __FREQLOCK_CLOCK_BPF_H
#define __FREQLOCK_CLOCK_BPF_H

#include "freqlock.bpf.h"

/* Take @tctx out of the work that waits on the CPU where it was queued. */
static inline void queued_remove(struct task_ctx *tctx)
{
	if (tctx->queued_cpu < 0)
		return;
	__sync_fetch_and_sub(&fl_cpu(tctx->queued_cpu)->queued_work, tctx->queued_work);
	tctx->queued_cpu = -1;
}

static inline void queued_add(struct task_ctx *tctx, s32 cpu)
{
	u64 work = tctx->burst ?: LEARN_UNKNOWN_BURST_NS, slice = fl_slice(tctx);

	queued_remove(tctx);
	tctx->queued_work = work < slice ? work : slice;
	tctx->queued_cpu = cpu;
	__sync_fetch_and_add(&fl_cpu(cpu)->queued_work, tctx->queued_work);
}

/*
 * Bring @tctx onto the clock of @cpu, with bounded credit and debt. While it
 * sleeps its vtime is kept as the lag against the clock of the CPU that it left,
 * so sleep itself earns nothing.
 */
static inline void vtime_join(struct task_ctx *tctx, s32 cpu)
{
	u64 vclock = fl_cpu(cpu)->vclock, from = 0;

	if (tctx->vtime_cpu >= 0)
		from = fl_cpu(tctx->vtime_cpu)->vclock;
	if (tctx->vtime_cpu != cpu)
		tctx->vtime = vtime_rebase(tctx->vtime, from, vclock);
	tctx->vtime_cpu = cpu;
	tctx->vtime = vtime_clamp(tctx->vtime, vclock, tunables.lag_us * FL_USEC, tctx->weight);
}

static inline void vtime_sleep(struct task_ctx *tctx)
{
	if (tctx->vtime_cpu < 0)
		return;
	tctx->vtime -= fl_cpu(tctx->vtime_cpu)->vclock;
	tctx->vtime_cpu = FL_ASLEEP;
}

/* What is left of @tctx's burst, for its next request. */
static inline u64 burst_rest(struct task_ctx *tctx)
{
	return tctx->burst ? learn_rest(tctx->burst, tctx->work) : 0;
}

#endif /* __FREQLOCK_CLOCK_BPF_H */
