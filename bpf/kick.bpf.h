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

/* When a timer fires. */
struct fl_alarm {
	u64 at;    /* by scx_bpf_now(); 0 or what is past: it is not set */
	u64 ahead; /* of that clock against CLOCK_MONOTONIC, by which timers go, ns */
};

/* Have @timer fire in @ns; fails where it cannot be set. */
static __always_inline int fl_timer_start(struct bpf_timer *timer, u64 ns)
{
	if (fl_cannot_kick()) {
		fl_count(timer_dropped);
		return -EBUSY;
	}
	return bpf_timer_start(timer, ns, 0);
}

/* Have @timer fire at @at, which @alarm says from now on. */
static __always_inline int fl_timer_set(struct bpf_timer *timer, struct fl_alarm *alarm, u64 at,
					u64 now)
{
	alarm->at = at;
	alarm->ahead = now - bpf_ktime_get_ns();
	return fl_timer_start(timer, at > now ? at - now : 1);
}

/*
 * Have @timer fire at @at, or before. A time that is past is none: the timer could not be set. Two
 * that do so at once may leave the later time.
 */
static __always_inline int fl_timer_arm(struct bpf_timer *timer, struct fl_alarm *alarm, u64 at,
					u64 now)
{
	u64 fires = READ_ONCE(alarm->at);

	if (fires > now && fires <= at)
		return 0;
	return fl_timer_set(timer, alarm, at, now);
}

/*
 * Now, in a timer that fires; @alarm is off from then on. scx_bpf_now() alone may stand still there
 * until the CPU's next tick: a CPU that takes a task from the queue of another one sets that one's
 * clock and does not take it back (6.14 to 7.3, kernel/sched/ext.c: a remote task's run queue is
 * unlocked, but not unpinned). And the time that @alarm says may be that of a later firing: who
 * sets the timer as its callback begins takes it for one that is past.
 */
static __always_inline u64 fl_timer_now(struct fl_alarm *alarm)
{
	__sync_lock_test_and_set(&alarm->at, 0);
	return greater(scx_bpf_now(), bpf_ktime_get_ns() + READ_ONCE(alarm->ahead));
}

#endif /* __FREQLOCK_KICK_BPF_H */
