/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Edges of the wait-for graph: one appears when a task falls asleep for a lock that a hook has
 * noted (lock.bpf.c), or for the answer of another task (answer.bpf.c), or says that it spins for a
 * lock (hint.bpf.c), and goes when the task is woken. A task has one at most.
 */
#include "freqlock.bpf.h"
#include "edge.bpf.h"
#include "account.bpf.h"
#include "debt.bpf.h"
#include "donate.bpf.h"
#include "graph.bpf.h"
#include "hooks.bpf.h"
#include "profile.bpf.h"
#include "policy/deadline.h"
#include "policy/graph.h"
#include "policy/learn.h"
#include "policy/quota.h"

/* The lock at @slot is held by @self from now on. */
static void slot_own(struct lock_slot *s, u64 self, u64 now)
{
	u64 before = __sync_lock_test_and_set(&s->owner, self);

	if (before == self)
		return;
	s->used = 0;
	s->since = now;
}

/* The wait of @wctx is over. With @handoff: its lock was given to it. */
__noinline int fl_lock_end(struct task_ctx *wctx __arg_nonnull, u64 self, bool handoff, u64 now)
{
	u32 edge = __sync_lock_test_and_set(&wctx->edge, 0), slot;
	struct lock_slot *s;

	if (!edge)
		return 0;
	if (reports_tasks && !fl_is_answer(edge))
		fl_account_waited(wctx, self, handoff, now);
	slot = edge_slot(edge);
	s = fl_slot(slot);
	if (wctx->holds)
		fl_link_holds(wctx->holds, self, 0);
	levels_remove(s, edge_level(edge));
	if (handoff) {
		fl_count(lock_handoff);
		s->hold = learn_average(s->hold, elapsed(s->since, now));
		slot_own(s, self, now);
		fl_chain_link(slot, 0);
		if (s->mask)
			fl_holds_add(wctx, slot, self);
	} else {
		fl_chain_update(slot);
	}
	slot_put_paid(s, &lock_quota);
	return 0;
}

/* @w begins to wait for the lock @hash, which @h holds, or for the answers that it gives. */
__noinline int fl_lock_begin(struct task_struct *w __arg_trusted,
			     struct task_struct *h __arg_trusted, u64 hash)
{
	struct task_ctx *wctx = fl_task(w), *hctx = fl_task(h);
	u64 now = scx_bpf_now(), self, holder;
	struct lock_slot *s;
	u32 edge, level;
	s32 slot;

	if (!wctx || !hctx || wctx == hctx)
		return 0;
	self = fl_self(w, wctx);
	holder = fl_self(h, hctx);
	fl_lock_end(wctx, self, false, now);

	if (hctx->edge && fl_chain_reaches(hctx->edge, self)) {
		fl_count(lock_cycle);
		return 0;
	}
	slot = fl_slot_of(w, hash);
	if (slot < 0)
		return 0;
	s = fl_slot(slot);
	if (sees_answers && lock_is_answer(hash))
		fl_count(ipc_wait);
	else
		fl_count(lock_sleep);
	slot_own(s, holder, now);
	level = w->prio < PRIO_RT_END ? LEVEL_MAX : wctx->level;
	if (level != LEVEL_MAX && fl_asks(FL_HOOK_waiter_level, wctx))
		level = fl_ask_level(w, wctx, hash, holder);
	levels_add(s, level);
	edge = edge_to(slot, level);
	wctx->inversion.level = level;
	if (reports_tasks && !fl_is_answer(edge))
		fl_account_waits(wctx, hctx, holder, hash, now);
	wctx->edge = edge;
	if (wctx->holds)
		fl_link_holds(wctx->holds, self, edge);
	/*
	 * In this order: a holder that begins to wait itself meanwhile either
	 * finds this lock among its holds, or has its edge seen here.
	 */
	fl_holds_add(hctx, slot, holder);
	fl_chain_link(slot, hctx->edge);
	if (s->out)
		fl_chain_update(edge_slot(s->out));
	return 0;
}

/* @w, which @waker wakes, is to have the lock at @slot: when it gets a CPU. */
static void order_handoff(struct task_struct *w, struct task_ctx *wctx, struct task_struct *waker,
			  u32 slot)
{
	s32 level = FREQLOCK_DEFAULT;

	if (fl_asks(FL_HOOK_order_handoff, wctx))
		level = fl_ask_handoff(w, wctx, waker, slot);
	if (level != FREQLOCK_NO)
		fl_handed(wctx, level == FREQLOCK_DEFAULT ? 0 : level);
}

/*
 * @w, which waits for a lock, is woken: by an interrupt, then its time is up; or by
 * the current task, and that is a handoff, be the current task the holder that was
 * known or another. If it was the holder, what it still has to do is not waited
 * for. A signal looks alike; then the lock is @w's until @w or another begins to
 * wait for it again.
 */
int fl_lock_woken(struct task_struct *w __arg_trusted, struct task_ctx *wctx __arg_nonnull, u64 now)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct cpu_ctx *cctx = fl_cpu(bpf_get_smp_processor_id());
	struct task_ctx *hctx = fl_task(waker);
	struct lock_slot *s = fl_slot(edge_slot(wctx->edge));

	if (!fl_from_task())
		return fl_lock_end(wctx, fl_self(w, wctx), false, now);
	if (hctx && s->owner == fl_self(waker, hctx)) {
		fl_profile_hold(slot_hash(s), bpf_get_smp_processor_id(), elapsed(s->since, now));
		hctx->stats.holds++;
		hctx->stats.hold += elapsed(s->since, now);
		fl_hold_charge(hctx, fl_self(waker, hctx), now);
		fl_debt_handoff(hctx, edge_slot(wctx->edge), now);
		if (cctx->boosted)
			cctx->running_deadline = vtime_deadline(hctx->vtime, 0, fl_slice(hctx),
								hctx->weight);
	}
	order_handoff(w, wctx, waker, edge_slot(wctx->edge));
	return fl_lock_end(wctx, fl_self(w, wctx), true, now);
}

/* @p falls asleep: perhaps in the wait that a hook has noted. */
int fl_lock_sleep(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull)
{
	struct task_ctx *hctx = NULL;
	struct task_struct *h = fl_task_of(tctx->wait_owner, &hctx);

	tctx->wait_owner = 0;
	if (!h)
		return 0;
	fl_lock_begin(p, h, tctx->wait_hash);
	bpf_task_release(h);
	return 0;
}
