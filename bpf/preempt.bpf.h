/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether a task that comes to a CPU preempts the running one, and how that CPU learns of it. */
#ifndef __FREQLOCK_PREEMPT_BPF_H
#define __FREQLOCK_PREEMPT_BPF_H

#include "freqlock.bpf.h"
#include "donate.bpf.h"
#include "kick.bpf.h"
#include "late.bpf.h"
#include "policy/deadline.h"

u64 fl_preempts_in(struct task_ctx *tctx __arg_nonnull, s32 cpu, bool urgent, u64 now);
int fl_released(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull, s32 cpu,
		u64 now);

/*
 * As under Linux's own, tasks of SCHED_BATCH and SCHED_IDLE that wake up preempt no task. A
 * waker that leaves its CPU to @p does so sooner by itself; if it lied, a tick finds it out.
 */
static __always_inline bool may_preempt(const struct task_struct *p, const struct task_ctx *tctx)
{
	return p->policy != POLICY_BATCH && !tctx->idles && !(tctx->flags & FL_TASK_FOLLOWS);
}

/* In how many ns @p, which arrives, preempts what runs on @cpu; FL_NONE: not at all. */
static __always_inline u64 decide_preemption(struct task_struct *p, struct task_ctx *tctx, s32 cpu,
					     bool urgent, u64 now)
{
	if (!fl_is_busy(cpu) || !(may_preempt(p, tctx) || urgent))
		return FL_NONE;
	if (fl_cpu(cpu)->spinner == p->tgid)
		return 0;
	return fl_preempts_in(tctx, cpu, urgent, now);
}

/* A task was queued on @cpu that is to preempt what runs there @in so many ns. */
static __always_inline void call_cpu(s32 cpu, u64 in, u64 now)
{
	if (in == 0) {
		fl_count(preempt_wake);
		/* A dispatch that comes before this insert forgets it: it may balance then. */
		fl_cpu(cpu)->wakee = true;
		fl_kick(cpu, SCX_KICK_PREEMPT);
	} else if (in != FL_NONE) {
		fl_count(preempt_later);
		fl_cpu(cpu)->wakee = true;
		fl_end_turn(cpu, now, in);
	} else if (!fl_is_busy(cpu)) {
		fl_kick(cpu, SCX_KICK_IDLE);
	}
}

#endif /* __FREQLOCK_PREEMPT_BPF_H */
