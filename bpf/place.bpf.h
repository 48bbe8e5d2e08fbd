/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a task goes: the decision itself, and idle CPUs for others who look for one. */
#ifndef __FREQLOCK_PLACE_BPF_H
#define __FREQLOCK_PLACE_BPF_H

#include "freqlock.bpf.h"
#include "decision.bpf.h"
#include "policy/modes.h"

s32 fl_place(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
	     struct placement *pl __arg_nonnull);
s32 fl_place_again(struct task_struct *p __arg_trusted, struct placement *pl __arg_nonnull);
s32 fl_claim_idle(struct task_struct *p __arg_trusted, u64 mode, s32 from, u64 now);
s32 fl_place_apart(struct task_struct *p __arg_trusted, s32 from);
s32 fl_claim_big(struct task_struct *p __arg_trusted, s32 from, u64 now);

/* False if no CPU at all is idle: then none needs to be looked for. */
static __always_inline bool fl_any_idle(void)
{
	const struct cpumask *idle;
	bool any;

	/* Park's timer comes here too, and is verified with ops.init, which may sleep. */
	bpf_rcu_read_lock();
	idle = scx_bpf_get_idle_cpumask();
	any = !bpf_cpumask_empty(idle);
	scx_bpf_put_idle_cpumask(idle);
	bpf_rcu_read_unlock();
	return any;
}

/* True if the CPU belongs to the warm set. */
static __always_inline bool fl_is_warm(s32 cpu, u64 now)
{
	return fl_is_busy(cpu) ||
	       nest_is_warm(now, fl_cpu(cpu)->last_stop, tunables.nest_idle_us * FL_USEC);
}

#endif /* __FREQLOCK_PLACE_BPF_H */
