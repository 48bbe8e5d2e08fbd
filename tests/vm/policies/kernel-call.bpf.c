/* SPDX-License-Identifier: GPL-2.0-only */
/* A policy that would end the scheduler. */
#include "freqlock_policy.bpf.h"

extern u32 scx_bpf_nr_cpu_ids(void) __attribute__((section(".ksyms")));

FREQLOCK_POLICY(place, about)
{
	return scx_bpf_nr_cpu_ids() - 1;
}
