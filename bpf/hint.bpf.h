/* SPDX-License-Identifier: GPL-2.0-only */
/* What threads report of their locks themselves, as it is read. */
#ifndef __FREQLOCK_HINT_BPF_H
#define __FREQLOCK_HINT_BPF_H

#include "freqlock.bpf.h"
#include "hint.h"

int fl_hint_show(struct task_ctx *tctx __arg_nonnull, u64 uaddr);
bool fl_hint_tick(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull);
int fl_hint_preempted(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull);
int fl_hint_sleep(struct task_ctx *tctx __arg_nonnull, u64 self);

/* Without --locks a constant to the verifier, as fl_holds() is. */
static __always_inline u64 fl_hint(const struct task_ctx *tctx)
{
	return sees_locks ? tctx->hint | tctx->hint_waits : 0;
}

#endif /* __FREQLOCK_HINT_BPF_H */
