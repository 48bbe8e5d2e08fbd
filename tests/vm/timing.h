/* SPDX-License-Identifier: GPL-2.0-only */
/* Numbers and times for the programs that put loads on a scheduler. */
#ifndef FREQLOCK_TEST_TIMING_H
#define FREQLOCK_TEST_TIMING_H

#include <stdint.h>
#include <time.h>
#include "params.h"

static inline long number(const char *name, long preset)
{
	const char *text = param(name, NULL);

	return text ? strtol(text, NULL, 0) : preset;
}

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		die("clock_gettime: %s", strerror(errno));
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Use the CPU for this long, by the task's own clock. */
static inline void burn_us(long us)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + us * 1000ull;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static inline void sleep_us(long us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&ts, NULL);
}

#endif /* FREQLOCK_TEST_TIMING_H */
