/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a forked or woken task goes: one function a mode. Each ends in one of
 * three ways, which struct placement tells: an idle CPU was claimed; the task
 * is to wait for a busy CPU on purpose (parked, with a bound); or it queues.
 * A mode says why by its statistics, and counts exactly one place_* of them.
 */
#include "freqlock.bpf.h"
#include "place.bpf.h"
#include "choose.bpf.h"
#include "freq.bpf.h"
#include "warm.bpf.h"
#include "policy/balance.h"
#include "policy/learn.h"
#include "policy/speed.h"
#include "policy/warmset.h"

/* CPUs scanned for another one than a CPU that a real-time task has. */
#define BESIDE_CPUS 16

/* @cpu is of the set and not idle: how much work is there, at full speed. */
static void scan_busy(s32 cpu, u64 now, struct idle_scan *scan)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	u64 rest = learn_rest(cctx->running_rest, elapsed(cctx->running_since, now));

	if (!cctx->running_since)
		rest = 0;
	rest += queued_ns(READ_ONCE(cctx->queued_work));
	if (rest >= scan->least_ns || fl_is_taken(cpu))
		return;
	scan->least = cpu;
	scan->least_ns = rest;
}

static void warmest_of(struct warmest *w, s32 cpu, u32 speed, u32 util)
{
	if (w->cpu >= 0 && (speed < w->speed || (speed == w->speed && util <= w->util)))
		return;
	w->cpu = cpu;
	w->speed = speed;
	w->util = util;
}

/*
 * Functions that are not static are verified once each; as static ones, the
 * paths of four predictions would multiply.
 */

__noinline int fl_scan_idle(struct task_struct *p __arg_trusted, s32 from, u64 now,
			    struct idle_scan *scan __arg_nonnull)
{
	const struct cpumask *idle;
	struct cpu_order *order;
	u32 key = from, i, n;

	scan->near = scan->fast = scan->least = -1;
	scan->warm = scan->free = (struct warmest){ .cpu = -1 };
	scan->least_ns = FL_NONE;
	scan->fast_capacity = 0;

	order = bpf_map_lookup_elem(&cpu_orders, &key);
	if (!order)
		return 0;
	n = order->nr;
	if (n > tunables.scan_cpus)
		n = tunables.scan_cpus;

	/* Park's timer comes here too, and is verified with ops.init, which may sleep. */
	bpf_rcu_read_lock();
	idle = scx_bpf_get_idle_cpumask();
	if (!bpf_cpumask_intersects(idle, fl_cpus(p)))
		goto out;
	bpf_for(i, 0, n) {
		s32 cpu = order->cpu[i & (FL_MAX_CPUS - 1)];
		struct cpu_ctx *cctx = fl_cpu(cpu);
		u32 speed, util, capacity;

		if (scan->set_only && !cctx->in_set)
			continue;
		if (!bpf_cpumask_test_cpu(cpu, idle)) {
			if (scan->set_only)
				scan_busy(cpu, now, scan);
			continue;
		}
		if (!fl_allowed(p, cpu))
			continue;
		if (scan->nest_only && !fl_is_warm(cpu, now))
			continue;
		if (scan->near < 0)
			scan->near = cpu;
		speed = fl_speed(cpu, now);
		util = util_update(cctx->util, elapsed(cctx->speed_at, now), false);
		warmest_of(&scan->warm, cpu, speed, util);
		if (last_is_back(cctx, now) >= scan->soon_ns)
			warmest_of(&scan->free, cpu, speed, util);
		capacity = fl_topo(cpu)->capacity;
		if (capacity > scan->fast_capacity) {
			scan->fast = cpu;
			scan->fast_capacity = capacity;
		}
	}
	/* A big machine may have its idle CPUs far away only. */
	if (scan->near < 0 && !scan->nest_only && !scan->set_only && n < order->nr) {
		u32 any = bpf_cpumask_any_and_distribute(idle, fl_cpus(p));

		if (any < nr_cpus && !fl_is_isolated(any))
			scan->near = scan->warm.cpu = scan->fast = any;
	}
out:
	scx_bpf_put_idle_cpumask(idle);
	bpf_rcu_read_unlock();
	return 0;
}

/* Claims the idle CPU of the highest capacity for @p, -1 if none is idle. */
s32 fl_claim_big(struct task_struct *p __arg_trusted, s32 from, u64 now)
{
	struct idle_scan scan = {};

	fl_scan_idle(p, from, now, &scan);
	return scan.fast >= 0 && scx_bpf_test_and_clear_cpu_idle(scan.fast) ? scan.fast : -1;
}

/*
 * Claims an idle CPU for @p, which waits at @from: for modes that know warm CPUs
 * the fastest now, else whichever the kernel gives. -1 if none is idle.
 */
s32 fl_claim_idle(struct task_struct *p __arg_trusted, u64 mode, s32 from, u64 now)
{
	struct idle_scan scan = { .nest_only = mode_has(mode, WARM_ONLY) };
	s32 cpu;

	if (!fl_any_idle())
		return -1;
	if (mode_has(mode, WARM)) {
		fl_scan_idle(p, from, now, &scan);
		if (scan.warm.cpu >= 0 && scx_bpf_test_and_clear_cpu_idle(scan.warm.cpu))
			return scan.warm.cpu;
	}
	bpf_rcu_read_lock();
	cpu = scx_bpf_pick_idle_cpu(fl_cpus(p), 0);
	/* A CPU that went was idle as it did, which counts until it is claimed: now. */
	if (cpu >= 0 && fl_cpu(cpu)->offline)
		cpu = scx_bpf_pick_idle_cpu(fl_cpus(p), 0);
	bpf_rcu_read_unlock();
	if (cpu < 0 || !fl_is_isolated(cpu))
		return cpu;
	/* Until it has been busy again, nobody else finds that one. */
	if (scan.near < 0)
		fl_scan_idle(p, from, now, &scan);
	return scan.near >= 0 && scx_bpf_test_and_clear_cpu_idle(scan.near) ? scan.near : -1;
}

/*
 * Where @p goes, which has been on the isolated CPU @from: to the nearest of the others that it may
 * use; -1 if it is bound to isolated ones.
 */
s32 fl_place_apart(struct task_struct *p __arg_trusted, s32 from)
{
	struct cpu_order *order;
	u32 key = from, i;
	s32 cpu = -1;

	order = bpf_map_lookup_elem(&cpu_orders, &key);
	if (!order)
		return -1;
	bpf_for(i, 0, order->nr) {
		s32 other = order->cpu[in_range(i, FL_MAX_CPUS)];

		if (fl_allowed(p, other)) {
			cpu = other;
			break;
		}
	}
	return cpu;
}

static s32 queue_on(s32 cpu)
{
	fl_count(place_busy);
	return cpu;
}

static s32 take_claimed(struct placement *pl, s32 cpu)
{
	pl->idle = true;
	if (cpu == pl->prev_cpu)
		fl_count(place_prev_idle);
	else
		fl_count(place_idle);
	return cpu;
}

/* Take an idle CPU that was only looked at; another wake-up may be faster. */
static s32 take_idle(struct task_struct *p, struct placement *pl, s32 cpu)
{
	s32 other;

	if (scx_bpf_test_and_clear_cpu_idle(cpu))
		return take_claimed(pl, cpu);
	other = fl_claim_idle(p, pl->mode, cpu, pl->now);
	if (other >= 0)
		return take_claimed(pl, other);
	fl_count(place_raced);
	return cpu;
}

/* Wait for a busy CPU on purpose, for at most @ns. */
static s32 park_on(struct placement *pl, s32 cpu, u64 ns, s32 target)
{
	pl->park = true;
	pl->park_ns = ns;
	pl->park_target = target;
	fl_count(park);
	if (cpu == pl->this_cpu)
		fl_count(place_local);
	else
		fl_count(place_prev);
	return cpu;
}

/* A mode that has no CPU of its own for a task leaves it to off. */
#define AS_OFF (-1)

/*
 * Nothing is idle: @prev, or the CPU of the task that wakes @p up where fewer are. That one
 * leaves it if it says so, and what it has just written for @p is in its cache.
 */
static s32 less_crowded(struct task_struct *p, const struct placement *pl, s32 prev)
{
	bool leaves = pl->wake_flags & SCX_WAKE_SYNC;
	s32 this = pl->this_cpu;

	if (this == prev || pl->fork || !pl->from_task || !fl_allowed(p, this))
		return prev;
	return waker_less_crowded(fl_nr_running(this), leaves, fl_nr_running(prev)) ? this : prev;
}

/* An idle CPU near the previous one, as the kernel chooses it: off, and where a mode says so. */
static s32 place_near(struct task_struct *p, struct placement *pl)
{
	u64 wake_flags = pl->wake_flags;
	bool idle = false;
	s32 cpu;

	/*
	 * The kernel would believe a waker of a higher class that it leaves its CPU to @p, and
	 * one whose CPU is isolated.
	 */
	if ((partial && !pl->from_task) || fl_is_isolated(pl->this_cpu))
		wake_flags &= ~SCX_WAKE_SYNC;
	cpu = scx_bpf_select_cpu_dfl(p, pl->prev_cpu, wake_flags, &idle);
	if (fl_is_isolated(cpu)) {
		cpu = fl_claim_idle(p, pl->mode, pl->prev_cpu, pl->now);
		idle = cpu >= 0;
		cpu = idle ? cpu : pl->prev_cpu;
	}
	if (idle)
		return take_claimed(pl, cpu);
	return queue_on(less_crowded(p, pl, cpu));
}

static s32 place_off(struct task_struct *p, struct task_ctx *tctx, struct placement *pl)
{
	return AS_OFF;
}

static s32 place_fork_local(struct task_struct *p, struct task_ctx *tctx, struct placement *pl)
{
	u64 bound = tunables.disperse_us * FL_USEC;

	if (pl->fork) {
		if (fl_allowed(p, pl->this_cpu) &&
		    forklocal_keeps_child(fl_nr_running(pl->this_cpu))) {
			fl_count(forklocal_alone);
			return park_on(pl, pl->this_cpu, bound, -1);
		}
		fl_count(forklocal_crowded);
		return AS_OFF;
	}
	if (!forklocal_keeps_wakee(fl_nr_running(pl->prev_cpu))) {
		fl_count(forklocal_prev_crowded);
		return AS_OFF;
	}
	fl_count(forklocal_prev_ok);
	if (scx_bpf_test_and_clear_cpu_idle(pl->prev_cpu))
		return take_claimed(pl, pl->prev_cpu);
	return park_on(pl, pl->prev_cpu, bound, -1);
}

static s32 place_fork_all(struct task_struct *p, struct task_ctx *tctx, struct placement *pl)
{
	s32 cpu = pl->fork && fl_allowed(p, pl->this_cpu) ? pl->this_cpu : pl->prev_cpu;

	if (scx_bpf_test_and_clear_cpu_idle(cpu))
		return take_claimed(pl, cpu);
	return park_on(pl, cpu, tunables.disperse_us * FL_USEC, -1);
}

static s32 place_smove(struct task_struct *p, struct task_ctx *tctx, struct placement *pl)
{
	s32 near = pl->scan.near;

	if (!pl->from_task || !fl_allowed(p, pl->this_cpu) || near < 0)
		return AS_OFF;
	if (smove_stays(fl_speed(pl->this_cpu, pl->now), fl_speed(near, pl->now))) {
		fl_count(smove_stay);
		return park_on(pl, pl->this_cpu, tunables.smove_delay_us * FL_USEC, near);
	}
	fl_count(smove_go);
	return take_idle(p, pl, near);
}

/*
 * The warm set is not stored: a CPU belongs to it while it is busy and for
 * nest_idle_us after. Taking a CPU from outside thus makes the set grow, and
 * leaving one idle makes it shrink.
 */
static s32 place_nest(struct task_struct *p, struct task_ctx *tctx, struct placement *pl)
{
	s32 near = pl->scan.near;

	if (near >= 0) {
		fl_count(nest_warm);
		return take_idle(p, pl, near);
	}
	fl_count(nest_grow);
	return AS_OFF;
}

/* The candidates that a scan has shown: the idle ones, and what they would cost others. */
static void begin_choice(struct placement *pl)
{
	struct auto_choice *choice = &pl->choice;
	const struct idle_scan *scan = &pl->scan;
	u32 i;

	for (i = 0; i < NR_AUTO; i++)
		choice->cpu[i] = -1;
	choice->idle[AUTO_LOCAL] = choice->idle[AUTO_PREV] = false;
	pl->any_idle = scan->near >= 0;
	if (!pl->any_idle)
		return;
	fl_count_active(pl);
	choice->cpu[AUTO_WARM] = scan->warm.cpu;
	choice->idle[AUTO_WARM] = choice->idle[AUTO_FAST] = choice->idle[AUTO_FREE] = true;
	if (scan->fast_capacity > fl_topo(scan->warm.cpu)->capacity)
		choice->cpu[AUTO_FAST] = scan->fast;
	if (scan->free.cpu != scan->warm.cpu)
		choice->cpu[AUTO_FREE] = scan->free.cpu;
}

/* A wait is off by a share of itself rather than by a constant. */
static u64 wait_bound(u64 wait_ns)
{
	return 2 * wait_ns + tunables.park_margin_us * FL_USEC;
}

/*
 * The home moves only when two children in a row went elsewhere: once is a
 * kernel thread in the way, or the second command of a pipe.
 */
static void home_update(struct task_ctx *parent, s32 cpu)
{
	if (cpu == parent->child_cpu) {
		parent->child_away = 0;
	} else if (parent->child_cpu < 0 || ++parent->child_away >= 2) {
		parent->child_cpu = cpu;
		parent->child_away = 0;
	}
}

/* No CPU of the set is idle: true if the task is to wait there, else it may go to any. */
static bool waits_in_set(struct placement *pl)
{
	if (pl->scan.least >= 0 && pl->scan.least_ns <= warm_wait_ns) {
		pl->hold = true;
		return true;
	}
	pl->scan.set_only = false;
	return false;
}

/* True if @cpu is not of the set to which the task is confined. */
static bool outside(const struct placement *pl, s32 cpu)
{
	return pl->scan.set_only && !fl_cpu(cpu)->in_set;
}

/*
 * auto: the candidate that finishes first; with nothing idle, it is a question
 * of the shortest wait.
 *
 * The home of a forked task is the CPU to which its parent's children went of
 * late: a script's commands then follow each other there, also when a kernel
 * thread happens to be in the way for a moment.
 */
static s32 place_auto(struct task_struct *p, struct task_ctx *tctx, struct placement *pl)
{
	struct auto_choice *choice = &pl->choice;
	struct task_ctx *parent = NULL;
	s32 cpu, home = -1;
	u32 why;

	if (pl->scan.set_only && pl->scan.near < 0) {
		if (waits_in_set(pl)) {
			pl->wait_ns = pl->scan.least_ns;
			return queue_on(pl->scan.least);
		}
		fl_scan_idle(p, pl->prev_cpu, pl->now, &pl->scan);
	}
	begin_choice(pl);
	if (pl->fork && pl->from_task) {
		parent = fl_task(bpf_get_current_task_btf());
		home = parent ? parent->child_cpu : -1;
	}

	if (pl->from_task && fl_allowed(p, pl->this_cpu) && !outside(pl, pl->this_cpu))
		choice->cpu[AUTO_LOCAL] = pl->this_cpu;
	if (!outside(pl, pl->prev_cpu) && (pl->prev_cpu != pl->this_cpu || !pl->from_task)) {
		choice->cpu[AUTO_PREV] = pl->prev_cpu;
		choice->idle[AUTO_PREV] = pl->scan.near == pl->prev_cpu;
	}
	if (home >= 0 && !outside(pl, home) && home != pl->this_cpu && fl_allowed(p, home)) {
		choice->cpu[AUTO_HOME] = home;
		choice->idle[AUTO_HOME] = !fl_is_busy(home);
	}

	fl_choose(pl);
	cpu = choice->best;
	if (cpu < 0)
		return AS_OFF;
	pl->wait_ns = choice->best_wait;
	if (parent)
		home_update(parent, cpu);
	if (!pl->any_idle) {
		fl_count(auto_busy);
		return queue_on(cpu);
	}
	why = in_range(choice->best_why, AUTO_PLACES);
	if (why < NR_AUTO)
		fl_count_at(FL_STAT_auto_local + why);
	if (choice->best_idle)
		return take_idle(p, pl, cpu);
	if (cpu == pl->this_cpu && pl->leave_ns != FL_NONE)
		fl_count(auto_leaving);
	return park_on(pl, cpu, wait_bound(pl->wait_ns), pl->scan.warm.cpu);
}

/* auto: @p was woken, and its previous CPU, which is claimed, is the place for it. */
static bool goes_back(struct task_struct *p, struct placement *pl)
{
	s32 prev = pl->prev_cpu;

	if (pl->fork || fl_is_busy(prev) || !fl_allowed(p, prev) || outside(pl, prev))
		return false;
	if (!fl_prev_is_best(p->pid, pl) || !scx_bpf_test_and_clear_cpu_idle(prev))
		return false;
	fl_count(auto_prev);
	take_claimed(pl, prev);
	return true;
}

/*
 * auto: where @p continues, which was preempted or whose slice is over: here when
 * that is over soon, or on an idle CPU where it finishes earlier.
 */
s32 fl_place_again(struct task_struct *p __arg_trusted, struct placement *pl __arg_nonnull)
{
	struct auto_choice *choice = &pl->choice;
	s32 cpu;

	pl->scan.set_only = fl_is_confined(p) && fl_cpu(pl->prev_cpu)->in_set;
	fl_scan_idle(p, pl->prev_cpu, pl->now, &pl->scan);
	begin_choice(pl);
	if (!pl->any_idle) {
		pl->hold = pl->scan.set_only;
		return pl->prev_cpu;
	}
	if (!pl->displaced)
		choice->cpu[AUTO_PREV] = pl->prev_cpu;
	fl_choose(pl);
	cpu = choice->best;
	if (cpu < 0)
		return pl->prev_cpu;
	if (choice->best_idle) {
		pl->idle = scx_bpf_test_and_clear_cpu_idle(cpu);
		if (pl->idle)
			fl_count(again_idle);
		return cpu;
	}
	fl_count(again_here);
	pl->park = true;
	pl->park_ns = wait_bound(choice->best_wait);
	pl->park_target = pl->scan.warm.cpu;
	return cpu;
}

/*
 * A real-time task has @cpu: of the CPUs near it that none has, the one with the least
 * work queued; @cpu itself if @p may use no other.
 */
static s32 beside(struct task_struct *p, s32 cpu)
{
	u64 least = FL_NONE, work;
	struct cpu_order *order;
	u32 key = cpu, i;
	s32 best = cpu;

	order = bpf_map_lookup_elem(&cpu_orders, &key);
	if (!order)
		return cpu;
	bpf_for(i, 1, BESIDE_CPUS) {
		s32 other;

		if (i >= order->nr)
			break;
		other = order->cpu[in_range(i, FL_MAX_CPUS)];
		work = queued_ns(READ_ONCE(fl_cpu(other)->queued_work));
		if (work >= least || !fl_allowed(p, other) || fl_is_taken(other))
			continue;
		least = work;
		best = other;
	}
	return best;
}

static s32 place_by_mode(struct task_struct *p, struct task_ctx *tctx, struct placement *pl)
{
	switch (pl->mode) {
#define MODE(name, cli, flags, help) \
	case FL_MODE_##name:         \
		return place_##name(p, tctx, pl);
#include "modes.h"
#undef MODE
	default:
		return AS_OFF;
	}
}

/* The CPU for @p by its mode. @pl->prev_cpu is one that @p may use. */
s32 fl_place(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
	     struct placement *pl __arg_nonnull)
{
	u64 mode = pl->mode;
	s32 cpu;

	if (mode_has(mode, PREDICTS)) {
		pl->burst = tctx->burst ?: LEARN_UNKNOWN_BURST_NS;
		pl->scan.soon_ns = pl->burst + tctx->away;
		if (pl->now >= warm_next)
			fl_warm_look(pl->this_cpu, pl->now);
		pl->scan.set_only = warm_confines(pl->burst) && fl_is_confined(p);
		if (goes_back(p, pl))
			return pl->prev_cpu;
	}
	pl->scan.nest_only = mode_has(mode, WARM_ONLY);
	if (mode_has(mode, SCANS) && (pl->from_task || !mode_has(mode, BY_TASKS)))
		fl_scan_idle(p, pl->prev_cpu, pl->now, &pl->scan);
	cpu = place_by_mode(p, tctx, pl);
	if (cpu < 0)
		cpu = place_near(p, pl);
	if (!pl->idle && fl_is_taken(cpu)) {
		pl->park = false;
		cpu = beside(p, cpu);
	}
	return cpu;
}
