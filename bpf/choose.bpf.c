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
	return fork ? least : greater(least, finish_cold(cold, run));
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
 * there earlier. While some CPU is idle, a busy one must be expected to be free soon.
 */
__noinline int fl_consider(struct placement *pl __arg_nonnull, s32 cpu, bool idle, u32 why)
{
	struct auto_choice *choice = &pl->choice;
	struct cpu_ctx *cctx = fl_cpu(cpu);
	u32 speed = fl_speed(cpu, pl->now), top = fl_topo(cpu)->capacity, from = speed;
	u64 ramp = 0, since = cctx->running_since, leave = FL_NONE, ran, rest = 0;
	u32 span = FL_FULL_SPEED - tunables.speed_floor, i = in_range(idle, 2);
	struct candidate c = { .cpu = cpu };

	if ((!idle || why == AUTO_HOME) && fl_is_taken(cpu))
		return 0;
	/* ramp_us is from the floor to full; here it is from 0 to 1024. */
	if (!source_has(freq_source, GIVEN) && tunables.speed_floor < FL_FULL_SPEED && top)
		ramp = tunables.ramp_us * FL_USEC * FL_FULL_SPEED / span * FL_FULL_SPEED / top;
	if (ramp && why == AUTO_WARM)
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
	u64 near = lesser(smt_present ? tunables.migrate_smt_ns : FL_NONE, tunables.migrate_llc_ns);

	return lesser(near, lesser(tunables.migrate_node_ns, tunables.migrate_far_ns));
}

/*
 * True if a woken task finishes first on @pl->prev_cpu, should that be idle, whatever the others
 * are: most wake-ups are of this kind, and to look at the others takes longer than all else.
 */
__noinline int fl_prev_wins(struct placement *pl __arg_nonnull)
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
 * If @tctx waited for @cpu on purpose, it did so until now: for so long more than an idle CPU that
 * is as fast would have taken, if there was one. Two CPUs may do so at once, and one wait is not
 * counted.
 */
int fl_park_over(struct task_ctx *tctx __arg_nonnull, s32 cpu, u64 now)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	u64 waited = elapsed(tctx->waiting_since, now);

	if (!tctx->park_until)
		return 0;
	tctx->park_until = 0;
	if (!tctx->park_spared || waited <= tctx->park_spared)
		return 0;
	cctx->rent = finish_rent(cctx->rent, elapsed(cctx->rent_at, now), cctx->rent_life) +
		     waited - tctx->park_spared;
	cctx->rent_at = now;
	return 0;
}

/*
 * The task would finish first at a busy CPU. True if waits there have cost what the idle CPU
 * costs more: then that is woken instead.
 */
static bool buys(struct placement *pl, const struct candidate *busy, const struct candidate *idle)
{
	struct cpu_ctx *cctx = fl_cpu(busy->cpu);
	u64 life = tunables.turbo_back_us * FL_USEC;
	u64 rent;

	/* Of the two that it costs, to be slow at first and to slow others, the greater counts. */
	if (idle->run > pl->burst + idle->others)
		life = tunables.decay_after_us * FL_USEC + finish_warm(idle->run,
								       tunables.ramp_us * FL_USEC,
								       tunables.decay_us * FL_USEC);
	rent = finish_rent(cctx->rent, elapsed(cctx->rent_at, pl->now), life);
	if (idle->finish - busy->finish <= rent) {
		cctx->rent = 0;
		fl_count(auto_bought);
		return true;
	}
	cctx->rent_life = life;
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
	choice->best_idle = takes_idle(pl);
	i = in_range(choice->best_idle, 2);
	choice->best = choice->first[i].cpu;
	choice->best_why = choice->why[i];
	choice->best_wait = choice->first[i].wait;
	return 0;
}
