/* SPDX-License-Identifier: GPL-2.0-only */
/* As if it were compiled with another header. */
#include "freqlock_policy.bpf.h"
#undef FREQLOCK_POLICY_ABI
#define FREQLOCK_POLICY_ABI 999

FREQLOCK_POLICY(place, about)
{
	return about->prev_cpu;
}
