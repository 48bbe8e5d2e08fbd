/* SPDX-License-Identifier: GPL-2.0-only */
/* A policy without an end. */
#include "freqlock_policy.bpf.h"

FREQLOCK_POLICY(place, about)
{
	volatile u32 cpu = about->prev_cpu;

	while (cpu != about->nr_cpus)
		cpu ^= 1;
	return cpu;
}
