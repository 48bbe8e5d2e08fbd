/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For a program whose loops look like spinning and are not, a poll-mode driver for example:
 * its threads never give way, with --context NAME.
 */
#include "freqlock_policy.bpf.h"

FREQLOCK_POLICY(is_spinner, about)
{
	return FREQLOCK_NO;
}
