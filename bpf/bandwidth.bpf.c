/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Quotas of cgroups, cpu.max and cpu.max.burst, on each level of the tree. policy/bandwidth.h says
 * what a cgroup may use; this file keeps its tasks from using more.
 *
 * 1. A task that begins to run takes a grant from its cgroup and from those above that have a
 *    quota, and gives back what it did not use as it stops. So a cgroup on many CPUs does not run
 *    past its quota on each of them.
 * 2. Where nothing is left a task is throttled: it waits in a queue of that cgroup, in order of
 *    waiting. One that was queued before is picked, finds no grant, and is put there.
 * 3. A period is begun by the first who asks after its time has come. Where tasks are throttled
 *    that is a timer, which lets them go back to the queues of their CPUs, some at a time.
 *    So a cgroup that stays below its quota has no timer.
 * 4. A task that holds a lock for which others wait goes on where nothing is left, up to a debt
 *    of pi_budget_us. One that dies does in any case, and one that was preempted as it read under
 *    RCU: all that waits for RCU waits for it. And one that was throttled for half of starve_ms
 *    has a turn, which ends as it begins: the kernel ends a scheduler that keeps a task waiting
 *    for 30 s, and a quota of 1 ms in a second may have hundreds of tasks.
 *
 * How tasks that wait so go on, aside.bpf.h says. The timer writes in their contexts for how long
 * they were throttled, which is a figure and decides nothing.
 */
#include "freqlock.bpf.h"
#include "bandwidth.bpf.h"
#include "aside.bpf.h"
#include "cgroup.bpf.h"
#include "donate.bpf.h"
#include "kick.bpf.h"
#include "late.bpf.h"
#include "policy/deadline.h"

/* Tasks scanned, as many as late.bpf.c scans, and those let go at a time. */
#define RELEASE_LOOK  4096
#define RELEASE_BATCH 64
/* How soon the next are let go, or those for whom something was given back. */
#define RELEASE_NS (1000 * FL_USEC)

struct bandwidth_timer {
	struct bpf_timer timer;
	struct fl_alarm alarm;
	u32 seen, went, batch; /* kept here so that the verifier does not unroll the loop */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FL_MAX_SHARES);
	__type(key, u32);
	__type(value, struct bandwidth_timer);
} bandwidth_timers SEC(".maps");

/* Have the timer of @slot fire at @at, or before. */
static int arm(u32 slot, u64 at, u64 now)
{
	struct bandwidth_timer *t = bpf_map_lookup_elem(&bandwidth_timers, &slot);

	if (!t)
		return -ENOENT;
	return fl_timer_arm(&t->timer, &t->alarm, at, now);
}

/* Begin the periods of the cgroup in @slot whose time has come. */
__noinline int fl_bandwidth_refill(u32 slot, u64 now)
{
	struct limit_ctx *c = fl_limit(slot);
	u64 at = READ_ONCE(c->b.refill_at), n = bandwidth_periods(at, now, c->b.period);
	s64 left = READ_ONCE(c->b.left);

	if (!c->b.quota || !n ||
	    !__sync_bool_compare_and_swap(&c->b.refill_at, at, at + n * c->b.period))
		return 0;
	if (READ_ONCE(c->waits) && left <= 0)
		fl_count(quota_used_up);
	fl_limit_read(slot, fl_cgroup(slot)->task_group);
	__sync_fetch_and_add(&c->b.left, bandwidth_refill(left, n, c->b.quota, c->b.burst));
	return 0;
}

/* The quota of @slot, its periods begun, NULL if it has none. @slot is the one above then. */
static __always_inline struct limit_ctx *step_up(u32 *slot, u64 now)
{
	struct limit_ctx *c = fl_limit(*slot);
	u32 at = *slot;

	*slot = fl_cgroup(at)->parent;
	if (!c->b.quota)
		return NULL;
	fl_bandwidth_refill(at, now);
	return c;
}

/* The first cgroup from @slot up whose quota is used up, with @grace ns of debt; else 0. */
__noinline u32 fl_bandwidth_level(u32 slot, s64 grace, u64 now)
{
	struct limit_ctx *c;
	u32 i, at;

	bpf_for(i, 0, CGROUP_DEPTH) {
		if (!slot)
			break;
		at = slot;
		c = step_up(&slot, now);
		if (c && bandwidth_is_used_up(READ_ONCE(c->b.left), grace))
			return at;
	}
	return 0;
}

/* Add @ns, which may be below 0, to what is left on all levels from @slot up. */
__noinline int fl_bandwidth_add(u32 slot, s64 ns, u64 now)
{
	struct limit_ctx *c;
	u32 i, at;

	bpf_for(i, 0, CGROUP_DEPTH) {
		if (!slot)
			break;
		at = slot;
		c = step_up(&slot, now);
		if (!c)
			continue;
		__sync_fetch_and_add(&c->b.left, ns);
		/* Who found nothing left a moment ago may have this. */
		if (ns > 0 && c->waits && READ_ONCE(c->b.left) > 0)
			arm(at, now + RELEASE_NS, now);
	}
	return 0;
}

/*
 * Take a grant for @want ns from all levels from @slot up: the least of theirs, 0 none; FL_NONE if
 * none of them has a quota.
 */
__noinline u64 fl_bandwidth_take(u32 slot, u64 want, u64 now)
{
	u32 i, from = slot;
	bool limited = false;
	struct limit_ctx *c;

	bpf_for(i, 0, CGROUP_DEPTH) {
		if (!slot)
			break;
		c = step_up(&slot, now);
		if (!c)
			continue;
		limited = true;
		want = bandwidth_grant(READ_ONCE(c->b.left), want);
	}
	if (!limited)
		return FL_NONE;
	if (want)
		fl_bandwidth_add(from, -(s64)want, now);
	return want;
}

/* More than any debt. */
#define GRACE_ANY (1LL << 62)

/* The debt, ns, that @p may make for its cgroup: others wait for it. */
static s64 grace_of(struct task_struct *p, struct task_ctx *tctx)
{
	if (fl_must_go_on(p))
		return GRACE_ANY;
	return fl_holds(tctx) ? fl_policy(tctx)->pi_budget_us * FL_USEC : 0;
}

/* True if @p may not run now. */
bool fl_bandwidth_refuses(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
			  u64 now)
{
	return fl_bandwidth_level(tctx->cgroup, grace_of(p, tctx), now);
}

/* Put @p aside, if its quota is used up. True if so. */
bool fl_bandwidth_throttle(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
			   u64 enq_flags, u64 now)
{
	u32 slot = fl_bandwidth_level(tctx->cgroup, grace_of(p, tctx), now);
	struct limit_ctx *c = fl_limit(slot);

	tctx->throttled_by = 0;
	if (!slot || fl_cannot_kick())
		return false;
	fl_put_aside(tctx, now);
	tctx->throttled_by = slot;
	tctx->throttled_until = 0;
	tctx->waiting_since = now;
	c->waits = true;
	/* The task comes there as this returns: the timer looks again where it sees this alone. */
	__sync_lock_test_and_set(&c->came, 1);
	/* Who found no grant, and had no turn, is before those who had one. */
	scx_bpf_dsq_insert_vtime(p, fl_throttled(slot), fl_request(tctx), tctx->owed_since ?: now,
				 enq_flags);
	arm(slot, c->b.refill_at, now);
	fl_count(throttled);
	return true;
}

/* @p begins to run on @cpu. Without a grant it stops at once. */
int fl_bandwidth_begin(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		       s32 cpu, u64 now)
{
	u64 got;

	if (!fl_bandwidth_go_on(p, tctx, now)) {
		scx_bpf_task_set_slice(p, 0);
		fl_kick(cpu, SCX_KICK_PREEMPT);
		return 0;
	}
	if (!tctx->granted_by)
		return 0;
	got = bandwidth_turn(tctx->granted, tctx->request);
	if (got == tctx->request && !fl_is_tickless(cpu))
		return 0;
	scx_bpf_task_set_slice(p, got);
	return fl_end_turn(cpu, now, got);
}

/* A new grant for @p, which runs; false if there is none for it. */
bool fl_bandwidth_go_on(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
			u64 now)
{
	fl_bandwidth_end(p, tctx, now);
	tctx->granted = fl_bandwidth_take(tctx->cgroup, fl_request(tctx), now);
	if (tctx->granted == FL_NONE)
		return true;
	/* Until it has stopped it runs on debt. */
	tctx->granted_by = tctx->cgroup;
	tctx->granted_at = p->se.sum_exec_runtime;
	return tctx->granted || !fl_bandwidth_refuses(p, tctx, now);
}

/*
 * @p stops, or has had its grant: what it ran longer than that, or less, is settled, by the
 * kernel's count, which cpu.stat shows: that has the switch to it as well.
 */
int fl_bandwidth_end(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		     u64 now)
{
	u64 used = p->se.sum_exec_runtime - tctx->granted_at;

	if (!tctx->granted_by)
		return 0;
	fl_bandwidth_add(tctx->granted_by, tctx->granted - used, now);
	tctx->granted_by = 0;
	return 0;
}

/*
 * Where @p goes, which is throttled by @slot: to an idle CPU, to the queue of its own, or to wait
 * for the quota of a cgroup above. FL_NONE: it stays, as it does unless it @may go, is late, or
 * goes on in any case.
 */
__noinline u64 fl_bandwidth_goal(struct task_struct *p __arg_trusted,
				 struct task_ctx *tctx __arg_nonnull, u32 slot, bool may, u64 now)
{
	bool late = is_late(tctx->waiting_since, now, tunables.starve_ms * 1000 * FL_USEC);
	s64 grace = grace_of(p, tctx);
	u32 above;

	if (!late) {
		if (!may && !grace)
			return FL_NONE;
		above = fl_bandwidth_level(slot, grace, now);
		if (above)
			return above == slot ? FL_NONE : fl_throttled(above);
	}
	return fl_aside_goal(p, tctx, now);
}

/* Its place in the queue @goal: by its deadline, or as long as it waits. */
__noinline u64 fl_bandwidth_key(struct task_struct *p __arg_trusted,
				struct task_ctx *tctx __arg_nonnull, u64 goal)
{
	return goal & FL_LIMIT_BIT ? p->scx.dsq_vtime : fl_aside_key(tctx, goal);
}

/* A task came to @goal: who is to take it from there is told. */
__noinline int fl_bandwidth_went(u64 goal, u64 now)
{
	struct limit_ctx *c;

	if (goal & FL_LIMIT_BIT) {
		c = fl_limit(goal);
		__sync_lock_test_and_set(&c->came, 1);
		return arm(in_range(goal, FL_MAX_SHARES), c->b.refill_at, now);
	}
	fl_count(unthrottled);
	fl_aside_went(goal, now);
	return 0;
}

static int period_fire(void *map, u32 *key, struct bandwidth_timer *t)
{
	u64 now = fl_timer_now(&t->alarm), next = FL_NONE;
	u32 slot = *key, came;
	struct limit_ctx *c = fl_limit(slot);
	struct task_struct *p;
	struct task_ctx *tctx;
	u64 goal;
	bool moved;

	came = __sync_lock_test_and_set(&c->came, 0);
	fl_count(timer_fire);
	fl_bandwidth_refill(slot, now);
	t->seen = 0;
	t->went = 0;
	t->batch = c->b.quota ? bandwidth_batch(READ_ONCE(c->b.left), RELEASE_BATCH) :
				RELEASE_BATCH;
	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, fl_throttled(slot), 0) {
		if (++t->seen > RELEASE_LOOK)
			break;
		tctx = fl_task(p);
		if (!tctx)
			continue;
		goal = fl_bandwidth_goal(p, tctx, slot, t->went < t->batch, now);
		if (goal == FL_NONE)
			continue;
		if (!(goal & FL_LIMIT_BIT))
			tctx->throttled_until = now;
		if (goal & SCX_DSQ_LOCAL_ON) {
			moved = scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, goal, 0);
		} else {
			scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER,
						   fl_bandwidth_key(p, tctx, goal));
			moved = scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, goal, 0);
		}
		t->went += moved;
		/* An idle CPU that was claimed in vain goes back to idle by that. */
		fl_bandwidth_went(goal, now);
	}
	bpf_rcu_read_unlock();
	/* Those beyond a batch need not wait for the next period; or one is on its way here. */
	if (t->seen > t->went)
		next = t->batch && t->went >= t->batch ? now + RELEASE_NS : c->b.refill_at;
	else if (came && !t->seen)
		next = now + RELEASE_NS;
	c->waits = next != FL_NONE;
	if (next != FL_NONE)
		arm(slot, next, now);
	return 0;
}

/* As the timers of parked tasks are, and with the queue of the throttled ones. */
__noinline int fl_bandwidth_init_slot(u32 slot)
{
	struct bandwidth_timer *t = bpf_map_lookup_elem(&bandwidth_timers, &slot);

	if (!t)
		return -ENOENT;
	bpf_timer_init(&t->timer, &bandwidth_timers, CLOCK_MONOTONIC);
	return bpf_timer_set_callback(&t->timer, period_fire);
}

/* From ops.init. */
int fl_bandwidth_init(void)
{
	int err = 0;
	u32 slot;

	bpf_for(slot, 0, shares_cgroups ? FL_MAX_SHARES : 0) {
		err = scx_bpf_create_dsq(fl_throttled(slot), -1);
		if (!err)
			err = fl_bandwidth_init_slot(slot);
		if (err)
			break;
	}
	return err;
}
