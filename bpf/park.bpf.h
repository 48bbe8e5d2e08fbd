/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The timer of each CPU's parked tasks, which also looks after what a CPU that goes, or that a
 * real-time task has, cannot run.
 */
#ifndef __FREQLOCK_PARK_BPF_H
#define __FREQLOCK_PARK_BPF_H

#include "freqlock.bpf.h"

int fl_park_arm(s32 cpu, u64 now, u64 delay_ns);
int fl_park_init(u32 cpu);

/* How often that timer looks after what waits at a CPU that a real-time task has. */
#define FL_TAKEN_LOOK_NS (1000 * FL_USEC)

#endif /* __FREQLOCK_PARK_BPF_H */
