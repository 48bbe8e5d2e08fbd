/* SPDX-License-Identifier: GPL-2.0-only */
/* Operations: how a task comes to be ours and how it leaves. */
#ifndef __FREQLOCK_LIFE_BPF_H
#define __FREQLOCK_LIFE_BPF_H

#include "freqlock.bpf.h"

void freqlock_set_weight(unsigned long long *ctx);
s32 freqlock_init_task(unsigned long long *ctx);
void freqlock_enable(unsigned long long *ctx);
void freqlock_disable(unsigned long long *ctx);
void freqlock_exit_task(unsigned long long *ctx);

#endif /* __FREQLOCK_LIFE_BPF_H */
