/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a lock's holder inherits from its waiters, and for how long:
 *
 * pi_weight	its deadline is computed with the weight of the best waiter, as if
 *		it had that waiter's virtual time;
 * pi_run_now	its request is what is left of a usual hold, so that it goes ahead
 *		in its queue; and if it waits in one, the CPU that its waiter just
 *		left runs it: that CPU was the waiter's to use;
 * pi_nopreempt	it is not preempted, for pi_nopreempt_us in a hold;
 * pi_big	where CPUs differ, it goes to a big one.
 *
 * All of it ends with the hold, and before that when the hold got pi_budget_us
 * of CPU time this way (pi_nopreempt_us, if no waiter weighs more than the holder),
 * or when the task had its share (pi_bandwidth) of a CPU.
 * What it runs is charged to its own virtual time, at its own weight: it pays the
 * boost back by waiting later.
 */
#include "freqlock.bpf.h"
#include "donate.bpf.h"
#include "choose.bpf.h"
#include "drain.bpf.h"
#include "graph.bpf.h"
#include "hooks.bpf.h"
#include "kick.bpf.h"
#include "profile.bpf.h"
#include "queue.bpf.h"
#include "policy/deadline.h"
#include "policy/donate.h"
#include "policy/graph.h"
#include "policy/learn.h"

/*
 * Forget the hold in place @i: @self no longer holds the lock at @slot. A
 * waiter that makes it so again just now sees it among the holds still, or has
 * written the owner before this looks again.
 */
static void hold_drop(struct task_ctx *tctx, u32 i, u32 slot, u64 self)
{
	u64 holds = tctx->holds, seen;

	if (holds_slot(holds, i) != slot)
		return;
	seen = __sync_val_compare_and_swap(&tctx->holds, holds, holds_without(holds, i));
	if (seen == holds && READ_ONCE(fl_slot(slot - 1)->owner) == self)
		fl_holds_add(tctx, slot - 1, self);
}

/*
 * Since when the task is boosted, 0 if it is not. Another CPU may have spared it
 * just as it stopped: what was written then is not of this run.
 */
static u64 donated_since(const struct task_ctx *tctx)
{
	u64 run_start = READ_ONCE(tctx->run_start), at = READ_ONCE(tctx->boosted_at);

	return run_start && at >= run_start ? at : 0;
}

/* Boosted CPU time since @since that the task is not charged for yet. */
static u64 uncharged(const struct task_ctx *tctx, u64 since, u64 now)
{
	u64 from = donated_since(tctx);

	if (!from)
		return 0;
	if (from < since)
		from = since;
	return elapsed(from, now);
}

/* Boosted CPU time in the present hold of the lock at @slot. */
__noinline u64 fl_hold_used(u32 slot, u64 now)
{
	struct lock_slot *s = fl_slot(slot);
	struct task_ctx *hctx = NULL;
	struct task_struct *h = fl_task_of(READ_ONCE(s->owner), &hctx);
	u64 used = s->used;

	if (!h)
		return used;
	used += uncharged(hctx, s->since, now);
	bpf_task_release(h);
	return used;
}

static u64 allowance(const struct task_ctx *tctx, u64 now)
{
	const volatile struct fl_policy *policy = fl_policy(tctx);
	u64 have = allowance_fill(tctx->allowance, elapsed(tctx->allowance_at, now),
				  policy->pi_bandwidth, policy->pi_budget_us * FL_USEC);

	return allowance_spend(have, uncharged(tctx, 0, now));
}

/*
 * The best level of the waiters for @self's locks, 0 if there are none or if the
 * bounds are reached. Also sets for how long it may run without preemption, and the
 * usual length of such a hold.
 */
__noinline u32 fl_hold(struct task_ctx *tctx __arg_nonnull, u64 self, u64 now)
{
	const volatile struct fl_policy *policy = fl_policy(tctx);
	u64 holds = tctx->holds, used = 0, keep = policy->pi_nopreempt_us * FL_USEC;
	u64 most = policy->pi_budget_us * FL_USEC;
	u32 i, best = 0;

	tctx->keep_ns = 0;
	bpf_for(i, 0, MAX_HOLDS) {
		u32 slot = holds_slot(holds, i), level;
		struct lock_slot *s;

		if (!slot)
			continue;
		s = fl_slot(slot - 1);
		if (READ_ONCE(s->owner) != self) {
			hold_drop(tctx, i, slot, self);
			continue;
		}
		level = fl_levels_best(slot - 1);
		if (!level)
			continue;
		used = greater(used, s->used + uncharged(tctx, s->since, now));
		if (level > best) {
			best = level;
			tctx->hold_ns = s->hold;
		}
	}
	if (!best)
		return 0;
	if (fl_asks(FL_HOOK_boost_holder, tctx)) {
		best = fl_ask_boost(tctx, self, best);
		if (!best)
			return 0;
	}
	if (used >= donate_most(best, tctx->level, keep, most) || !allowance(tctx, now)) {
		fl_count(donate_spent);
		return 0;
	}
	if (policy->pi_nopreempt && used < keep)
		tctx->keep_ns = keep - used;
	return best;
}

/* The task is boosted from now on, if it is not yet. */
static void donation_begins(struct task_ctx *tctx, s32 cpu, u64 now)
{
	if (!donated_since(tctx))
		tctx->boosted_at = now;
	fl_cpu(cpu)->boosted = true;
}

/* Weight of the first task in the queue of @cpu, 0 if there is none. */
static u64 head_weight(s32 cpu)
{
	struct task_struct *p = __COMPAT_scx_bpf_dsq_peek(fl_queue(cpu));
	struct task_ctx *tctx = p ? fl_task(p) : NULL;

	return tctx ? tctx->weight : 0;
}

/*
 * Deadline of a holder on @cpu: its own, or the earlier one that its waiters give
 * it. It goes ahead of the first in the queue unless that weighs more.
 */
u64 fl_hold_deadline(struct task_ctx *tctx __arg_nonnull, u64 self, s32 cpu, u64 now)
{
	const volatile struct fl_policy *policy = fl_policy(tctx);
	u64 request = tctx->burst, weight = tctx->weight, deadline, head;
	u32 level = fl_hold(tctx, self, now);

	if (!level || !(policy->pi_weight || policy->pi_run_now))
		return tctx->deadline;
	if (policy->pi_weight)
		weight = donate_weight(weight, level);
	if (policy->pi_run_now)
		request = tctx->hold_ns ?: LEARN_UNKNOWN_BURST_NS;
	deadline = donate_deadline(tctx->deadline, fl_cpu(cpu)->vclock, request, fl_slice(tctx),
				   weight);
	head = policy->pi_run_now && head_weight(cpu) <= weight ? fl_head_deadline(cpu) : FL_NONE;
	return head != FL_NONE && vtime_before(head - 1, deadline) ? head - 1 : deadline;
}

/* A holder begins to run on @cpu. Returns its deadline, as above. */
u64 fl_hold_running(struct task_ctx *tctx __arg_nonnull, u64 self, s32 cpu, u64 now)
{
	u64 deadline = fl_cpu(cpu)->running_deadline, own = tctx->deadline;

	tctx->deadline = deadline;
	deadline = fl_hold_deadline(tctx, self, cpu, now);
	if (deadline != tctx->deadline)
		donation_begins(tctx, cpu, now);
	tctx->deadline = own;
	return deadline;
}

/*
 * How much longer a holder may run although another of @weight wants its CPU: in
 * any case until pi_nopreempt_us are over, and as long as the other weighs no more
 * than the best waiter. 0 for not at all.
 */
static __always_inline u64 keep_ns(struct task_ctx *tctx, u64 self, u64 weight, u64 now)
{
	u32 level = fl_hold(tctx, self, now);
	int may = FREQLOCK_DEFAULT;

	if (!level)
		return 0;
	/* What it keeps the CPU for is boosted time, so the bounds of a hold end it. */
	if (fl_asks(FL_HOOK_may_preempt_holder, tctx))
		may = fl_ask_preempt(tctx, self, level, weight);
	if (may == FREQLOCK_YES)
		return 0;
	if (tctx->keep_ns)
		return tctx->keep_ns;
	if (may == FREQLOCK_NO)
		return fl_slice(tctx);
	return fl_policy(tctx)->pi_weight && weight <= donate_weight(tctx->weight, level) ?
		       fl_slice(tctx) :
		       0;
}

/* True if the task that runs on @cpu is left there, since others wait for it. */
bool fl_hold_spares(s32 cpu, u64 weight, u64 now)
{
	struct task_struct *p = bpf_task_from_pid(fl_cpu(cpu)->running);
	struct task_ctx *tctx;
	bool spares;

	if (!p)
		return false;
	tctx = fl_task(p);
	spares = tctx && tctx->holds && keep_ns(tctx, fl_self(p, tctx), weight, now);
	if (spares) {
		donation_begins(tctx, cpu, now);
		fl_count(hold_spared);
	}
	bpf_task_release(p);
	return spares;
}

/* The slice of a holder is over: how much longer it may run, ns; 0 for not at all. */
u64 fl_hold_keep(struct task_ctx *tctx __arg_nonnull, u64 self, s32 cpu, u64 now)
{
	u64 ns = keep_ns(tctx, self, head_weight(cpu), now);

	if (!ns)
		return 0;
	donation_begins(tctx, cpu, now);
	fl_count(hold_kept);
	return ns < fl_slice(tctx) ? ns : fl_slice(tctx);
}

/*
 * The boosted time until now is charged: it stops, or the
 * hold is over. Of several holds at once each is charged for all of it.
 */
int fl_hold_charge(struct task_ctx *tctx __arg_nonnull, u64 self, u64 now)
{
	u64 since = donated_since(tctx);
	u32 i;

	if (!since) {
		tctx->boosted_at = 0;
		return 0;
	}
	bpf_for(i, 0, MAX_HOLDS) {
		u32 slot = holds_slot(tctx->holds, i);

		if (slot && fl_slot(slot - 1)->owner == self)
			fl_slot(slot - 1)->used += uncharged(tctx, fl_slot(slot - 1)->since, now);
	}
	tctx->allowance = allowance(tctx, now);
	tctx->allowance_at = now;
	tctx->stats.boosted += elapsed(since, now);
	tctx->boosted_at = 0;
	return 0;
}

/* For the profile of each lock that @self holds and others wait for. */
static void profile_preempted(struct task_ctx *tctx, u64 self)
{
	u32 i;

	bpf_for(i, 0, MAX_HOLDS) {
		u32 slot = holds_slot(tctx->holds, i);

		if (slot && fl_slot(slot - 1)->owner == self && fl_levels_best(slot - 1))
			fl_profile_preempted(slot_hash(fl_slot(slot - 1)));
	}
}

/* A holder loses its CPU. */
int fl_hold_stops(struct task_ctx *tctx __arg_nonnull, u64 self, u64 now, bool runnable)
{
	if (runnable && fl_hold(tctx, self, now)) {
		fl_count(hold_preempted);
		tctx->stats.preempted_holding++;
		profile_preempted(tctx, self);
	}
	return fl_hold_charge(tctx, self, now);
}

/*
 * Move @h, which waits in @queue, to @cpu, which has nothing to run yet. The affinity of
 * @h may change meanwhile, and the kernel ends a scheduler that sends a task to a CPU that
 * it may not use. A change takes the task out of its queue and puts it back, and an
 * iterator moves nothing that was put there after it began: so that comes first.
 */
static bool take_here(struct task_struct *h, u64 queue, s32 cpu)
{
	struct bpf_iter_scx_dsq it;
	bool moved = false;

	if (!bpf_iter_scx_dsq_new(&it, queue, 0) && fl_allowed(h, cpu) && !is_migration_disabled(h))
		moved = scx_bpf_dsq_move(&it, h, SCX_DSQ_LOCAL_ON | cpu, 0);
	bpf_iter_scx_dsq_destroy(&it);
	return moved;
}

/*
 * @h cannot run where its waiter was: put it ahead in the queue of @cpu, where it
 * waits, and have it preempt what runs there if it may.
 */
static void put_ahead(struct task_struct *h, struct task_ctx *hctx, u64 self, s32 cpu, u64 now)
{
	u64 deadline = fl_hold_deadline(hctx, self, cpu, now);
	struct bpf_iter_scx_dsq it;
	bool moved = false;

	if (!vtime_before(deadline, hctx->deadline))
		return;
	if (!bpf_iter_scx_dsq_new(&it, fl_queue(cpu), 0)) {
		scx_bpf_dsq_move_set_vtime(&it, deadline);
		moved = scx_bpf_dsq_move_vtime(&it, h, fl_queue(cpu), 0);
	}
	bpf_iter_scx_dsq_destroy(&it);
	if (!moved)
		return;
	if (READ_ONCE(fl_cpu(cpu)->offline))
		fl_drain(cpu);
	hctx->deadline = deadline;
	fl_count(hold_ahead);
	if (deadline_preempts(deadline, fl_cpu(cpu)->running_deadline,
			      tunables.preempt_margin_us * FL_USEC) &&
	    !fl_hold_spares(cpu, hctx->weight, now))
		fl_kick(cpu, SCX_KICK_PREEMPT);
}

/* Where CPUs differ: true if a task that needs one now is to have a big one. */
bool fl_hold_wants_big(struct task_ctx *tctx __arg_nonnull, u64 self, u64 now)
{
	return fl_policy(tctx)->pi_big &&
	       ((tctx->flags & FL_TASK_HANDOFF) || (tctx->holds && fl_hold(tctx, self, now)));
}

/*
 * A holder runs on a smaller CPU than @cpu, which has nothing to do: have it come,
 * if such holds last long enough to be worth it.
 */
static void call_here(struct task_struct *h, struct task_ctx *hctx, u64 self, s32 cpu, u64 now)
{
	s32 from = scx_bpf_task_cpu(h);

	if (!hctx->run_start || fl_topo(from)->capacity >= fl_topo(cpu)->capacity ||
	    fl_head_deadline(cpu) != FL_NONE || !fl_hold(hctx, self, now) ||
	    hctx->hold_ns < fl_policy(hctx)->pi_big_us * FL_USEC)
		return;
	hctx->big_cpu = cpu;
	fl_kick(from, SCX_KICK_PREEMPT);
}

/* The queue in which @hctx was put aside (aside.bpf.h), 0 none; it may have been let go since. */
static u64 aside_queue(const struct task_ctx *hctx)
{
	if (shares_cgroups && hctx->throttled_by)
		return fl_throttled(hctx->throttled_by);
	return hctx->flags & FL_TASK_HELD_BACK ? FL_DEBTORS : 0;
}

/*
 * @h was put aside in @queue, and may have been let go. On @cpu it goes on, for want of a quota by
 * grace (bandwidth.bpf.c).
 */
static bool run_aside(struct task_struct *h, u64 queue, s32 cpu)
{
	if (!take_here(h, queue, cpu) && !take_here(h, fl_queue(scx_bpf_task_cpu(h)), cpu))
		return false;
	fl_count(hold_here);
	return true;
}

/* The same where it may not run on @cpu: it goes first on its own. */
static void call_aside(struct task_struct *h, u64 queue)
{
	s32 own = scx_bpf_task_cpu(h);
	struct bpf_iter_scx_dsq it;

	if (!bpf_iter_scx_dsq_new(&it, queue, 0) &&
	    scx_bpf_dsq_move(&it, h, SCX_DSQ_LOCAL_ON | own, 0)) {
		fl_count(hold_ahead);
		fl_kick(own, SCX_KICK_PREEMPT);
	}
	bpf_iter_scx_dsq_destroy(&it);
}

/* Run the holder of the lock at @slot on @cpu. Returns the edge to follow where it waits itself. */
__noinline int fl_run_owner(s32 cpu, u32 slot, u64 now, bool *done __arg_nonnull)
{
	u64 owner = READ_ONCE(fl_slot(slot)->owner);
	struct task_struct *h = bpf_task_from_pid(owner >> 32);
	struct task_ctx *hctx;
	bool allowed;
	u64 aside;
	int edge = 0;
	s32 from;

	if (!h)
		return 0;
	hctx = fl_task(h);
	if (!hctx || fl_self(h, hctx) != owner)
		goto out;
	edge = hctx->edge;
	from = hctx->queued_cpu;
	if (edge)
		goto out;
	allowed = fl_allowed(h, cpu) && !is_migration_disabled(h);
	aside = aside_queue(hctx);
	if (aside) {
		if (allowed)
			*done = run_aside(h, aside, cpu);
		else
			call_aside(h, aside);
		goto out;
	}
	if (from < 0) {
		if (allowed && capacity_differs && fl_policy(hctx)->pi_big)
			call_here(h, hctx, owner, cpu, now);
		goto out;
	}
	if (!fl_policy(hctx)->pi_run_now || !fl_hold(hctx, owner, now))
		goto out;
	if (!allowed) {
		put_ahead(h, hctx, owner, from, now);
		goto out;
	}
	if (take_here(h, fl_queue(from), cpu) ||
	    (fl_cpu(from)->parked && take_here(h, fl_park(from), cpu)) ||
	    (fl_cpu(from)->late && take_here(h, fl_late(from), cpu))) {
		fl_count(hold_here);
		fl_park_over(hctx, from, now);
		*done = true;
	}
out:
	bpf_task_release(h);
	return edge;
}

/*
 * The last task to leave @cpu waits for a lock, or a real-time task elsewhere waits for a
 * task that is queued here. If the holder is runnable and does not run, run it here, in
 * the waiter's stead; if it waits for a lock itself, the holder of that, and so on.
 */
bool fl_run_holder(s32 cpu, u64 now)
{
	u32 edge = __sync_lock_test_and_set(&fl_cpu(cpu)->called_edge, 0), i;
	bool done = false;

	if (!edge) {
		edge = fl_cpu(cpu)->waits_edge;
		fl_cpu(cpu)->waits_edge = 0;
	}
	bpf_for(i, 0, CHAIN_HOPS) {
		edge = fl_run_owner(cpu, edge_slot(edge), now, &done);
		if (!edge || done)
			break;
	}
	return done;
}

/*
 * A real-time task on @cpu is about to sleep for the lock of @edge: its holder, or
 * the task at the end of the chain, runs on this CPU then; and before that where it
 * is queued, since other real-time tasks may want this CPU, or it may not run here.
 */
__noinline int fl_hold_call(u32 edge, s32 cpu, u64 now)
{
	u64 holder = chain_end(lock_slots, edge);
	struct task_ctx *hctx = NULL;
	struct task_struct *h = fl_task_of(holder, &hctx);
	s32 at;

	fl_cpu(cpu)->called_edge = edge;
	if (!h)
		return 0;
	at = hctx->queued_cpu;
	if (at >= 0 && at != cpu && fl_policy(hctx)->pi_run_now && fl_hold(hctx, holder, now)) {
		fl_cpu(at)->called_edge = edge;
		fl_count(hold_called);
		fl_kick(at, SCX_KICK_PREEMPT);
	}
	bpf_task_release(h);
	return 0;
}
