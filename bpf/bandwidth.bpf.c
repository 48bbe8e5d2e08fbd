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
 * has a turn, which ends as it begins: the kernel ends a scheduler that keeps a task waiting for 30
 * s, and a quota of 1 ms in a second may have hundreds of tasks.
 *
 * Timers run without the lock of a task's run queue, and a task's affinity, cgroup or class may
 * change at any moment. So they write nothing in its context: a task that they queue adds nothing
 * to what is known to wait there, and cpu_ctx::released says that such are there.
 */
#include "freqlock.bpf.h"
#include "bandwidth.bpf.h"
#include "cgroup.bpf.h"
#include "clock.bpf.h"
#include "donate.bpf.h"
#include "kick.bpf.h"
#include "late.bpf.h"
#include "place.bpf.h"
#include "queue.bpf.h"
#include "policy/deadline.h"

/* Tasks scanned, as many as late.bpf.c scans; those let go at a time, and how soon the next are, or
 * those for whom something was given back. */
#define RELEASE_LOOK  4096
#define RELEASE_BATCH 64
#define RELEASE_NS    (1000 * FL_USEC)

struct bandwidth_timer {
	struct bpf_timer timer;
	u64 fires_at;
	u32 seen, went; /* kept here so that the verifier does not unroll the loop */
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
	if (t->fires_at > now && t->fires_at <= at)
		return 0;
	t->fires_at = at;
	return bpf_timer_start(&t->timer, at > now ? at - now : 1, 0);
}

/* Begin the periods of @c, in @slot, whose time has come. */
static void refill(u32 slot, struct limit_ctx *c, u64 now)
{
	u64 at = READ_ONCE(c->b.refill_at), n = bandwidth_periods(at, now, c->b.period);
	s64 left = READ_ONCE(c->b.left);

	if (!n || !__sync_bool_compare_and_swap(&c->b.refill_at, at, at + n * c->b.period))
		return;
	if (c->since && left <= 0)
		c->times += n;
	fl_limit_read(slot, fl_cgroup(slot)->task_group);
	__sync_fetch_and_add(&c->b.left, bandwidth_refill(left, n, c->b.quota, c->b.burst));
}

/* The first cgroup from @slot up whose quota is used up, with @grace ns of debt; else 0. */
__noinline u32 fl_bandwidth_level(u32 slot, s64 grace, u64 now)
{
	struct limit_ctx *c;
	u32 i;

	bpf_for(i, 0, CGROUP_DEPTH) {
		if (!slot)
			break;
		c = fl_limit(slot);
		if (c->b.quota) {
			refill(slot, c, now);
			if (bandwidth_is_used_up(READ_ONCE(c->b.left), grace))
				return slot;
		}
		slot = fl_cgroup(slot)->parent;
	}
	return 0;
}

/* Add @ns, which may be below 0, to what is left on all levels from @slot up. */
__noinline int fl_bandwidth_add(u32 slot, s64 ns, u64 now)
{
	struct limit_ctx *c;
	u32 i;

	bpf_for(i, 0, CGROUP_DEPTH) {
		if (!slot)
			break;
		c = fl_limit(slot);
		if (c->b.quota) {
			__sync_fetch_and_add(&c->b.left, ns);
			/* Who found nothing left a moment ago may have this. */
			if (ns > 0 && c->since && READ_ONCE(c->b.left) > 0)
				arm(slot, now + RELEASE_NS, now);
		}
		slot = fl_cgroup(slot)->parent;
	}
	return 0;
}

/* Take a grant for @want ns from all levels from @slot up: the least of theirs, 0 none. */
__noinline u64 fl_bandwidth_take(u32 slot, u64 want, u64 now)
{
	u32 i, from = slot;
	struct limit_ctx *c;

	bpf_for(i, 0, CGROUP_DEPTH) {
		if (!slot)
			break;
		c = fl_limit(slot);
		if (c->b.quota) {
			refill(slot, c, now);
			want = bandwidth_grant(READ_ONCE(c->b.left), want);
		}
		slot = fl_cgroup(slot)->parent;
	}
	if (want)
		fl_bandwidth_add(from, -(s64)want, now);
	return want;
}

/* linux/sched/signal.h, SIGNAL_GROUP_EXIT: a macro, so not among the kernel's types. */
#define GROUP_EXITS 4

/* More than any debt. */
#define GRACE_ANY (1LL << 62)

/*
 * True if @p was preempted as it read under RCU, for which it has to come to an end soon. The
 * current task does so here in any case: the kernel has it begin with that to call a BPF program.
 */
static bool reads_under_rcu(struct task_struct *p)
{
	return bpf_core_field_exists(p->rcu_read_lock_nesting) &&
	       BPF_CORE_READ(p, rcu_read_lock_nesting) > (bpf_get_current_task_btf() == p);
}

/*
 * The debt, ns, that @p may make for its cgroup: others wait for it. Who dies gives its memory
 * back, and does nothing else.
 */
static s64 grace_of(struct task_struct *p, struct task_ctx *tctx)
{
	if ((p->flags & PF_EXITING) || (BPF_CORE_READ(p, signal, flags) & GROUP_EXITS) ||
	    reads_under_rcu(p))
		return GRACE_ANY;
	return fl_holds(tctx) ? fl_policy(tctx)->pi_budget_us * FL_USEC : 0;
}

/* True if @p may not run now. */
bool fl_bandwidth_refuses(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
			  u64 now)
{
	return fl_bandwidth_level(tctx->cgroup, grace_of(p, tctx), now);
}

/*
 * Put @p aside, if its quota is used up. It keeps its lag, as one that sleeps does, and is no
 * competitor to others until it is let go. True if so.
 */
bool fl_bandwidth_throttle(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
			   u64 enq_flags, u64 now)
{
	u32 slot = fl_bandwidth_level(tctx->cgroup, grace_of(p, tctx), now);
	struct limit_ctx *c = fl_limit(slot);

	if (!slot || fl_cannot_kick())
		return false;
	vtime_sleep(tctx);
	queued_remove(tctx);
	fl_cgroup_count(tctx, 0);
	tctx->flags &= ~FL_TASK_PARK;
	tctx->throttled_by = slot;
	tctx->waiting_since = now;
	if (!c->since)
		c->since = now;
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
	if (got == tctx->request)
		return 0;
	scx_bpf_task_set_slice(p, got);
	return fl_end_turn(cpu, now, got);
}

/* A new grant for @p, which runs; false if there is none for it. */
bool fl_bandwidth_go_on(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
			u64 now)
{
	u64 want = fl_request(tctx);

	fl_bandwidth_end(p, tctx, now);
	tctx->granted = fl_bandwidth_take(tctx->cgroup, want, now);
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

/* Let @p go, which @it is at: to an idle CPU or to the queue of its own. True if it went. */
static __always_inline bool release(struct bpf_iter_scx_dsq *it, struct task_struct *p,
				    struct task_ctx *tctx, u64 now)
{
	s32 cpu = scx_bpf_task_cpu(p), idle;
	u64 vclock = fl_cpu(cpu)->vclock;

	/* The kernel finds it another CPU (fl_drain()). */
	if (READ_ONCE(fl_cpu(cpu)->offline))
		return scx_bpf_dsq_move(it, p, SCX_DSQ_LOCAL_ON | cpu, 0);
	idle = fl_claim_idle(p, fl_policy(tctx)->mode, cpu, now);
	if (idle >= 0) {
		bool moved = scx_bpf_dsq_move(it, p, SCX_DSQ_LOCAL_ON | idle, 0);

		fl_kick(idle, SCX_KICK_IDLE);
		return moved;
	}
	scx_bpf_dsq_move_set_vtime(it, vclock + vtime_charge(fl_request(tctx), tctx->weight));
	if (!scx_bpf_dsq_move_vtime(it, p, fl_queue(cpu), 0))
		return false;
	fl_cpu(cpu)->released = true;
	fl_mark_work(cpu);
	/* It may have gone idle since it was looked at. */
	if (!fl_is_busy(cpu))
		fl_kick(cpu, SCX_KICK_IDLE);
	return true;
}

static int period_fire(void *map, u32 *key, struct bandwidth_timer *t)
{
	u64 now = fl_timer_now(__sync_lock_test_and_set(&t->fires_at, 0)), next = FL_NONE;
	u64 starves = tunables.starve_ms * 1000 * FL_USEC;
	u32 slot = *key, above;
	u64 batch;
	s64 grace;
	bool late;
	struct limit_ctx *c = fl_limit(slot);
	u32 came = __sync_lock_test_and_set(&c->came, 0);
	struct task_struct *p;
	struct task_ctx *tctx;

	fl_count(timer_fire);
	if (c->b.quota)
		refill(slot, c, now);
	t->seen = 0;
	t->went = 0;
	batch = c->b.quota ? bandwidth_batch(READ_ONCE(c->b.left), RELEASE_BATCH) : RELEASE_BATCH;
	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, fl_throttled(slot), 0) {
		if (++t->seen > RELEASE_LOOK)
			break;
		tctx = fl_task(p);
		if (!tctx)
			continue;
		late = is_late(tctx->waiting_since, now, starves);
		grace = grace_of(p, tctx);
		/* One behind it may be late, or have been killed. */
		if (t->went >= batch && !late && !grace) {
			next = batch ? now + RELEASE_NS : c->b.refill_at;
			continue;
		}
		above = late ? 0 : fl_bandwidth_level(slot, grace, now);
		if (above == slot) {
			next = c->b.refill_at;
			continue;
		}
		t->went++;
		if (above) {
			__sync_lock_test_and_set(&fl_limit(above)->came, 1);
			scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, fl_throttled(above), 0);
			arm(above, fl_limit(above)->b.refill_at, now);
		} else if (release(BPF_FOR_EACH_ITER, p, tctx, now)) {
			fl_count(unthrottled);
		}
	}
	bpf_rcu_read_unlock();
	/* One is on its way here. */
	if (came && !t->seen)
		next = lesser(next, now + RELEASE_NS);
	if (next == FL_NONE || (c->since && READ_ONCE(c->b.left) > 0)) {
		c->waited_ns += c->since ? elapsed(c->since, now) : 0;
		c->since = next == FL_NONE ? 0 : now;
	}
	if (next != FL_NONE)
		arm(slot, next, now);
	return 0;
}

/* From ops.init, as the timers of parked tasks are. */
int fl_bandwidth_init(u32 slot)
{
	struct bandwidth_timer *t = bpf_map_lookup_elem(&bandwidth_timers, &slot);

	if (!t)
		return -ENOENT;
	bpf_timer_init(&t->timer, &bandwidth_timers, CLOCK_MONOTONIC);
	return bpf_timer_set_callback(&t->timer, period_fire);
}
