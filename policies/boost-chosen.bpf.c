/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lock priority boosting for chosen tasks: for a lock that a task of the name PREFIX waits for,
 * the holder is boosted as if nice -20 waited; other waiters count as nice 19. -DPREFIX='"name"'
 * chooses others.
 */
#include "freqlock_policy.bpf.h"

#ifndef PREFIX
#define PREFIX "chosen"
#endif

FREQLOCK_POLICY(waiter_level, about)
{
	static const char prefix[] = PREFIX;

	for (u32 i = 0; i < sizeof(prefix) - 1; i++) {
		if (about->task.comm[i] != prefix[i])
			return FREQLOCK_LEVEL(19);
	}
	return FREQLOCK_LEVEL(-20);
}
