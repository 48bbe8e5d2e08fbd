/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Placement by predicted finish, the heart of mode auto:
 *
 *	finish = wait + run + move + displaced
 *
 * wait: until the CPU is free for the task; run: the task's burst at the speed
 * the CPU has now, with the ramp that the burst itself brings; move: what
 * leaving its cache costs; displaced: how long the CPU's present task, once it is
 * back from its sleep, finds its CPU taken. The candidate with the smallest finish wins; of
 * equals the first, so callers put the nearer one first.
 */
#ifndef __FREQLOCK_POLICY_FINISH_H
#define __FREQLOCK_POLICY_FINISH_H

#include "../intf.h"
#include "learn.h"

/* Longest time that the arithmetic tells apart, ns; above 2^31 squares would wrap. */
#define FINISH_MAX_NS (1ULL << 31)

static inline u64 finish_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

/* t^2 * 512 / ramp without overflow; t <= 2^31. */
static inline u64 half_square(u64 t, u64 ramp)
{
	return t < (1ULL << 27) ? t * t * 512 / ramp : t * t / ramp * 512;
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

	burst = finish_min(burst, LEARN_MAX_NS);
	if (!speed)
		speed = 1;
	if (speed > FL_FULL_SPEED)
		speed = FL_FULL_SPEED;
	if (top > FL_FULL_SPEED)
		top = FL_FULL_SPEED;
	if (speed >= top || !ramp)
		return finish_min(burst * FL_FULL_SPEED / (speed > top ? speed : top),
				  FINISH_MAX_NS);

	ramp = finish_min(ramp, FINISH_MAX_NS);
	t_top = (u64)(top - speed) * ramp / FL_FULL_SPEED;
	work_top = (u64)(speed + top) * t_top / (2 * FL_FULL_SPEED);
	if (burst >= work_top)
		return finish_min(t_top + (burst - work_top) * FL_FULL_SPEED / top, FINISH_MAX_NS);

	goal = burst * FL_FULL_SPEED;
	t = finish_min(goal / speed, t_top);
	for (i = 0; i < 5; i++) {
		u64 done = speed * t + half_square(t, ramp);
		u64 slope = speed + t * FL_FULL_SPEED / ramp;

		if (done <= goal)
			break;
		t -= (done - goal) / slope;
	}
	return t;
}

/*
 * What a burst of @run ns costs a task that is away from its CPU for @away ns
 * (0: not known, or for ever) and then wants it back. A parent that waits for
 * its child, or a writer for its reader, loses nothing; one that others wake
 * meanwhile does.
 */
static inline u64 finish_displaced(u64 run, u64 away)
{
	return away && run > away ? run - away : 0;
}

/*
 * What it costs the @active cores when one more wakes up for @run ns, and their
 * speed falls from @now to @then (0..1024) for that long: with as many cores they
 * win it back along a line in @back ns.
 */
static inline u64 finish_others(u64 run, u32 active, u32 now, u32 then, u64 back)
{
	u64 lost = finish_min(run, FINISH_MAX_NS) + finish_min(back, FINISH_MAX_NS) / 2;

	if (!active || then >= now)
		return 0;
	return finish_min(lost * (now - then) / now * active, FINISH_MAX_NS);
}

/* One CPU that the task could go to. */
struct candidate {
	s32 cpu;       /* -1: no such candidate */
	u64 wait;      /* ns until it is free */
	u64 run;       /* ns for the burst there */
	u64 move;      /* ns that moving costs */
	u64 displaced; /* ns that it would cost the task which runs there now */
	u64 others;    /* ns that it would cost the tasks on other CPUs */
};

static inline u64 candidate_finish(const struct candidate *c)
{
	return finish_min(c->wait, FINISH_MAX_NS) + finish_min(c->run, FINISH_MAX_NS) +
	       finish_min(c->move, FINISH_MAX_NS) + finish_min(c->displaced, FINISH_MAX_NS) +
	       finish_min(c->others, FINISH_MAX_NS);
}

/* True if @c should be taken rather than @best, which stands before it. */
static inline bool candidate_better(const struct candidate *c, const struct candidate *best)
{
	if (c->cpu < 0)
		return false;
	return best->cpu < 0 || candidate_finish(c) < candidate_finish(best);
}

/*
 * Until a CPU is free: the rest of the running task's burst, cut where it is
 * about to leave by itself (@leave ns; ~0 where that is not known) or by its
 * slice, and then the work queued there at the CPU's speed. Times in ns.
 */
static inline u64 finish_wait(u64 rest, u64 leave, u64 slice, u64 queued_work, u32 speed)
{
	u64 wait = finish_min(finish_min(finish_min(rest, leave), slice), FINISH_MAX_NS);

	if (!speed)
		speed = 1;
	return finish_min(wait + finish_min(queued_work, FINISH_MAX_NS) * FL_FULL_SPEED / speed,
			  FINISH_MAX_NS);
}

#endif /* __FREQLOCK_POLICY_FINISH_H */
