/* SPDX-License-Identifier: GPL-2.0-only */
/* Operations: a task needs a CPU; and when a task that waits preempts the running one. */
#ifndef __FREQLOCK_WAKE_BPF_H
#define __FREQLOCK_WAKE_BPF_H

#include "freqlock.bpf.h"

s32 freqlock_select_cpu(unsigned long long *ctx);
void freqlock_enqueue(unsigned long long *ctx);
u64 fl_preempts_in(s32 cpu, u64 deadline, u64 weight, bool urgent, u64 now);

#endif /* __FREQLOCK_WAKE_BPF_H */
