/* SPDX-License-Identifier: GPL-2.0-only */
/* Lock time by weight: tasks that owe some are held back as they release a lock. */
#ifndef __FREQLOCK_DEBT_BPF_H
#define __FREQLOCK_DEBT_BPF_H

#include "freqlock.bpf.h"

int fl_debt_handoff(struct task_ctx *hctx __arg_nonnull, u32 slot, u64 now);
bool fl_debt_hold_back(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		       u64 enq_flags, u64 now);
int fl_debt_init(void);

/* True if @tctx is to be held back, or is. Without --locks a constant to the verifier. */
static __always_inline bool fl_is_held_back(const struct task_ctx *tctx)
{
	return sees_locks && (tctx->flags & FL_TASK_HELD_BACK);
}

#endif /* __FREQLOCK_DEBT_BPF_H */
