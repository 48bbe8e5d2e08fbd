/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What sched_setattr() takes, as in linux/sched.h and linux/sched/types.h, which glibc's headers
 * do not go along with.
 */
#ifndef FREQLOCK_TEST_ATTRIBUTES_H
#define FREQLOCK_TEST_ATTRIBUTES_H

#include <sched.h>
#include <stdint.h>

#define FLAG_RESET_ON_FORK 1
#undef SCHED_EXT
#define SCHED_EXT 7

struct attributes {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime;
	uint64_t deadline;
	uint64_t period;
};

#endif /* FREQLOCK_TEST_ATTRIBUTES_H */
