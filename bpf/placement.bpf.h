/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A decision about where a task goes, as the operations in wake.bpf.c begin it and
 * carry it out; what is chosen is place.bpf.c's to say.
 */
#ifndef __FREQLOCK_PLACEMENT_BPF_H
#define __FREQLOCK_PLACEMENT_BPF_H

#include "freqlock.bpf.h"
#include "account.bpf.h"
#include "alone.bpf.h"
#include "clock.bpf.h"
#include "decision.bpf.h"
#include "donate.bpf.h"
#include "hooks.bpf.h"
#include "kick.bpf.h"
#include "park.bpf.h"
#include "place.bpf.h"
#include "queue.bpf.h"
#include "policy/learn.h"

static struct placement placements[FL_MAX_CPUS];

/*
 * A holder, and a task with prefer_big, goes to a big CPU where there is a choice; all else is
 * the mode's to say.
 */
static s32 place(struct task_struct *p, struct task_ctx *tctx, struct placement *pl)
{
	s32 cpu;

	if (fl_asks(FL_HOOK_place, tctx)) {
		cpu = fl_ask_place(p, tctx, pl);
		if (cpu >= 0)
			return cpu;
	}
	if (capacity_differs &&
	    (fl_policy(tctx)->prefer_big ||
	     (sees_locks && fl_hold_wants_big(tctx, fl_self(p, tctx), pl->now)))) {
		cpu = fl_claim_big(p, pl->prev_cpu, pl->now);
		if (cpu >= 0) {
			pl->idle = true;
			fl_count(place_idle);
			return cpu;
		}
	}
	return fl_place(p, tctx, pl);
}

static void park_until(struct task_ctx *tctx, const struct placement *pl)
{
	tctx->flags |= FL_TASK_PARK;
	tctx->park_until = pl->now + pl->park_ns;
	tctx->park_target = pl->park_target;
	tctx->park_spared = lesser(pl->park_spared, ~0U);
}

/* A decision of this CPU begins, about a task that ran on @prev_cpu. */
static struct placement *begin_placement(u64 mode, s32 prev_cpu, u64 now)
{
	s32 this_cpu = bpf_get_smp_processor_id();
	struct placement *pl = &placements[this_cpu & (FL_MAX_CPUS - 1)];

	pl->now = now;
	pl->mode = mode;
	pl->wake_flags = 0;
	pl->prev_cpu = prev_cpu;
	pl->this_cpu = this_cpu;
	pl->leave_ns = FL_NONE;
	pl->fork = false;
	pl->displaced = false;
	pl->from_task = false;
	pl->nr_active = 0;
	pl->idle = false;
	pl->park = false;
	pl->hold = false;
	pl->park_target = -1;
	pl->park_spared = 0;
	pl->wait_ns = 0;
	pl->scan.nest_only = false;
	pl->scan.set_only = false;
	pl->scan.soon_ns = 0;
	return pl;
}

/*
 * @p continues on @cpu, which is idle, through the queue of that CPU. Not straight to its
 * local queue: a task that is enqueued there from another CPU is on the way for a moment. On
 * kernels that keep where it goes when its affinity changes meanwhile, it goes there
 * all the same, and the kernel ends the scheduler for it
 * (tests/vm/affinity-changed-in-flight.test).
 *
 * False if @cpu is about to go offline: the CPU that drains its queue waits until all that did
 * not see that are done. False as well where no kick can be sent.
 */
static bool go_on(struct task_struct *p, struct task_ctx *tctx, s32 cpu, u64 now, u64 enq_flags)
{
	if (READ_ONCE(fl_cpu(cpu)->going) || fl_cannot_kick())
		return false;
	queued_add(tctx, cpu);
	fl_came(cpu, now);
	fl_mark_work(cpu);
	vtime_join(tctx, cpu);
	set_deadline(tctx, fl_request(tctx));
	scx_bpf_dsq_insert_vtime(p, fl_queue(cpu), fl_request(tctx), tctx->deadline, enq_flags);
	fl_kick(cpu, SCX_KICK_IDLE);
	/* A task of a higher class may be there first. */
	if (partial)
		fl_park_arm(cpu, now, FL_TAKEN_LOOK_NS);
	return true;
}

/* @p was called to a big CPU, where there was a waiter for its lock. */
static bool go_big(struct task_struct *p, struct task_ctx *tctx, u64 now, u64 enq_flags)
{
	s32 cpu = tctx->big_cpu;

	tctx->big_cpu = -1;
	if (!fl_allowed(p, cpu) || is_migration_disabled(p) || !go_on(p, tctx, cpu, now, enq_flags))
		return false;
	fl_count(hold_big);
	return true;
}

/*
 * A mode that predicts: @p runs on, but not here and now. True if it was sent to an idle CPU;
 * else it queues here, and may be parked.
 */
static bool place_again(struct task_struct *p, struct task_ctx *tctx, s32 cpu, u64 enq_flags,
			u64 now)
{
	struct placement *pl = begin_placement(fl_policy(tctx)->mode, cpu, now);
	s32 target;

	pl->this_cpu = cpu;
	pl->displaced = tctx->flags & FL_TASK_DISPLACED;
	pl->burst = burst_rest(tctx) ?: LEARN_UNKNOWN_BURST_NS;
	pl->scan.soon_ns = pl->burst + tctx->away;
	target = fl_place_again(p, pl);
	if (pl->idle)
		return go_on(p, tctx, target, now, enq_flags);
	if (pl->park)
		park_until(tctx, pl);
	if (pl->hold)
		tctx->flags |= FL_TASK_HELD;
	return false;
}

/*
 * A task that needs a CPU and was not asked where: count it as select_cpu would.
 * SCX_ENQ_CPU_SELECTED does not say so: the kernel leaves it out for forks.
 */
static void count_unasked(struct task_struct *p, struct task_ctx *tctx, u64 enq_flags)
{
	if (tctx->flags & FL_TASK_ASKED) {
		tctx->flags &= ~FL_TASK_ASKED;
		return;
	}
	if (tctx->flags & FL_TASK_FORKED)
		fl_count(fork);
	else if (enq_flags & SCX_ENQ_WAKEUP)
		fl_count(wake);
	else
		return;
	fl_count(pinned);
	fl_count(place_pinned);
	if (reports_tasks)
		fl_account_placed(tctx, tctx->ran_on == scx_bpf_task_cpu(p), false, false);
	tctx->flags &= ~(FL_TASK_PARK | FL_TASK_PREDICTED);
}

#endif /* __FREQLOCK_PLACEMENT_BPF_H */
