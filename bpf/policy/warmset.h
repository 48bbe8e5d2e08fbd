/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many CPUs a load keeps warm, for mode auto.
 *
 * By the recency model (speed.h) a busy CPU gains 1/R of its range in a unit of time, and an
 * idle one loses 1/D. One that is busy for a share u of its time climbs where u/R > (1 - u)/D,
 * that is where
 *
 *	u > u* = R / (R + D)
 *
 * until it is at its top, and falls to its floor where u is less: a CPU is warm or cold, and hardly
 * ever between. A load that does W CPUs' worth of work at full speed can keep W / u* CPUs warm, and
 * no more: on more of them each is busy for less than u*, all go to the floor, the work takes
 * longer, W falls, and with it the number. So tasks that find all of W / u* CPUs busy wait for one
 * of these, as long as that is less than what a cold one costs.
 *
 * That number is a fixed point which is found from both sides. On too few CPUs these are never
 * idle, W is their number, and W / u* is more; on too many cold ones W is what is done at the
 * floor, and W / u* is less.
 *
 * A load with W < u* cannot keep even one CPU warm, and is not confined: there is nothing to gain.
 * Nor is one that deserves all CPUs. Nor any where cold CPUs are the lesser evil: a task stays at
 * two CPUs, the fewest that share a queue, for 1 / (1 - u^2) times what it does where they are
 * busy for a share u (M/M/2: Kleinrock, "Queueing Systems", volume 1, 1975, section 3.5), and at a
 * cold one for 1 / floor times that, which is less where u*^2 > 1 - floor.
 */
#ifndef __FREQLOCK_POLICY_WARMSET_H
#define __FREQLOCK_POLICY_WARMSET_H

#include "../intf.h"
#include "verifier.h"

enum {
	WARM_ONE = 1024, /* one CPU, one CPU's worth of work */
	/* A set shrinks when it is too large by so much: then it does not change to and fro. */
	WARM_SPARE = WARM_ONE / 4,
	/* Looks in the time in which speeds change. */
	WARM_LOOKS = 4,
	/* Bursts, ns, that are as long as the wake-up that goes before them. */
	WARM_SHORT_NS = 20 * 1000,
};

/* What is known of the machine, from knobs. */
struct warm_machine {
	u64 ramp_ns; /* busy time from floor to full */
	u64 cool_ns; /* idle time from full to floor, what it keeps its speed for included */
	u32 floor;   /* 0..1024 */
};

/* Longest of these times that the arithmetic distinguishes, ns. */
#define WARM_MAX_NS (1ULL << 34)

/* The time in which speeds change: what was before is forgotten in it. */
static inline u64 warm_window(const struct warm_machine *m)
{
	return greater(1, lesser(m->ramp_ns, WARM_MAX_NS) + lesser(m->cool_ns, WARM_MAX_NS));
}

/* The share of its time for which a CPU has to be busy to get warm, 0..1024. */
static inline u64 warm_least(const struct warm_machine *m)
{
	return lesser(m->ramp_ns, WARM_MAX_NS) * WARM_ONE / warm_window(m);
}

/* True if tasks that wait for CPUs which are as busy as that lose less than on cold ones. */
static inline bool warm_pays(const struct warm_machine *m)
{
	u64 least = warm_least(m);

	return least * least / WARM_ONE + lesser(m->floor, WARM_ONE) < WARM_ONE;
}

/*
 * True if a task with bursts of @burst ns is confined to the set. Where it is shorter than that, to
 * wait for a turn costs it more than a cold CPU does, and what its CPUs do between two bursts, by
 * which a set would have to be sized, is known too badly.
 */
static inline bool warm_confines(u64 burst)
{
	return burst > WARM_SHORT_NS;
}

/* CPUs' worth of work, in 1024ths: @done ns at full speed in @ns. */
static inline u64 warm_work(u64 done, u64 ns)
{
	ns = greater(1, lesser(ns, WARM_MAX_NS));
	return lesser(done, ns * FL_MAX_CPUS) * WARM_ONE / ns;
}

/* The average after @work in the last @ns, which was @old before. */
static inline u64 warm_average(u64 old, u64 work, u64 ns, u64 window)
{
	ns = lesser(ns, window);
	return (old * (window - ns) + work * ns) / window;
}

/* How many CPUs @work (as above) keeps warm, in 1024ths. */
static inline u64 warm_deserved(u64 work, const struct warm_machine *m)
{
	u64 ramp = greater(1, lesser(m->ramp_ns, WARM_MAX_NS));

	return lesser(work, (u64)FL_MAX_CPUS * WARM_ONE) * warm_window(m) / ramp;
}

/* The number of CPUs of the set, which was @size, for one that deserves so many; 0: all. */
static inline u32 warm_size(u32 size, u64 deserved, u32 nr_cpus)
{
	u64 most = (deserved + WARM_ONE - 1) / WARM_ONE;
	u64 least = (deserved + WARM_SPARE + WARM_ONE - 1) / WARM_ONE;

	if (deserved < WARM_ONE - (size ? WARM_SPARE : 0))
		return 0;
	if (size && size >= most)
		most = lesser(size, least);
	return most < nr_cpus ? most : 0;
}

/*
 * The share (0..1024) that is forgiven an idle CPU of the set of what it lacks to full speed, for a
 * load that does @work: finish_invest(). What one CPU can do is done by tasks that follow each
 * other, and has @least as without a set. What is more is done by tasks beside each other, which
 * keep another CPU warm by the part of the time in which they are: from two CPUs' worth of work on,
 * always.
 */
static inline u32 warm_invest(u64 work, u32 least)
{
	u64 beside = lesser(elapsed(WARM_ONE, work), WARM_ONE);

	least = lesser(least, FL_FULL_SPEED);
	return least + beside * (FL_FULL_SPEED - least) / WARM_ONE;
}

/*
 * For how long a task waits for one of the set at most, ns: what a cold CPU loses on its way to
 * full speed, so that waiting never costs more than twice the better choice (finish_rent()), and at
 * most a slice, for which it might have to wait anywhere.
 */
static inline u64 warm_wait(const struct warm_machine *m, u64 slice_ns)
{
	u64 lacks = FL_FULL_SPEED - lesser(m->floor, FL_FULL_SPEED);

	return lesser(lesser(m->ramp_ns, WARM_MAX_NS) * lacks / (2 * FL_FULL_SPEED), slice_ns);
}

#endif /* __FREQLOCK_POLICY_WARMSET_H */
