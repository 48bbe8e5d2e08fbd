/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Placement by predicted finish, the heart of mode auto:
 *
 *	finish = wait + run + migration + displaced + others
 *
 * wait: until the CPU is free for the task; run: the task's burst at the speed
 * the CPU has now, with the ramp that the burst itself brings; migration: what leaving
 * its cache costs; displaced: how long the CPU's present task, once it is back from its
 * sleep, finds its CPU taken; others: what the active cores lose when one more wakes
 * up. The candidate with the smallest finish wins; of equals the first, so callers put
 * the nearer one first. What an idle CPU costs at first is made up over many bursts:
 * finish_rent().
 */
#ifndef __FREQLOCK_POLICY_FINISH_H
#define __FREQLOCK_POLICY_FINISH_H

#include "../intf.h"
#include "learn.h"

/* Longest time that the arithmetic distinguishes, ns; above 2^31 squares would wrap. */
#define FINISH_MAX_NS (1ULL << 31)

/* @speed as something to divide by: 1..1024. */
static inline u32 finish_speed(u32 speed)
{
	return longer(1, shorter(speed, FL_FULL_SPEED));
}

/*
 * Time in ns to do @burst ns (at full speed) of work on a CPU that is at @speed
 * now, ends at @top (both 0..1024), and would take @ramp ns from 0 to 1024.
 *
 * While the speed rises by 1024/ramp per ns, the work after t is
 * speed * t + 512 * t^2 / ramp (in 1024ths of ns); after it reached @top, the
 * rest goes at @top. The root is found by Newton's method from above, where the
 * parabola is convex and the method falls monotonically; five steps leave less
 * than a part in a thousand from a sixteenth of full speed on, which the
 * property tests hold it to.
 */
static inline u64 finish_run(u64 burst, u32 speed, u32 top, u64 ramp)
{
	u64 t, t_top, work_top, goal;
	int i;

	burst = shorter(burst, LEARN_MAX_NS);
	speed = finish_speed(speed);
	top = shorter(top, FL_FULL_SPEED);
	if (speed >= top || !ramp)
		return shorter(burst * FL_FULL_SPEED / longer(speed, top), FINISH_MAX_NS);

	ramp = shorter(ramp, FINISH_MAX_NS);
	t_top = (u64)(top - speed) * ramp / FL_FULL_SPEED;
	work_top = (u64)(speed + top) * t_top / (2 * FL_FULL_SPEED);
	if (burst >= work_top)
		return shorter(t_top + (burst - work_top) * FL_FULL_SPEED / top, FINISH_MAX_NS);

	goal = burst * FL_FULL_SPEED;
	t = shorter(goal / speed, t_top);
	/* Done before the speed rises by a thousandth of what it is, as most bursts are. */
	if (t << 20 <= ramp * speed)
		return t;
	for (i = 0; i < 5; i++) {
		/* How far up the ramp, in 2^32; t <= ramp, so no product wraps. */
		u64 share = (t << 32) / ramp;
		u64 done = speed * t + (t * share >> 23);
		u64 slope = speed + (share >> 22);

		/* Past the root by rounding at most: then it stays. */
		t -= (longer(done, goal) - goal) / slope;
	}
	return t;
}

/*
 * What cold caches cost a burst of @run ns where they cost a long one @cold: they
 * fill as they are used, and make it take twice its time at most.
 */
static inline u64 finish_cold(u64 cold, u64 run)
{
	return shorter(cold, run);
}

/*
 * What a burst of @run ns costs a task that is away from its CPU for @away ns
 * (0: not known, or forever) and then wants it back. A parent that waits for
 * its child, or a writer for its reader, loses nothing; one that others wake
 * meanwhile does.
 */
static inline u64 finish_displaced(u64 run, u64 away)
{
	return away && run > away ? run - away : 0;
}

/*
 * In how many ns a task is back that left its CPU @gap ns ago, and sleeps for @away ns where it
 * made another one runnable before; ~0: not known, or never.
 */
static inline u64 finish_back(u64 away, u64 gap)
{
	return away ? learn_rest(away, gap) : ~0ULL;
}

/*
 * What it costs the last task of an idle CPU, which is back in @back ns, if another one has that
 * CPU for @run ns from now on: it waits, or it goes to another for @elsewhere ns.
 */
static inline u64 finish_lent(u64 run, u64 back, u64 elsewhere)
{
	return run > back ? shorter(run - back, elsewhere) : 0;
}

/*
 * What it costs the @active cores when one more wakes up for @run ns, and their
 * speed falls from @now to @then (0..1024) for that long: with as many cores they
 * win it back along a line in @back ns. Of a core that went idle @gap ns ago they
 * have won back only as much by now, and so lose no more: the triangle of the whole
 * way back, less the one that was still to come.
 */
static inline u64 finish_others(u64 run, u32 active, u32 now, u32 then, u64 back, u64 gap)
{
	u64 lost = shorter(run, FINISH_MAX_NS);

	if (!active || then >= now)
		return 0;
	back = shorter(back, FINISH_MAX_NS);
	if (gap < back)
		lost += gap - gap * gap / (2 * back);
	else
		lost += back / 2;
	return shorter(lost * (now - then) / now * active, FINISH_MAX_NS);
}

/*
 * The speed 0..1024 as which the warmest idle CPU counts that is at @speed and ends at
 * @top: @share (0..1024) of what it lacks is forgiven, since the burst warms it for those
 * that come. Without that, a load for two CPUs may stay on one, which is always faster than
 * the other: the other never gets to be fast.
 */
static inline u32 finish_invest(u32 speed, u32 top, u64 share)
{
	return speed < top ? speed + (top - speed) * shorter(share, FL_FULL_SPEED) / FL_FULL_SPEED :
			     speed;
}

/*
 * For how long a CPU is the warmer, ns, for a burst that took @run ns, where it warms up
 * in @ramp ns and cools down in @decay.
 */
static inline u64 finish_warm(u64 run, u64 ramp, u64 decay)
{
	decay = shorter(decay, FINISH_MAX_NS);
	return run < ramp ? run * decay / ramp : decay;
}

/*
 * To wait for a busy CPU or to wake an idle one is to rent or to buy: each wait is lost;
 * to wake a CPU that is cold, or that slows others, costs once, and no more while it
 * stays in use. What is to come is not known, only what was: one buys when the waits
 * have cost as much. That never costs more than twice what the best choice would have
 * cost in hindsight (Karlin, Manasse, Rudolph and Sleator, "Competitive snoopy caching",
 * Algorithmica 3, 1988, section 2).
 *
 * @rent: what waits at a CPU have cost, ns, as of @past ns ago; returns what counts of it
 * now. What is bought lasts for @life ns after its last use, and so waits that are further
 * apart have nothing to do with each other.
 */
static inline u64 finish_rent(u64 rent, u64 past, u64 life)
{
	rent = shorter(rent, FINISH_MAX_NS);
	life = shorter(life, FINISH_MAX_NS);
	return past < life ? rent - rent * past / life : 0;
}

/* One CPU that the task could go to. */
struct candidate {
	s32 cpu;       /* -1: no such candidate */
	u64 wait;      /* ns until it is free */
	u64 run;       /* ns for the burst there */
	u64 migration; /* ns that the migration costs */
	u64 displaced; /* ns that it would cost the task which runs there now */
	u64 others;    /* ns that it would cost the tasks on other CPUs */
	u64 finish;    /* out: candidate_finish() */
};

static inline u64 candidate_finish(const struct candidate *c)
{
	return shorter(c->wait, FINISH_MAX_NS) + shorter(c->run, FINISH_MAX_NS) +
	       shorter(c->migration, FINISH_MAX_NS) + shorter(c->displaced, FINISH_MAX_NS) +
	       shorter(c->others, FINISH_MAX_NS);
}

/*
 * The least at which a candidate finishes that is free in @wait ns and costs @migration to go
 * to: there the burst takes its time at full speed, and nobody loses anything. One that finishes
 * before that need not be compared with it.
 */
static inline u64 finish_least(u64 burst, u64 wait, u64 migration)
{
	return shorter(wait, FINISH_MAX_NS) + shorter(burst, LEARN_MAX_NS) +
	       shorter(migration, FINISH_MAX_NS);
}

/*
 * What each wait for a busy CPU saves, of all that @idle costs. A woken task that migrates
 * @stays: that costs it once, and the next time the CPU it is on by then is its own. A forked task
 * is new each time.
 */
static inline u64 finish_spared(const struct candidate *idle, bool stays)
{
	return idle->wait + (stays ? 0 : idle->migration);
}

/* True if @c should be taken rather than @best, which stands before it; both with their finish. */
static inline bool candidate_better(const struct candidate *c, const struct candidate *best)
{
	if (c->cpu < 0)
		return false;
	return best->cpu < 0 || c->finish < best->finish;
}

/*
 * Until a CPU is free: the rest of the running task's burst, cut where it is
 * about to leave by itself (@leave ns; ~0 where that is not known) or by its
 * slice, and then the work queued there at the CPU's speed. Times in ns.
 */
static inline u64 finish_wait(u64 rest, u64 leave, u64 slice, u64 queued_work, u32 speed)
{
	u64 wait = shorter(shorter(shorter(rest, leave), slice), FINISH_MAX_NS);

	return shorter(wait + shorter(queued_work, FINISH_MAX_NS) * FL_FULL_SPEED /
				       finish_speed(speed),
		       FINISH_MAX_NS);
}

#endif /* __FREQLOCK_POLICY_FINISH_H */
