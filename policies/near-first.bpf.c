/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Locks are shuffled by NUMA node, or with -D NEAR=llc by last-level cache: a waiter that is near
 * the one that wakes it goes first, another one after whatever its CPU has to do, so that a lock
 * and what it guards stay near for a while. As the kernel's shuffling locks do it (Kashyap et al.,
 * "Scalable and Practical Locking with Shuffling", SOSP 2019, section 4), but in the order of the
 * CPUs' queues: a waiter on an idle CPU runs at once, wherever it is. While a far one waits for
 * its CPU the lock is free for whoever is near, or for nobody: it pays where moving data costs
 * more than that.
 */
#include "freqlock_policy.bpf.h"

#ifndef NEAR
#define NEAR node
#endif

#define __PLACE(cpu, what) cpu##_##what
#define PLACE(cpu, what)   __PLACE(cpu, what)

FREQLOCK_POLICY(order_handoff, about)
{
	return about->PLACE(prev, NEAR) == about->PLACE(waker, NEAR) ? FREQLOCK_LEVEL(-20) :
								       FREQLOCK_LEVEL_MIN;
}
