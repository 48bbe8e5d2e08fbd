/* SPDX-License-Identifier: GPL-2.0-only */
/* Which CPUs a program may use. */
#ifndef __BENCH_CPUS_H
#define __BENCH_CPUS_H

#include <sched.h>

#include "common.h"

/* The first @nr of the CPUs that this program may use go into @cpus. */
static inline void first_cpus(int *cpus, long nr)
{
	cpu_set_t set;
	long found = 0;
	int i;

	if (sched_getaffinity(0, sizeof(set), &set))
		fail("sched_getaffinity");
	for (i = 0; i < CPU_SETSIZE && found < nr; i++)
		if (CPU_ISSET(i, &set))
			cpus[found++] = i;
	if (found < nr)
		wrong("there are not so many CPUs");
}

/* The calling thread runs on @cpu alone from now on. */
static inline void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("sched_setaffinity");
}

#endif /* __BENCH_CPUS_H */
