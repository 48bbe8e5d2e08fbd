/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a task wakes or forks goes to that task's CPU, be others idle or not: for a chain
 * of tasks that hand work on to each other, with --context NAME.
 */
#include "freqlock_policy.bpf.h"

FREQLOCK_POLICY(place, about)
{
	return about->waker ? (int)about->this_cpu : FREQLOCK_DEFAULT;
}
