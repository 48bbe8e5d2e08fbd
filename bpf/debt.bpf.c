/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lock time by weight, with the knob lock_debt_us: a task that holds locks for longer than its
 * share while others wait for them owes those lock time (policy/lock_debt.h).
 *
 * 1. What a task owes is counted as it hands off a lock of user space to a waiter: from then on
 *    it would be the others' turn for a while. It may do other work meanwhile.
 * 2. A task that owed already as others began to wait for this hold came back too soon. It is held
 *    back: it leaves its CPU as it hands off the lock, before it can take it again, and waits in a
 *    queue from which no CPU takes, until it owes nothing, and for lock_debt_us at most.
 * 3. A timer lets it go. A lock that it holds still, and that others wait for, ends that before:
 *    the CPU that such a waiter leaves fetches it (fl_run_owner()).
 *
 * A later deadline alone would not do: on a CPU of its own a task runs at once whatever that
 * is, and takes a free lock without asking the kernel.
 *
 * Locks of the kernel are left alone: a task that was held back in the kernel might hold
 * another one, without an owner that is known. So are waits without a known holder, and holds
 * for which nobody waits: those cost nobody anything.
 */
#include "freqlock.bpf.h"
#include "debt.bpf.h"
#include "aside.bpf.h"
#include "donate.bpf.h"
#include "graph.bpf.h"
#include "kick.bpf.h"
#include "policy/graph.h"
#include "policy/lock.h"
#include "policy/lock_debt.h"

/* More than these at once wait for the next round of the timer. */
#define DEBT_BATCH    64
#define DEBT_AGAIN_NS (50 * FL_USEC)
/* One that was on its way into the queue as the timer fired is found so much later. */
#define DEBT_LOOK_NS (1000 * FL_USEC)

struct debt_timer {
	struct bpf_timer timer;
	struct fl_alarm alarm;
	u32 came; /* 1: a task was held back since the timer looked */
	u32 seen; /* in this round; kept here so that the verifier does not unroll it */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct debt_timer);
} debt_timers SEC(".maps");

/* Have the timer fire at @at, or before. */
static int arm(u64 at, u64 now)
{
	u32 key = 0;
	struct debt_timer *t = bpf_map_lookup_elem(&debt_timers, &key);

	if (!t)
		return -ENOENT;
	return fl_timer_arm(&t->timer, &t->alarm, at, now);
}

/* The current task, of @hctx, hands off the lock at @slot, which others waited for. */
__noinline int fl_debt_handoff(struct task_ctx *hctx __arg_nonnull, u32 slot, u64 now)
{
	u64 most = fl_policy(hctx)->lock_debt_us * FL_USEC, before = hctx->debt_until, since;
	struct lock_slot *s = fl_slot(slot);

	if (!most || lock_is_kernels(slot_hash(s)))
		return 0;
	since = READ_ONCE(s->since);
	hctx->debt_until = debt_after(before, since, now, weight_of_level(hctx->level),
				      levels_weight(s), most);
	if (!debt_delays(before, since) || !hctx->run_start)
		return 0;
	hctx->flags |= FL_TASK_HELD_BACK;
	fl_kick(bpf_get_smp_processor_id(), SCX_KICK_PREEMPT);
	return 0;
}

/*
 * @p, which is to be held back, is enqueued. False if it is not: it was woken, so that it may have
 * been given a lock meanwhile, or others wait for what it does.
 */
bool fl_debt_hold_back(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		       u64 enq_flags, u64 now)
{
	u32 key = 0;
	struct debt_timer *t = bpf_map_lookup_elem(&debt_timers, &key);

	if (!t || (enq_flags & SCX_ENQ_WAKEUP) || !debt_left(tctx->debt_until, now) ||
	    fl_cannot_kick() || fl_must_go_on(p) ||
	    (tctx->holds && fl_hold(tctx, fl_self(p, tctx), now))) {
		tctx->flags &= ~FL_TASK_HELD_BACK;
		return false;
	}
	fl_put_aside(tctx, now);
	/* Before that it waits for no CPU. */
	tctx->waiting_since = tctx->debt_until;
	tctx->stats.throttled += debt_left(tctx->debt_until, now);
	fl_count(held_back);
	/* The task comes there as this returns: the timer looks again where it sees this alone. */
	__sync_lock_test_and_set(&t->came, 1);
	scx_bpf_dsq_insert_vtime(p, FL_DEBTORS, fl_request(tctx), tctx->debt_until, enq_flags);
	arm(tctx->debt_until, now);
	return true;
}

static int debt_fire(void *map, u32 *key, struct debt_timer *t)
{
	u64 now = fl_timer_now(&t->alarm), next = FL_NONE, goal;
	u32 came = __sync_lock_test_and_set(&t->came, 0);
	struct task_struct *p;
	struct task_ctx *tctx;

	fl_count(timer_fire);
	t->seen = 0;
	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, FL_DEBTORS, 0) {
		if (debt_left(p->scx.dsq_vtime, now)) {
			next = p->scx.dsq_vtime;
			break;
		}
		if (++t->seen > DEBT_BATCH) {
			next = now + DEBT_AGAIN_NS;
			break;
		}
		tctx = fl_task(p);
		if (!tctx)
			continue;
		goal = fl_aside_goal(p, tctx, now);
		if (goal & SCX_DSQ_LOCAL_ON) {
			scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, goal, 0);
		} else {
			scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, fl_aside_key(tctx, goal));
			scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, goal, 0);
		}
		/* An idle CPU that was claimed in vain goes back to idle by that. */
		fl_aside_went(goal, now);
	}
	bpf_rcu_read_unlock();
	if (came && next == FL_NONE)
		next = now + DEBT_LOOK_NS;
	if (next != FL_NONE)
		arm(next, now);
	return 0;
}

/* From ops.init: the queue, and the timer as those of parked tasks are. */
int fl_debt_init(void)
{
	u32 key = 0;
	struct debt_timer *t = bpf_map_lookup_elem(&debt_timers, &key);
	int err;

	if (!sees_locks)
		return 0;
	if (!t)
		return -ENOENT;
	err = scx_bpf_create_dsq(FL_DEBTORS, -1);
	if (err)
		return err;
	bpf_timer_init(&t->timer, &debt_timers, CLOCK_MONOTONIC);
	return bpf_timer_set_callback(&t->timer, debt_fire);
}
