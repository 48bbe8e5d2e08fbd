/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Of the candidates for a task, that where it finishes first; and what a wait for a busy CPU has
 * cost when it is over, by which the next is judged.
 */
#ifndef __FREQLOCK_CHOOSE_BPF_H
#define __FREQLOCK_CHOOSE_BPF_H

#include "freqlock.bpf.h"
#include "decision.bpf.h"

/*
 * What waits for busy CPUs have cost while others were idle, of the CPUs under one last-level
 * cache: one more that wakes up relieves them all. Two CPUs may write at once, and one wait is not
 * counted.
 */
struct rent {
	u64 ns;   /* as of ... */
	u64 at;   /* ... then, and it counts ... */
	u64 life; /* ... for so long: finish_rent() */
} __attribute__((aligned(64)));

int fl_count_active(struct placement *pl __arg_nonnull);
int fl_prev_is_best(u32 pid, struct placement *pl __arg_nonnull);
int fl_choose(struct placement *pl __arg_nonnull);
int fl_park_over(struct task_ctx *tctx __arg_nonnull, s32 cpu, u64 now);

#endif /* __FREQLOCK_CHOOSE_BPF_H */
