/* SPDX-License-Identifier: GPL-2.0-only */
/* A policy that has an end, but takes its time. */
#include "freqlock_policy.bpf.h"

volatile u64 sum;

FREQLOCK_POLICY(place, about)
{
	for (u32 i = 0; i < 20000; i++)
		sum += about->prev_cpu;
	return FREQLOCK_DEFAULT;
}
