/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where mode auto predicts a task to finish first, of the candidates that place.bpf.c
 * found: what each costs (policy/finish.h), and when it is time to wake a CPU that costs
 * more now than it gains.
 */
#include "freqlock.bpf.h"
#include "choose.bpf.h"
#include "freq.bpf.h"
#include "learn.bpf.h"
#include "warm.bpf.h"
#include "policy/balance.h"
#include "policy/finish.h"
#include "policy/learn.h"
#include "policy/modes.h"
#include "policy/speed.h"

static struct rent rents[FL_MAX_CPUS];

static struct rent *rent_of(s32 cpu)
{
	return &rents[fl_topo(cpu)->llc & (FL_MAX_CPUS - 1)];
}

/* What it costs to run for @run ns with cold caches, which cost a long run @cold; @least at least.
 */
static u64 at_least(u64 least, u64 cold, u64 run)
{
	return longer(least, finish_cold(cold, run));
}

/*
 * What it costs to run for @run ns on @to rather than on @from. A forked task has no
 * cache of its own to leave.
 */
static u64 cost_of_migration(s32 from, s32 to, bool fork, u64 run)
{
	struct cpu_topo *a = (struct cpu_topo *)fl_topo(from);
	struct cpu_topo *b = (struct cpu_topo *)fl_topo(to);
	u64 least, cold;

	switch (topo_distance(a, b, from == to)) {
	case FL_SAME_CPU:
		return 0;
	case FL_SAME_CORE:
		least = tunables.migrate_smt_ns;
		cold = tunables.cold_smt_ns;
		break;
	case FL_SAME_LLC:
		least = tunables.migrate_llc_ns;
		cold = tunables.cold_llc_ns;
		break;
	case FL_SAME_NODE:
		least = tunables.migrate_node_ns;
		cold = tunables.cold_node_ns;
		break;
	default:
		least = tunables.migrate_far_ns;
		cold = tunables.cold_far_ns;
	}
	return fork ? least : at_least(least, cold, run);
}

/* True if the core of an idle CPU is active all the same. */
static bool shares_core(s32 cpu)
{
	s32 sibling = fl_topo(cpu)->sibling;

	return smt_present && sibling >= 0 && fl_is_busy(sibling);
}

/* Cores of which a CPU is busy; two CPUs to a core where there is more than one. */
static u32 active_cores(void)
{
	const struct cpumask *idle = scx_bpf_get_idle_smtmask();
	u32 nr_idle = bpf_cpumask_weight(idle);

	scx_bpf_put_idle_cpumask(idle);
	return (nr_present > nr_idle ? nr_present - nr_idle : 0) >> smt_present;
}

/* How many cores one more would slow, if it does. */
int fl_count_active(struct placement *pl __arg_nonnull)
{
	if (fl_turbo_falls())
		pl->nr_active = active_cores();
	return 0;
}

_Static_assert(FL_STAT_auto_free == FL_STAT_auto_local + AUTO_FREE,
	       "statistics of auto stand in the order of enum auto_why");

/*
 * What it takes to have a task run that @from sends to @to, which is idle. Each saw how long such
 * tasks took to come to it, by a clock that may be some us before or after the other's: where one
 * sees too much, the other sees as much too little.
 */
static u64 exit_time(s32 from, s32 to, u64 now)
{
	return (fl_idle_exit(from, now) + fl_idle_exit(to, now)) / 2;
}

/*
 * Candidate @why: take it instead of what was chosen so far if the task would finish
 * there earlier. While some CPU is idle, a busy one must be expected to be free soon. An idle one
 * that its last task wants back soon is lent: it is no CPU to stay on, and counts among the busy
 * ones.
 */
__noinline int fl_consider(struct placement *pl __arg_nonnull, s32 cpu, bool idle, u32 why)
{
	struct auto_choice *choice = &pl->choice;
	struct cpu_ctx *cctx = fl_cpu(cpu);
	u32 speed = fl_speed(cpu, pl->now), top = fl_topo(cpu)->capacity, from = speed;
	u64 ramp = 0, since = cctx->running_since, leave = FL_NONE, back, ran, rest = 0;
	u32 span = FL_FULL_SPEED - tunables.speed_floor, i = in_range(idle, 2);
	struct candidate c = { .cpu = cpu };

	if ((!idle || why == AUTO_HOME) && fl_is_taken(cpu))
		return 0;
	/* ramp_us is from the floor to full; here it is from 0 to 1024. */
	if (speed < top && !source_has(freq_source, GIVEN) && tunables.speed_floor < FL_FULL_SPEED)
		ramp = tunables.ramp_us * FL_USEC * FL_FULL_SPEED / span * FL_FULL_SPEED / top;
	if (ramp && (why == AUTO_WARM || why == AUTO_FREE || (why == AUTO_PREV && idle)))
		from = finish_invest(speed, top, pl->scan.set_only ? warm_share : tunables.warm_up);
	c.run = finish_run(pl->burst, from, ramp ? top : speed, ramp);
	c.migration = cost_of_migration(pl->prev_cpu, cpu, pl->fork, c.run);

	if (idle) {
		c.wait = exit_time(pl->this_cpu, cpu, pl->now);
		if (!shares_core(cpu))
			c.others = finish_others(c.run, pl->nr_active, fl_turbo(pl->nr_active),
						 fl_turbo(pl->nr_active + 1),
						 tunables.turbo_back_us * FL_USEC,
						 elapsed(cctx->last_stop, pl->now));
		if (cpu != pl->prev_cpu) {
			back = last_is_back(cctx, pl->now);
			c.displaced = finish_lent(c.wait + c.migration + c.run, back,
						  at_least(tunables.migrate_llc_ns,
							   tunables.cold_llc_ns,
							   cctx->running_rest));
			if (back < pl->scan.soon_ns)
				i = 0;
		}
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
		c.wait = finish_wait(rest, leave, cctx->running_slice,
				     queued_ns(READ_ONCE(cctx->queued_work)), speed);
		if (pl->any_idle)
			c.wait += fl_overrun(cpu, pl->now);
		if (pl->any_idle && c.wait > tunables.park_max_us * FL_USEC)
			return 0;
	}
	c.finish = candidate_finish(&c);
	if (candidate_better(&c, &choice->first[i])) {
		choice->first[i] = c;
		choice->why[i] = why;
	}
	return 0;
}

/* What it costs at least to run on another CPU. */
static u64 least_migration(void)
{
	u64 near = shorter(smt_present ? tunables.migrate_smt_ns : FL_NONE,
			   tunables.migrate_llc_ns);

	return shorter(near, shorter(tunables.migrate_node_ns, tunables.migrate_far_ns));
}

/* True if a woken task finishes first on @pl->prev_cpu, which is idle, whatever the others are. */
static bool prev_wins(struct placement *pl)
{
	struct candidate *prev = &pl->choice.first[true];

	prev->cpu = -1;
	fl_consider(pl, pl->prev_cpu, true, AUTO_PREV);
	if (prev->finish >= finish_least(pl->burst, prev->wait, least_migration()))
		return false;
	return !pl->from_task || pl->this_cpu == pl->prev_cpu ||
	       prev->finish < finish_least(pl->burst, 0,
					   cost_of_migration(pl->prev_cpu, pl->this_cpu, false,
							     pl->burst));
}

/*
 * The same; most wake-ups are of this kind, and to look at the other CPUs takes longer than all
 * else. To find this out takes as long as some bursts last, too. So it holds for FREQ_STEP_NS, for
 * which speeds are taken to be what they were as well: a burst that is no longer gains no more
 * elsewhere.
 */
__noinline int fl_prev_is_best(u32 pid, struct placement *pl __arg_nonnull)
{
	struct last_back *back = &fl_cpu(pl->prev_cpu)->back;
	s32 from = pl->from_task ? pl->this_cpu : pl->prev_cpu;

	if (pl->now < back->until && pl->burst <= back->burst && pid == back->pid &&
	    from == back->from) {
		pl->wait_ns = exit_time(from, pl->prev_cpu, pl->now);
		return true;
	}
	back->until = 0;
	fl_count_active(pl);
	if (!prev_wins(pl))
		return false;
	pl->wait_ns = pl->choice.first[true].wait;
	back->until = pl->now + FREQ_STEP_NS;
	back->burst = pl->burst + pl->burst / 8;
	back->pid = pid;
	back->from = from;
	return true;
}

/*
 * If @tctx waited for @cpu on purpose, it did so until now: for so long more than an idle CPU that
 * is as fast would have taken, if there was one.
 */
int fl_park_over(struct task_ctx *tctx __arg_nonnull, s32 cpu, u64 now)
{
	struct rent *rent = rent_of(cpu);
	u64 waited = elapsed(tctx->waiting_since, now);

	if (!tctx->park_until)
		return 0;
	tctx->park_until = 0;
	if (!tctx->park_spared || waited <= tctx->park_spared)
		return 0;
	rent->ns = finish_rent(rent->ns, elapsed(rent->at, now), rent->life) + waited -
		   tctx->park_spared;
	rent->at = now;
	return 0;
}

/*
 * The task would finish first at a CPU that is busy, or lent. True if waits have cost what an idle
 * one costs more that it can have for itself: then that is woken instead.
 */
static bool buys(struct placement *pl, const struct candidate *busy, const struct candidate *idle)
{
	struct rent *rent = rent_of(busy->cpu);
	u64 life = tunables.turbo_back_us * FL_USEC;

	/* Of the two that it costs, to be slow at first and to slow others, the greater counts. */
	if (idle->run > pl->burst + idle->others)
		life = tunables.decay_after_us * FL_USEC + finish_warm(idle->run,
								       tunables.ramp_us * FL_USEC,
								       tunables.decay_us * FL_USEC);
	if (idle->finish - busy->finish <=
	    finish_rent(rent->ns, elapsed(rent->at, pl->now), life)) {
		rent->ns = 0;
		fl_count(auto_bought);
		return true;
	}
	rent->life = life;
	pl->park_spared = finish_spared(idle, !pl->fork);
	return false;
}

/* True if of the two, one at least of which there is, the idle one is to be taken. */
static bool takes_idle(struct placement *pl)
{
	const struct auto_choice *choice = &pl->choice;
	const struct candidate *busy = &choice->first[false], *idle = &choice->first[true];

	if (busy->cpu < 0 || idle->cpu < 0)
		return busy->cpu < 0;
	if (idle->finish < busy->finish ||
	    (idle->finish == busy->finish && choice->why[true] < choice->why[false]))
		return true;
	return buys(pl, busy, idle);
}

/* The candidate that finishes first; @choice->best is -1 if there is none. */
__noinline int fl_choose(struct placement *pl __arg_nonnull)
{
	struct auto_choice *choice = &pl->choice;
	u32 why, i;

	choice->first[false].cpu = choice->first[true].cpu = -1;
	/* Few, and what is called is verified by itself. */
	for (why = 0; why < NR_AUTO; why++) {
		if (choice->cpu[why] >= 0)
			fl_consider(pl, choice->cpu[why], choice->idle[why], why);
	}
	i = in_range(takes_idle(pl), 2);
	choice->best = choice->first[i].cpu;
	choice->best_why = choice->why[i];
	choice->best_idle = choice->idle[in_range(choice->best_why, AUTO_PLACES)];
	choice->best_wait = choice->first[i].wait;
	return 0;
}
