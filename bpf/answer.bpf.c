/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Priority inheritance beyond locks: a task that sleeps until another one answers it over a pipe,
 * a socket or an eventfd is in the wait-for graph as a waiter for a lock that this one holds, one
 * for each that answers. All else follows as for locks: what is inherited, through chains of
 * servers, which CPU runs it (donate.bpf.c), what bounds it, and how many slots one may have.
 * Who answers whom is guessed from wake-ups (policy/answer.h).
 *
 * An edge is made only to a task of lesser weight, and only while that one is runnable, waits for
 * a disk, or has an edge itself: one that sleeps for a request has none to answer. So tasks of
 * equal weight cost their wake-ups one comparison.
 *
 * A guess is wrong if another task, or a timer, ends the sleep. It is counted, and has cost at most
 * the bounds of a hold: pi_budget_us for each wait, and pi_bandwidth of a CPU for all waits and
 * locks, which the boosted task pays back. If it ran for longer than an answer usually takes, it is
 * believed half as much the next time. Most do not: a server that its client preempts as it
 * answers is still runnable as the client sleeps for something else, and has only to get to its
 * next wait. There it has to get, for a request that finds it awake wakes nobody.
 *
 * What a task can do about that on purpose: wake one of greater weight, which makes it a client.
 * It inherits only as that one wakes it of its own accord, and at once sleeps. Without such
 * a request, only tasks of the same user inherit.
 *
 * Races. What is known of a task is written by that task as it runs or falls asleep, and by who
 * wakes it, under its pi_lock. These never overlap: a wake-up waits until the task has left its
 * CPU, and interrupts write nothing of the task that they interrupt. Tasks are named by PID and
 * cookie, never by address: the name of one that exits fits no other, and an edge to it boosts
 * nobody. Whether the other task is runnable may change while it is looked at: then an edge is
 * made that boosts nobody, or one is missing for a sleep.
 */
#include "freqlock.bpf.h"
#include "answer.bpf.h"
#include "donate.bpf.h"
#include "edge.bpf.h"
#include "graph.bpf.h"
#include "policy/answer.h"
#include "policy/deadline.h"
#include "policy/learn.h"

/* The current task, which @p waited for, has woken it: that ends a hold, and what it inherits. */
static void answered(struct task_ctx *tctx, struct lock_slot *s, struct task_ctx *by, u64 self,
		     u64 now)
{
	struct cpu_ctx *cctx = fl_cpu(bpf_get_smp_processor_id());

	fl_count(ipc_answered);
	s->hold = learn_average(s->hold, elapsed(s->since, now));
	fl_hold_charge(by, self, now);
	/* Others may wait for it: each answer has a budget of its own. */
	s->used = 0;
	s->since = now;
	if (!cctx->boosted)
		return;
	cctx->running_deadline = vtime_deadline(by->vtime, 0, fl_slice(by), by->weight);
	/* It runs in the stead of its client, which takes the CPU back. */
	fl_handed(tctx, 0);
}

/* The sleep of @tctx is over; @by, @self, has woken it, NULL for an interrupt. */
static void await_over(struct task_struct *p, struct task_ctx *tctx, struct task_ctx *by, u64 self,
		       u64 now)
{
	u32 slot = edge_slot(tctx->edge);
	struct lock_slot *s = fl_slot(slot);
	u64 awaited = READ_ONCE(s->owner);

	if (by && self == awaited) {
		answered(tctx, s, by, self, now);
	} else {
		fl_count(ipc_wrong);
		if (fl_hold_used(slot, now) > (s->hold ?: LEARN_UNKNOWN_BURST_NS))
			answers_wrong(&tctx->answers, awaited);
	}
	fl_lock_end(tctx, fl_self(p, tctx), false, now);
}

/* @p is woken, by the current task or by an interrupt. */
__noinline int fl_answer_wake(struct task_struct *p __arg_trusted,
			      struct task_ctx *tctx __arg_nonnull, u64 now)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct task_ctx *by = fl_from_task() ? fl_task(waker) : NULL;
	struct answers *a = &tctx->answers;
	u64 self = by ? fl_self(waker, by) : 0, wakee = fl_self(p, tctx);

	if (!bpf_in_hardirq())
		a->timed = 0;
	if (fl_is_answer(tctx->edge))
		await_over(p, tctx, by, self, now);
	if (!by || !answer_matters(by->level, tctx->level, by->holds | tctx->holds))
		return 0;
	if (answer_is(&by->answers, self, a, wakee)) {
		answers_add(a, self, by->level);
		if (a->asked == self)
			a->asked = 0;
		return 0;
	}
	if (by->answers.timed)
		answers_wrong(a, self);
	by->answers.asked = wakee;
	return 0;
}

/* True if @h, of @self, may be about to answer: it does not sleep for a request. */
static bool is_at_work(struct task_struct *h, struct task_ctx *hctx)
{
	return hctx->edge || !(READ_ONCE(h->__state) & STATE_INTERRUPTIBLE);
}

static bool same_user(struct task_struct *p, struct task_struct *h)
{
	return BPF_CORE_READ(p, real_cred, uid.val) == BPF_CORE_READ(h, real_cred, uid.val);
}

/* @p falls asleep, and some task answers it now and then. */
__noinline int fl_answer_await(struct task_struct *p __arg_trusted,
			       struct task_ctx *tctx __arg_nonnull, u64 now)
{
	u32 level = tctx->level;
	struct task_ctx *hctx = NULL;
	struct awaited awaited;
	struct task_struct *h;

	if (tctx->holds)
		level = greater(level, fl_hold(tctx, fl_self(p, tctx), now));
	awaited = answer_awaited(&tctx->answers, level);
	h = awaited.self ? fl_task_of(awaited.self, &hctx) : NULL;
	if (!h)
		return 0;
	if (hctx->level < level && is_at_work(h, hctx) && (awaited.asked || same_user(p, h)))
		fl_lock_begin(p, h, fl_lock_hash(LOCK_ANSWER, awaited.self, 0));
	bpf_task_release(h);
	return 0;
}
