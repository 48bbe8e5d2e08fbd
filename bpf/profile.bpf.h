/* SPDX-License-Identifier: GPL-2.0-only */
/* What is counted of each lock: its waits, its holds, and holders that lost their CPU. */
#ifndef __FREQLOCK_PROFILE_BPF_H
#define __FREQLOCK_PROFILE_BPF_H

#include "freqlock.bpf.h"

int fl_profile_begin(u64 hash, u32 kind, u64 addr);
int fl_profile_hint(u64 hash, u64 addr);
int fl_profile_wait(u64 hash, u64 ns);
int fl_profile_hold(u64 hash, s32 cpu, u64 ns);
int fl_profile_preempted(u64 hash);

#endif /* __FREQLOCK_PROFILE_BPF_H */
