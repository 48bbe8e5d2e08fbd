/* SPDX-License-Identifier: GPL-2.0-only */
/* Operations: a task needs a CPU. */
#ifndef __FREQLOCK_WAKE_BPF_H
#define __FREQLOCK_WAKE_BPF_H

#include "freqlock.bpf.h"

s32 freqlock_select_cpu(unsigned long long *ctx);
void freqlock_enqueue(unsigned long long *ctx);

#endif /* __FREQLOCK_WAKE_BPF_H */
