/* SPDX-License-Identifier: GPL-2.0-only */
/* Tasks that answer others: what is learned as those are woken, and made of it as they sleep. */
#ifndef __FREQLOCK_ANSWER_BPF_H
#define __FREQLOCK_ANSWER_BPF_H

#include "freqlock.bpf.h"

/* linux/sched.h: a macro, so not among the kernel's types. */
#define STATE_INTERRUPTIBLE 1

int fl_answer_wake(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		   u64 now);
int fl_answer_await(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		    u64 now);

/* @p was woken. Without --pi-ipc that is nothing, and so is what follows. */
static __always_inline void fl_answer_woken(struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	if (sees_answers)
		fl_answer_wake(p, tctx, now);
}

/* @p falls asleep: only for what may be an answer if it has no lock to wait for, nor a disk. */
static __always_inline void fl_answer_sleep(struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	struct answers *a = &tctx->answers;

	if (!sees_answers)
		return;
	a->timed = p->__state & STATE_INTERRUPTIBLE;
	if (a->timed && !tctx->edge && (a->by[0] | a->by[1]))
		fl_answer_await(p, tctx, now);
}

#endif /* __FREQLOCK_ANSWER_BPF_H */
