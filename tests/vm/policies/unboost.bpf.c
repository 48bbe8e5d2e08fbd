/* SPDX-License-Identifier: GPL-2.0-only */
/* Holders inherit nothing. */
#include "freqlock_policy.bpf.h"

FREQLOCK_POLICY(boost_holder, about)
{
	return FREQLOCK_NO;
}
