/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Holder-preemption avoidance for one program: while others wait for a lock that a thread of
 * PROGRAM holds, it keeps its CPU; holders of other programs have no protection at all.
 * Load it with -D 'PROGRAM="name"'; a name has 15 characters at most.
 */
#include "freqlock_policy.bpf.h"

#ifndef PROGRAM
#define PROGRAM "locks"
#endif

static bool is_program(const char *comm)
{
	static const char name[16] = PROGRAM;

	for (int i = 0; i < 15; i++) {
		if (comm[i] != name[i])
			return false;
		if (!name[i])
			break;
	}
	return true;
}

FREQLOCK_POLICY(may_preempt_holder, about)
{
	return is_program(about->task.comm) ? FREQLOCK_NO : FREQLOCK_YES;
}
