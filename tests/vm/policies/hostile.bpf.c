/* SPDX-License-Identifier: GPL-2.0-only */
/* Wrong CPUs, and the highest weight for whoever holds or waits. */
#include "freqlock_policy.bpf.h"

volatile u32 turn;

FREQLOCK_POLICY(place, about)
{
	/* Some are no CPU, some not the task's. */
	turn++;
	return (s32)(turn * 2654435761u) >> (turn & 31);
}

FREQLOCK_POLICY(waiter_level, about)
{
	return turn++ & 1 ? FREQLOCK_LEVEL_MAX : FREQLOCK_LEVEL_MAX + 1;
}

FREQLOCK_POLICY(boost_holder, about)
{
	return turn++ & 1 ? FREQLOCK_LEVEL_MAX : -2;
}

FREQLOCK_POLICY(may_preempt_holder, about)
{
	return turn++ & 7 ? FREQLOCK_NO : 2;
}
