/* SPDX-License-Identifier: GPL-2.0-only */
/* The CPUs that the load keeps warm, to which mode auto confines it: policy/warmset.h. */
#ifndef __FREQLOCK_WARM_BPF_H
#define __FREQLOCK_WARM_BPF_H

#include "freqlock.bpf.h"

extern u32 warm_cpus;
extern u32 warm_share;
extern u64 warm_wait_ns;
extern u64 warm_next;

int fl_warm_look(s32 cpu, u64 now);

/* True if @p, which any CPU would do for, is to stay within the set. */
static __always_inline bool fl_is_confined(const struct task_struct *p)
{
	return warm_cpus && p->nr_cpus_allowed >= nr_present;
}

#endif /* __FREQLOCK_WARM_BPF_H */
