/* SPDX-License-Identifier: GPL-2.0-only */
/* What the workloads' programs share: the clock, and work of a known amount. */
#ifndef __BENCH_COMMON_H
#define __BENCH_COMMON_H

#include <stdint.h>
#include <time.h>

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/*
 * Work is a number of steps, not a time: on a slow CPU it takes longer. Every
 * step needs the one before, so no CPU can do two of them at once, and the
 * empty asm keeps the compiler from leaving out what nobody looks at.
 */
static inline void work(uint64_t steps)
{
	uint64_t x = steps;

	while (steps--) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		__asm__ volatile("" : "+r"(x));
	}
}

#endif /* __BENCH_COMMON_H */
