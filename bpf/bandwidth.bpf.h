/* SPDX-License-Identifier: GPL-2.0-only */
/* Quotas of cgroups: which tasks may run now, and for how long. */
#ifndef __FREQLOCK_BANDWIDTH_BPF_H
#define __FREQLOCK_BANDWIDTH_BPF_H

#include "freqlock.bpf.h"
#include "limit.bpf.h"

bool fl_bandwidth_refuses(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
			  u64 now);
bool fl_bandwidth_throttle(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
			   u64 enq_flags, u64 now);
int fl_bandwidth_begin(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		       s32 cpu, u64 now);
bool fl_bandwidth_go_on(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
			u64 now);
int fl_bandwidth_end(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		     u64 now);
int fl_bandwidth_init(void);

/* True if any cgroup has a quota. Without --cgroups a constant to the verifier. */
static __always_inline bool fl_is_limited(void)
{
	return shares_cgroups && nr_limited;
}

/* True if @tctx runs by a grant, which is to be settled. */
static __always_inline bool fl_is_granted(const struct task_ctx *tctx)
{
	return shares_cgroups && tctx->granted_by;
}

#endif /* __FREQLOCK_BANDWIDTH_BPF_H */
