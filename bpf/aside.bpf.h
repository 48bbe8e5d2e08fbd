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
#include "alone.bpf.h"
#include "cgroup.bpf.h"
#include "clock.bpf.h"
#include "kick.bpf.h"
#include "place.bpf.h"
#include "queue.bpf.h"
#include "policy/deadline.h"

bool fl_must_go_on(struct task_struct *p __arg_trusted);

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

/*
 * Where @p goes, which is let go: to an idle CPU, or to the queue of its own. Inline, as what
 * follows: the calls of a timer that is never set count from ops.init on, and are at their limit.
 */
static __always_inline u64 fl_aside_goal(struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	s32 cpu = scx_bpf_task_cpu(p), idle;

	/* The kernel finds it another CPU (fl_drain()). */
	if (READ_ONCE(fl_cpu(cpu)->offline))
		return SCX_DSQ_LOCAL_ON | cpu;
	idle = fl_claim_idle(p, fl_policy(tctx)->mode, cpu, now);
	return idle >= 0 ? SCX_DSQ_LOCAL_ON | idle : fl_queue(cpu);
}

/* Its place in the queue @goal, on the clock of its CPU. */
static __always_inline u64 fl_aside_key(const struct task_ctx *tctx, u64 goal)
{
	return fl_cpu(goal)->vclock + vtime_charge(fl_request(tctx), tctx->weight);
}

/* A task came to @goal: who is to take it from there is told. */
static __always_inline void fl_aside_went(u64 goal, u64 now)
{
	if (goal & SCX_DSQ_LOCAL_ON) {
		fl_came(goal & (FL_MAX_CPUS - 1), now);
		fl_kick(goal & (FL_MAX_CPUS - 1), SCX_KICK_IDLE);
		return;
	}
	fl_cpu(goal)->released = true;
	fl_cpu(goal)->arrivals++;
	fl_came(goal, now);
	fl_mark_work(goal);
	/* It may have gone idle since it was looked at. */
	if (!fl_is_busy(goal))
		fl_kick(goal, SCX_KICK_IDLE);
}

#endif /* __FREQLOCK_ASIDE_BPF_H */
