/* SPDX-License-Identifier: GPL-2.0-only */
/* CPUs without ticks: a task that has one for itself, and those that come there. */
#ifndef __FREQLOCK_ALONE_BPF_H
#define __FREQLOCK_ALONE_BPF_H

#include "freqlock.bpf.h"

extern const volatile bool tickless;
extern const volatile bool tickless_cpus[FL_MAX_CPUS];

bool fl_alone_begin(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		    s32 cpu);
bool fl_alone_end(s32 cpu, u64 now);
int fl_alone_tick(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull, s32 cpu,
		  u64 now);
int fl_alone_disturb(s32 cpu, u64 now);

/* True if the kernel may stop the ticks of @cpu while it runs a task. */
static __always_inline bool fl_is_tickless(s32 cpu)
{
	return tickless && tickless_cpus[(u32)cpu & (FL_MAX_CPUS - 1)];
}

/* A task came to a queue of @cpu, or is about to if it is counted there. */
static __always_inline void fl_came(s32 cpu, u64 now)
{
	if (fl_is_tickless(cpu))
		fl_alone_disturb(cpu, now);
}

/* True if a task waits at @cpu, which runs one. */
static __always_inline bool fl_is_awaited(s32 cpu)
{
	return READ_ONCE(fl_cpu(cpu)->queued_work) || READ_ONCE(fl_cpu(cpu)->released) ||
	       scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) > 0;
}

#endif /* __FREQLOCK_ALONE_BPF_H */
