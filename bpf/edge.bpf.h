/* SPDX-License-Identifier: GPL-2.0-only */
/* A task's edge in the wait-for graph: it begins to wait for a lock, or waits no more. */
#ifndef __FREQLOCK_EDGE_BPF_H
#define __FREQLOCK_EDGE_BPF_H

#include "freqlock.bpf.h"

int fl_lock_begin(struct task_struct *w __arg_trusted, struct task_struct *h __arg_trusted,
		  u64 hash);
int fl_lock_end(struct task_ctx *wctx __arg_nonnull, u64 self, bool handoff, u64 now);
int fl_lock_sleep(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull);
int fl_lock_woken(struct task_struct *w __arg_trusted, struct task_ctx *wctx __arg_nonnull,
		  u64 now);

/* Without --locks a constant to the verifier, as fl_holds() is. */
static __always_inline u32 fl_edge(const struct task_ctx *tctx)
{
	return sees_locks ? tctx->edge : 0;
}

/* The wait of @p ends otherwise than by a wake-up that was seen: it leaves. */
static __always_inline void fl_wait_leaves(struct task_struct *p, struct task_ctx *tctx)
{
	if (!fl_edge(tctx))
		return;
	tctx->hint_waits = 0;
	fl_lock_end(tctx, fl_self(p, tctx), false, scx_bpf_now());
}

/*
 * @p runs, so it does not sleep for a lock: its wake-up went past both select_cpu and
 * enqueue, or it was given another class meanwhile. A task that spins by its own hint still waits.
 */
static __always_inline void fl_wait_stale(struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	if (fl_edge(tctx) && !tctx->hint_waits)
		fl_lock_end(tctx, fl_self(p, tctx), false, now);
}

/* What @tctx waited for is to be its: it is ordered by @level, 0: by its own weight. */
static inline void fl_handed(struct task_ctx *tctx, u32 level)
{
	tctx->flags |= FL_TASK_HANDOFF;
	tctx->handed_level = level;
}

#endif /* __FREQLOCK_EDGE_BPF_H */
