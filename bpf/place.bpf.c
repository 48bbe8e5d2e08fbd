/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a forked or woken task goes: one function a mode. Each ends in one of
 * three ways, which struct placement tells: an idle CPU was claimed; the task
 * is to wait for a busy CPU on purpose (parked, with a bound); or it queues.
 * A mode says why by its statistics, and counts exactly one place_* of them.
 */
#include "place.bpf.h"

/* CPUs scanned for another one than a CPU that a real-time task has. */
#define BESIDE_CPUS 16

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

	scan->near = scan->warm = scan->fast = -1;
	scan->warm_speed = scan->fast_capacity = 0;
	scan->warm_util = 0;

	order = bpf_map_lookup_elem(&cpu_orders, &key);
	if (!order)
		return 0;
	n = order->nr;
	if (n > tunables.scan_cpus)
		n = tunables.scan_cpus;

	/* Park's timer comes here too, and is verified with ops.init, which may sleep. */
	bpf_rcu_read_lock();
	idle = scx_bpf_get_idle_cpumask();
	if (!bpf_cpumask_intersects(idle, p->cpus_ptr))
		goto out;
	bpf_for(i, 0, n) {
		s32 cpu = order->cpu[i & (FL_MAX_CPUS - 1)];
		struct cpu_ctx *cctx = fl_cpu(cpu);
		u32 speed, util, capacity;

		if (!bpf_cpumask_test_cpu(cpu, idle) || !fl_allowed(p, cpu))
			continue;
		if (scan->nest_only && !fl_is_warm(cpu, now))
			continue;
		if (scan->near < 0)
			scan->near = cpu;
		speed = fl_speed(cpu, now);
		util = util_update(cctx->util, elapsed(cctx->speed_at, now), false);
		if (scan->warm < 0 || speed > scan->warm_speed ||
		    (speed == scan->warm_speed && util > scan->warm_util)) {
			scan->warm = cpu;
			scan->warm_speed = speed;
			scan->warm_util = util;
		}
		capacity = fl_topo(cpu)->capacity;
		if (capacity > scan->fast_capacity) {
			scan->fast = cpu;
			scan->fast_capacity = capacity;
		}
	}
	/* A big machine may have its idle CPUs far away only. */
	if (scan->near < 0 && !scan->nest_only && n < order->nr) {
		u32 any = bpf_cpumask_any_and_distribute(idle, p->cpus_ptr);

		if (any < nr_cpus)
			scan->near = scan->warm = scan->fast = any;
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
		if (scan.warm >= 0 && scx_bpf_test_and_clear_cpu_idle(scan.warm))
			return scan.warm;
	}
	bpf_rcu_read_lock();
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	/* A CPU that went was idle as it did, which counts until it is claimed: now. */
	if (cpu >= 0 && fl_cpu(cpu)->offline)
		cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	bpf_rcu_read_unlock();
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
	bool idle = false;
	s32 cpu;

	cpu = scx_bpf_select_cpu_dfl(p, pl->prev_cpu, pl->wake_flags, &idle);
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

/*
 * What it costs to run for @run ns on @to rather than on @from. A forked task has no
 * cache of its own to leave.
 */
static u64 cost_of_migration(s32 from, s32 to, bool fork, u64 run)
{
	u64 cold[FL_NR_DISTANCES] = {
		0,
		tunables.cold_smt_ns,
		tunables.cold_llc_ns,
		tunables.cold_node_ns,
		tunables.cold_far_ns,
	};
	u64 cost[FL_NR_DISTANCES] = {
		0,
		tunables.migrate_smt_ns,
		tunables.migrate_llc_ns,
		tunables.migrate_node_ns,
		tunables.migrate_far_ns,
	};
	struct cpu_topo a = *(struct cpu_topo *)fl_topo(from);
	struct cpu_topo b = *(struct cpu_topo *)fl_topo(to);

	u32 distance = topo_distance(&a, &b, from == to);
	u64 least = migration_cost(distance, cost);

	return fork ? least : greater(least, finish_cold(migration_cost(distance, cold), run));
}

/* Cores of which a CPU is busy; two CPUs to a core where there is more than one. */
static u32 active_cores(void)
{
	const struct cpumask *idle = scx_bpf_get_idle_smtmask();
	u32 nr_idle = bpf_cpumask_weight(idle);

	scx_bpf_put_idle_cpumask(idle);
	return (nr_present > nr_idle ? nr_present - nr_idle : 0) >> smt_present;
}

/* True if the core of an idle CPU is active all the same. */
static bool shares_core(s32 cpu)
{
	s32 sibling = fl_topo(cpu)->sibling;

	return smt_present && sibling >= 0 && fl_is_busy(sibling);
}

_Static_assert(FL_STAT_auto_fast == FL_STAT_auto_local + AUTO_FAST,
	       "statistics of auto stand in the order of enum auto_why");

/*
 * Candidate @why: take it instead of what was chosen so far if the task would finish
 * there earlier. While some CPU is idle, a busy one must be expected to be free soon.
 */
__noinline int fl_consider(struct placement *pl __arg_nonnull, s32 cpu, bool idle, u32 why)
{
	struct auto_choice *choice = &pl->choice;
	struct cpu_ctx *cctx = fl_cpu(cpu);
	u32 speed = fl_speed(cpu, pl->now), top = fl_topo(cpu)->capacity, from = speed;
	u64 ramp = 0, since = cctx->running_since, leave = FL_NONE, ran, rest = 0;
	u32 span = FL_FULL_SPEED - tunables.speed_floor;
	struct candidate c = { .cpu = cpu };

	if ((!idle || why == AUTO_HOME) && fl_is_taken(cpu))
		return 0;
	/* ramp_us is from the floor to full; here it is from 0 to 1024. */
	if (!source_has(freq_source, GIVEN) && tunables.speed_floor < FL_FULL_SPEED && top)
		ramp = tunables.ramp_us * FL_USEC * FL_FULL_SPEED / span * FL_FULL_SPEED / top;
	if (ramp && why == AUTO_WARM)
		from = finish_invest(speed, top, tunables.warm_up);
	c.run = finish_run(pl->burst, from, ramp ? top : speed, ramp);
	c.migration = cost_of_migration(pl->prev_cpu, cpu, pl->fork, c.run);

	if (idle) {
		/* What this CPU saw last stands for all: a difference would be noise. */
		c.wait = fl_cpu(pl->this_cpu)->idle_exit ?: tunables.idle_exit_ns;
		if (!shares_core(cpu))
			c.others = finish_others(c.run, pl->nr_active, fl_turbo(pl->nr_active),
						 fl_turbo(pl->nr_active + 1),
						 tunables.turbo_back_us * FL_USEC,
						 elapsed(cctx->last_stop, pl->now));
	} else {
		/* Without a running task it is between two, or was claimed and not reached yet. */
		if (since) {
			ran = elapsed(since, pl->now);
			rest = learn_rest(cctx->running_rest, work_of(ran, speed)) * FL_FULL_SPEED /
			       speed;
			c.displaced = finish_displaced(c.run, cctx->running_away);
		}
		if (cpu == pl->this_cpu)
			leave = pl->leave_ns;
		else if (since && cctx->leave_at)
			leave = cctx->leave_at > pl->now ? cctx->leave_at - pl->now : rest;
		c.wait = finish_wait(rest, leave, cctx->running_slice, READ_ONCE(cctx->queued_work),
				     speed);
		if (pl->any_idle && c.wait > tunables.park_max_us * FL_USEC)
			return 0;
	}
	if (idle && candidate_better(&c, &choice->buy)) {
		choice->buy = c;
		choice->buy_why = why;
	}
	if (candidate_better(&c, &choice->best)) {
		choice->best = c;
		choice->why = why;
		choice->best_idle = idle;
	}
	return 0;
}

/* What waits for @cctx have cost, ns, as far as it counts at @now. */
static u64 rent_now(const struct cpu_ctx *cctx, u64 now)
{
	return finish_rent(cctx->rent, elapsed(cctx->rent_at, now), cctx->rent_life);
}

/*
 * @tctx waited for @cpu on purpose until now: for so long more than an idle CPU that is as
 * fast would have taken. Two CPUs may do so at once, and one wait is not counted.
 */
int fl_park_over(struct task_ctx *tctx __arg_nonnull, s32 cpu, u64 now)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	u64 waited = elapsed(tctx->waiting_since, now);

	tctx->park_until = 0;
	if (waited <= tctx->park_spared)
		return 0;
	cctx->rent = rent_now(cctx, now) + waited - tctx->park_spared;
	cctx->rent_at = now;
	return 0;
}

/*
 * The task would finish first at a busy CPU. Once waits there have cost what the idle CPU
 * costs more, that is woken instead.
 */
static void rent_or_buy(struct placement *pl)
{
	struct auto_choice *choice = &pl->choice;
	struct candidate *busy = &choice->best, *idle = &choice->buy;
	struct cpu_ctx *cctx = fl_cpu(busy->cpu);

	pl->park_spared = idle->wait + idle->migration;
	/* Of the two that it costs, to be slow at first and to slow others, the greater counts. */
	if (idle->run > pl->burst + idle->others)
		cctx->rent_life = tunables.decay_after_us * FL_USEC +
				  finish_warm(idle->run, tunables.ramp_us * FL_USEC,
					      tunables.decay_us * FL_USEC);
	else
		cctx->rent_life = tunables.turbo_back_us * FL_USEC;
	if (candidate_finish(idle) > candidate_finish(busy) + rent_now(cctx, pl->now))
		return;
	cctx->rent = 0;
	choice->best = *idle;
	choice->why = choice->buy_why;
	choice->best_idle = true;
	fl_count(auto_bought);
}

/* The candidate that finishes first; @choice->best.cpu is -1 if there is none. */
__noinline int fl_choose(struct placement *pl __arg_nonnull)
{
	struct auto_choice *choice = &pl->choice;
	u32 why;

	choice->best.cpu = choice->buy.cpu = -1;
	bpf_for(why, 0, NR_AUTO) {
		u32 i = in_range(why, AUTO_PLACES);

		if (choice->cpu[i] >= 0)
			fl_consider(pl, choice->cpu[i], choice->idle[i], i);
	}
	if (choice->best.cpu >= 0 && choice->buy.cpu >= 0 && !choice->best_idle)
		rent_or_buy(pl);
	return 0;
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
	if (fl_turbo_falls())
		pl->nr_active = active_cores();
	choice->cpu[AUTO_WARM] = scan->warm;
	choice->idle[AUTO_WARM] = choice->idle[AUTO_FAST] = true;
	if (scan->fast_capacity > fl_topo(scan->warm)->capacity)
		choice->cpu[AUTO_FAST] = scan->fast;
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

	begin_choice(pl);
	pl->burst = tctx->burst ?: LEARN_UNKNOWN_BURST_NS;
	if (pl->fork && pl->from_task) {
		parent = fl_task(bpf_get_current_task_btf());
		home = parent ? parent->child_cpu : -1;
	}

	if (pl->from_task && fl_allowed(p, pl->this_cpu))
		choice->cpu[AUTO_LOCAL] = pl->this_cpu;
	if (pl->prev_cpu != pl->this_cpu || !pl->from_task) {
		choice->cpu[AUTO_PREV] = pl->prev_cpu;
		choice->idle[AUTO_PREV] = pl->scan.near == pl->prev_cpu;
	}
	if (home >= 0 && home != pl->this_cpu && fl_allowed(p, home)) {
		choice->cpu[AUTO_HOME] = home;
		choice->idle[AUTO_HOME] = !fl_is_busy(home);
	}

	fl_choose(pl);
	cpu = choice->best.cpu;
	if (cpu < 0)
		return AS_OFF;
	pl->wait_ns = choice->best.wait;
	if (parent)
		home_update(parent, cpu);
	if (!pl->any_idle) {
		fl_count(auto_busy);
		return queue_on(cpu);
	}
	why = in_range(choice->why, AUTO_PLACES);
	if (why < NR_AUTO)
		fl_count_at(FL_STAT_auto_local + why);
	if (choice->best_idle)
		return take_idle(p, pl, cpu);
	if (cpu == pl->this_cpu && pl->leave_ns != FL_NONE)
		fl_count(auto_leaving);
	return park_on(pl, cpu, wait_bound(pl->wait_ns), pl->scan.warm);
}

/*
 * auto: where @p continues, which was preempted or whose slice is over: here when
 * that is over soon, or on an idle CPU where it finishes earlier.
 */
s32 fl_place_again(struct task_struct *p __arg_trusted, struct placement *pl __arg_nonnull)
{
	struct auto_choice *choice = &pl->choice;
	s32 cpu;

	fl_scan_idle(p, pl->prev_cpu, pl->now, &pl->scan);
	begin_choice(pl);
	if (!pl->any_idle)
		return pl->prev_cpu;
	if (!pl->displaced)
		choice->cpu[AUTO_PREV] = pl->prev_cpu;
	fl_choose(pl);
	cpu = choice->best.cpu;
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
	pl->park_ns = wait_bound(choice->best.wait);
	pl->park_target = pl->scan.warm;
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
		work = READ_ONCE(fl_cpu(other)->queued_work);
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
