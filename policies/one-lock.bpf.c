/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A profile of one lock: `scx_freqlock locks` has the waits for the lock at ADDR (-D ADDR=0x...),
 * or for all locks of the kind KIND (-D KIND=FREQLOCK_MUTEX), and nothing else. With
 * --context NAME, of its tasks; what others wait for is in the profile as before.
 */
#include "freqlock_policy.bpf.h"

#ifndef KIND
#define KIND FREQLOCK_FUTEX
#endif

FREQLOCK_POLICY(profile_filter, about)
{
#ifdef ADDR
	return about->addr == ADDR ? FREQLOCK_YES : FREQLOCK_NO;
#else
	return about->kind == KIND ? FREQLOCK_YES : FREQLOCK_NO;
#endif
}
