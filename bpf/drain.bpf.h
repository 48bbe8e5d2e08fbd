/* SPDX-License-Identifier: GPL-2.0-only */
/* What others do for a CPU that goes: they drain its queues. */
#ifndef __FREQLOCK_DRAIN_BPF_H
#define __FREQLOCK_DRAIN_BPF_H

#include "freqlock.bpf.h"

int fl_drain(s32 cpu);

#endif /* __FREQLOCK_DRAIN_BPF_H */
