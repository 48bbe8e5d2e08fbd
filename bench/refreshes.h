/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Frames that are to be done at fixed times, as a screen is refreshed: which of them are late, and
 * how late.
 */
#ifndef __BENCH_REFRESHES_H
#define __BENCH_REFRESHES_H

#include "common.h"
#include "histogram.h"

enum { MAX_RATE = 10000 };

static inline void sleep_until(uint64_t ns)
{
	struct timespec at = { ns / NS_PER_S, ns % NS_PER_S };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

/*
 * Draws a frame at each of @rate refreshes a second, for @seconds. One that is not done by the next
 * refresh is shown at a later one: those in between are missed. Prints the share of missed
 * refreshes, and how long after its refresh a frame was done (p50, p99).
 */
static inline void draw_frames(long seconds, long rate, void (*draw)(void))
{
	unsigned long refreshes = seconds * (unsigned long)rate, missed = 0, i;
	uint64_t period = NS_PER_S / rate, due = now_ns() + period;
	static struct histogram took;

	for (i = 0; i < refreshes; i++) {
		uint64_t late;

		sleep_until(due);
		draw();
		late = now_ns() - due;
		histogram_add(&took, late);
		missed += late / period;
		i += late / period;
		due += period * (1 + late / period);
	}
	printf("missed %.2f %% lower\n", 100.0 * missed / i);
	print_us("", "p50", percentile_ns(&took, 0.5));
	print_us("", "p99", percentile_ns(&took, 0.99));
}

#endif /* __BENCH_REFRESHES_H */
