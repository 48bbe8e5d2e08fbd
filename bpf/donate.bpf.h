/* SPDX-License-Identifier: GPL-2.0-only */
/* What the holder of a lock inherits from its waiters, and which CPU runs it. */
#ifndef __FREQLOCK_DONATE_BPF_H
#define __FREQLOCK_DONATE_BPF_H

#include "freqlock.bpf.h"

u32 fl_hold(struct task_ctx *tctx __arg_nonnull, u64 self, u64 now);
u64 fl_hold_deadline(struct task_ctx *tctx __arg_nonnull, u64 self, s32 cpu, u64 now);
u64 fl_hold_running(struct task_ctx *tctx __arg_nonnull, u64 self, s32 cpu, u64 now);
bool fl_hold_spares(s32 cpu, u64 weight, u64 now);
u64 fl_hold_keep(struct task_ctx *tctx __arg_nonnull, u64 self, s32 cpu, u64 now);
int fl_hold_charge(struct task_ctx *tctx __arg_nonnull, u64 self, u64 now);
int fl_hold_stops(struct task_ctx *tctx __arg_nonnull, u64 self, u64 now, bool runnable);
bool fl_hold_wants_big(struct task_ctx *tctx __arg_nonnull, u64 self, u64 now);
bool fl_run_holder(s32 cpu, u64 now);
int fl_hold_call(u32 edge, s32 cpu, u64 now);

/*
 * Locks that a task holds and others wait for. Without --locks that is a constant to the verifier,
 * and what would follow from it is not loaded.
 */
static __always_inline u64 fl_holds(const struct task_ctx *tctx)
{
	return sees_locks ? tctx->holds : 0;
}

/* True if @cpu is to run the holder of a lock: its task left to wait for that, or waits for it. */
static __always_inline bool fl_is_called(s32 cpu)
{
	return sees_locks && (fl_cpu(cpu)->waits_edge | READ_ONCE(fl_cpu(cpu)->called_edge));
}

#endif /* __FREQLOCK_DONATE_BPF_H */
