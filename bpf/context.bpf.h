/* SPDX-License-Identifier: GPL-2.0-only */
/* Which context a task is in: the values of its knobs, and its weight. */
#ifndef __FREQLOCK_CONTEXT_BPF_H
#define __FREQLOCK_CONTEXT_BPF_H

#include "freqlock.bpf.h"
#include "policy/context.h"

extern volatile u32 contexts_version;

int fl_context_look(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull);
int fl_weigh(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull);

/* See that @p has the knobs of its context, if something can have changed that. */
static __always_inline void fl_follow_context(struct task_struct *p, struct task_ctx *tctx)
{
	u32 version = contexts_version;

	if (version_nr(version) || tctx->context_version != version)
		fl_context_look(p, tctx);
}

#endif /* __FREQLOCK_CONTEXT_BPF_H */
