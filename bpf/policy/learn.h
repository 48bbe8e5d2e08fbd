/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is learned from the past, in a few words a task: how long its bursts are
 * and how soon it leaves its CPU after it forked or woke another task.
 */
#ifndef __FREQLOCK_POLICY_LEARN_H
#define __FREQLOCK_POLICY_LEARN_H

#include "../intf.h"
#include "verifier.h"

enum {
	/* Longer times are alike: to a placement, a second is forever. */
	LEARN_MAX_NS = 1000 * 1000 * 1000,
	/* Taken for a task of which nothing is known. */
	LEARN_UNKNOWN_BURST_NS = 1000 * 1000,
	/* Idle CPUs that take longer than this did not take it to wake up. */
	LEARN_IDLE_EXIT_MAX_NS = 1000 * 1000,
	/* In 2 to this ns, 67 ms, what was seen of it is forgotten if nothing is seen anew. */
	LEARN_EXIT_SHIFT = 26,
};

/*
 * Moving average with a quarter of weight on the new sample; the first sample
 * is taken whole (0 means none yet, so a sample counts for at least 1 ns).
 */
static inline u64 learn_average(u64 old, u64 sample)
{
	u64 avg;

	if (sample > LEARN_MAX_NS)
		sample = LEARN_MAX_NS;
	if (!sample)
		sample = 1;
	if (!old)
		return sample;
	avg = old - old / 4 + sample / 4;
	return avg ? avg : 1;
}

/* A time that is seen again and again, in ns; all 0 before the first. */
struct learned {
	u32 avg;
	u32 dev; /* how far from the average samples are, on average */
};

/*
 * Average and deviation together, as TCP learns round trips (RFC 6298, section
 * 2; there with an eighth of weight for the average). The first sample's
 * deviation is taken to be half of it.
 */
static inline void learn_time(struct learned *l, u64 sample)
{
	u64 off;

	if (sample > LEARN_MAX_NS)
		sample = LEARN_MAX_NS;
	off = sample > l->avg ? sample - l->avg : l->avg - sample;
	l->dev = l->avg ? l->dev - l->dev / 4 + off / 4 : sample / 2;
	l->avg = learn_average(l->avg, sample);
}

/*
 * The time that most samples stay below: the average where they are all alike,
 * more where they are not. 0 before the first.
 */
static inline u64 learn_most(const struct learned *l)
{
	return l->avg ? (u64)l->avg + l->dev : 0;
}

/*
 * Expected rest of a burst of which @ran ns are over, when bursts take @burst
 * on average. A burst that outlived its average is of another kind than the
 * past: expect as much again as it has run.
 */
static inline u64 learn_rest(u64 burst, u64 ran)
{
	return ran < burst ? burst - ran : ran;
}

/* Work done, in ns at full speed, by @ran ns at @speed (0..1024). */
static inline u64 work_of(u64 ran, u32 speed)
{
	if (ran > (1ULL << 50))
		ran = 1ULL << 50;
	return ran * speed / FL_FULL_SPEED;
}

/* Histogram slot of a time: log2 of microseconds, the last one is open. */
static inline u32 hist_slot(u64 ns)
{
	u64 us = ns / 1000;
	u32 slot = us ? highest_bit(us) + 1 : 0;

	return slot < FL_HIST_SLOTS ? slot : FL_HIST_SLOTS - 1;
}

/*
 * What an idle CPU is expected to take to run a task sent to it, or a busy one beyond what was
 * predicted of it: @seen on average as of @past ns ago, 0 not yet; @usual where nothing is known.
 * Where that was too long, nobody is sent there any more, so that it would never be seen to be
 * wrong. So it fades to what is usual. To try again
 * costs what that is wrong by, 1 ms at most, once in this time: where waking up really takes 100
 * us, less than a part in 600.
 */
static inline u64 learn_exit(u64 seen, u64 past, u64 usual)
{
	u64 more = elapsed(usual, seen);

	if (!seen)
		return usual;
	past = shorter(past, 1ULL << LEARN_EXIT_SHIFT);
	return seen - (shorter(more, LEARN_IDLE_EXIT_MAX_NS) * past >> LEARN_EXIT_SHIFT);
}

#endif /* __FREQLOCK_POLICY_LEARN_H */
