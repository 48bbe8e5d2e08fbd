/* SPDX-License-Identifier: GPL-2.0-only */
/* A CPU is to look at its queues: kicks, and where none may be sent. */
#ifndef __FREQLOCK_KICK_BPF_H
#define __FREQLOCK_KICK_BPF_H

#include "freqlock.bpf.h"

bool fl_is_unplugged(s32 cpu);

/*
 * True on a CPU that takes no interrupts any more. It still wakes who waits for its end. What is
 * an irq_work of the CPU that asks for it is not to be asked for there: a kick, from 7.0 on a
 * timer that is set with interrupts off, the wake-up of a ring buffer's reader. It
 * would not run: 7.3 waits for it as the scheduler is unloaded, and once the CPU is back none
 * of its irq_works run, not even those by which the kernel ends a scheduler, since only the
 * first in the list raises an interrupt (kernel/irq_work.c).
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

/*
 * Have @timer fire in @ns; fails where it cannot be set. Whoever keeps when a timer fires takes a
 * time that is past for none, so the next who needs it sets it.
 */
static __always_inline int fl_timer_start(struct bpf_timer *timer, u64 ns)
{
	if (fl_cannot_kick()) {
		fl_count(timer_dropped);
		return -EBUSY;
	}
	return bpf_timer_start(timer, ns, 0);
}

/*
 * Have @timer fire at @at, or before; @fires_at is when it does, or what is past. Two that do so at
 * once may leave the later time.
 */
static __always_inline int fl_timer_arm(struct bpf_timer *timer, u64 *fires_at, u64 at, u64 now)
{
	u64 fires = READ_ONCE(*fires_at);

	if (fires > now && fires <= at)
		return 0;
	*fires_at = at;
	return fl_timer_start(timer, at > now ? at - now : 1);
}

#endif /* __FREQLOCK_KICK_BPF_H */
