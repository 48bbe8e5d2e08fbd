/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Times in buckets from which quantiles are computed: four buckets to a doubling,
 * so a bucket is at most a quarter wider than where it begins.
 */
#ifndef __FREQLOCK_POLICY_PROFILE_H
#define __FREQLOCK_POLICY_PROFILE_H

#include "../intf.h"
#include "verifier.h"

enum {
	/* Unit of the lowest buckets: 2^8 ns. Below it nothing sleeps and wakes. */
	PROFILE_UNIT_BITS = 8,
};

/* Bucket of a time in ns; the last one is open: it begins at 7 * 2^38 ns, half an hour. */
static inline u32 profile_slot(u64 ns)
{
	u64 units = ns >> PROFILE_UNIT_BITS;
	u32 octave;

	if (units < 4)
		return units;
	octave = highest_bit(units) - 1; /* 1 for 4..7 */
	return lesser(octave * 4 + ((units >> (octave - 1)) & 3), FL_PROFILE_SLOTS - 1);
}

#endif /* __FREQLOCK_POLICY_PROFILE_H */
