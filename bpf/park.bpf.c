/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parked tasks: those that wait for a busy CPU on purpose, because it is warm
 * and expected to be free soon. Other CPUs leave them alone until park_until;
 * then a timer moves them to an idle CPU, or to the CPU's open queue where
 * nothing is idle. So a wrong prediction costs a task at most its own bound.
 * The timer also empties the queues of a CPU that goes (hotplug.bpf.c), and while a
 * task of a higher class has the CPU, it is its tick as well. And it calls CPUs from outside the
 * warm set (warm.bpf.c) for what waited too long there.
 */
#include "freqlock.bpf.h"
#include "park.bpf.h"
#include "alone.bpf.h"
#include "choose.bpf.h"
#include "drain.bpf.h"
#include "kick.bpf.h"
#include "place.bpf.h"
#include "preempt.bpf.h"
#include "queue.bpf.h"
#include "warm.bpf.h"

struct park_timer {
	struct bpf_timer timer;
	struct fl_alarm alarm;
	u32 seen; /* in this round; kept here so that the verifier does not unroll it */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FL_MAX_CPUS);
	__type(key, u32);
	__type(value, struct park_timer);
} park_timers SEC(".maps");

/* More than these at one CPU wait for the next round of the timer. */
#define PARK_BATCH    64
#define PARK_AGAIN_NS (50 * FL_USEC)
/* Tasks scanned in a queue for those that waited too long in the warm set. */
#define HELD_TASKS 16
/* While its CPU goes offline: hotplug.bpf.c. */
#define PARK_GOING_NS (1000 * FL_USEC)

/*
 * Have the timer of @cpu fire in @delay_ns or before. Where two that arm it at once leave the later
 * time, the earlier task waits for that, which is the bound of another parked task, and no longer.
 */
int fl_park_arm(s32 cpu, u64 now, u64 delay_ns)
{
	struct park_timer *t;
	u32 key = cpu;

	t = bpf_map_lookup_elem(&park_timers, &key);
	if (!t)
		return -ENOENT;
	return fl_timer_arm(&t->timer, &t->alarm, now + delay_ns, now);
}

/* Where an overdue task goes: its target if that is still idle, else another idle CPU. */
static s32 claim_idle(struct task_struct *p, struct task_ctx *tctx, s32 cpu, u64 now)
{
	s32 target = tctx ? tctx->park_target : -1;

	if (target >= 0 && fl_allowed(p, target) && scx_bpf_test_and_clear_cpu_idle(target))
		return target;
	return fl_claim_idle(p, fl_policy(tctx)->mode, cpu, now);
}

/*
 * Wake idle CPUs for what waited in the warm set, at @cpu, for too long; ns till the next look
 * there, FL_NONE: none.
 */
__noinline u64 fl_call_for_held(s32 cpu, u64 now)
{
	u64 bound = warm_wait_ns, next = FL_NONE, waited;
	struct task_struct *p;
	struct task_ctx *tctx;
	u32 seen = 0;
	s32 idle;

	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, fl_queue(cpu), 0) {
		if (++seen > HELD_TASKS)
			break;
		tctx = fl_task(p);
		if (!tctx || fl_is_pinned(p))
			continue;
		waited = elapsed(tctx->waiting_since, now);
		if (waited < bound) {
			next = lesser(next, bound - waited);
			continue;
		}
		idle = fl_claim_idle(p, fl_policy(tctx)->mode, cpu, now);
		if (idle < 0)
			break;
		fl_kick(idle, SCX_KICK_IDLE);
	}
	bpf_rcu_read_unlock();
	return next;
}

static int park_fire(void *map, u32 *key, struct park_timer *t)
{
	u32 cpu = *key;
	u64 now = fl_timer_now(&t->alarm), next = FL_NONE;
	struct task_ctx *tctx;
	struct task_struct *p;
	bool going;
	s32 idle;

	fl_count(timer_fire);
	t->seen = 0;
	/* Kernels before 6.18 do not take a timer for such a section. */
	bpf_rcu_read_lock();
	/* A task whose affinity changes from now on is put back: this iterator skips it. */
	bpf_for_each(scx_dsq, p, fl_park(cpu), 0) {
		if (++t->seen > PARK_BATCH) {
			next = now + PARK_AGAIN_NS;
			break;
		}
		tctx = fl_task(p);
		if (tctx && tctx->park_until > now) {
			if (tctx->park_until < next)
				next = tctx->park_until;
			continue;
		}
		idle = claim_idle(p, tctx, cpu, now);
		if (tctx)
			fl_park_over(tctx, cpu, now);
		if (idle >= 0) {
			/* It may have been taken meanwhile; the kick then sends the CPU back to
			 * idle. */
			if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | idle, 0))
				fl_count(park_migrated);
			fl_came(idle, now);
			fl_kick(idle, SCX_KICK_IDLE);
		} else if (scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, fl_queue(cpu), 0)) {
			fl_cpu(cpu)->arrivals++;
			fl_count(park_released);
			if (tctx)
				fl_released(p, tctx, cpu, now);
		}
	}
	bpf_rcu_read_unlock();
	if (fl_cpu(cpu)->holds) {
		u64 left = fl_call_for_held(cpu, now);

		if (left == FL_NONE)
			fl_cpu(cpu)->holds = false;
		else
			next = lesser(next, now + left);
	}
	going = READ_ONCE(fl_cpu(cpu)->going);
	if (going || READ_ONCE(fl_cpu(cpu)->offline))
		fl_drain(cpu);
	if (going)
		next = now + PARK_GOING_NS;
	/* With --partial a CPU without a task of ours is taken, or may be before it looks here. */
	if ((partial ? !fl_is_busy(cpu) : fl_is_taken(cpu)) && fl_call_idle(cpu, now))
		next = lesser(next, now + FL_TAKEN_LOOK_NS);
	if (next != FL_NONE)
		fl_park_arm(cpu, now, next > now ? next - now : 1);
	return 0;
}

/* From ops.init: kfuncs that a callback may call follow the program that sets it. */
int fl_park_init(u32 cpu)
{
	struct park_timer *t = bpf_map_lookup_elem(&park_timers, &cpu);

	if (!t)
		return -ENOENT;
	bpf_timer_init(&t->timer, &park_timers, CLOCK_MONOTONIC);
	return bpf_timer_set_callback(&t->timer, park_fire);
}
