/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Locks go to big cores first: a waiter that was on one goes first, another one after whatever its
 * CPU has to do. The order of Liu et al., "Asymmetry-aware Scalable Locking", PPoPP 2022, section
 * 3, without their bound, and where CPUs have other work: on an idle little core a waiter runs at
 * once. It pays where a critical section takes a little core so much longer that the lock may
 * rather be free meanwhile.
 */
#include "freqlock_policy.bpf.h"

/* Of 1024. */
#ifndef BIG
#define BIG 1024
#endif

FREQLOCK_POLICY(order_handoff, about)
{
	return about->prev_capacity >= BIG ? FREQLOCK_LEVEL(-20) : FREQLOCK_LEVEL_MIN;
}
