/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What CPUs that go and come mean for the others' code: who is asked about, what is to be
 * drained, and from where a kick arrives.
 */
#ifndef __FREQLOCK_HOTPLUG_BPF_H
#define __FREQLOCK_HOTPLUG_BPF_H

#include "freqlock.bpf.h"

/* Operations and functions of hotplug.bpf.c. */
void freqlock_cpu_online(unsigned long long *ctx);
void freqlock_cpu_offline(unsigned long long *ctx);
int fl_hotplug_init(void);
int fl_drain(s32 cpu);
bool fl_is_unplugged(s32 cpu);

/* True if the kernel asks nothing about the CPU, or soon will not. */
static __always_inline bool fl_is_changing(const struct cpu_ctx *cctx)
{
	return cctx->going || cctx->offline;
}

/*
 * True on a CPU that takes no interrupts any more. It still wakes who waits for its end. A
 * kick is an irq_work of the CPU that sends it, which would not run: 7.3 waits for
 * it as the scheduler is unloaded, and once the CPU is back none of its irq_works run,
 * since only the first in the list raises an interrupt (kernel/irq_work.c).
 */
static __always_inline bool fl_cannot_kick(void)
{
	s32 self = bpf_get_smp_processor_id();

	return fl_cpu(self)->offline && fl_is_unplugged(self);
}

static __always_inline void fl_kick(s32 cpu, u64 flags)
{
	if (fl_cannot_kick())
		fl_count(kick_dropped);
	else
		scx_bpf_kick_cpu(cpu, flags);
}

#endif /* __FREQLOCK_HOTPLUG_BPF_H */
