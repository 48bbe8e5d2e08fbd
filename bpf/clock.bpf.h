/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What changes as a task waits, runs and stops: its virtual time, on the clock of the CPU that
 * it is on, its deadline, and the work that waits on each CPU; and how far ticks are apart.
 */
#ifndef __FREQLOCK_CLOCK_BPF_H
#define __FREQLOCK_CLOCK_BPF_H

#include "freqlock.bpf.h"
#include "cgroup.bpf.h"
#include "policy/balance.h"
#include "policy/deadline.h"
#include "policy/learn.h"

/* Take @tctx out of the work and weights that wait on the CPU where it was queued. */
static inline void queued_remove(struct task_ctx *tctx)
{
	if (tctx->queued_cpu < 0)
		return;
	__sync_fetch_and_sub(&fl_cpu(tctx->queued_cpu)->queued_work, tctx->queued_work);
	tctx->queued_cpu = -1;
}

static inline void queued_add(struct task_ctx *tctx, s32 cpu)
{
	u64 work = tctx->burst ?: LEARN_UNKNOWN_BURST_NS, slice = fl_slice(tctx);

	queued_remove(tctx);
	tctx->queued_work = queued_entry(work < slice ? work : slice, tctx->weight);
	tctx->queued_cpu = cpu;
	fl_cpu(cpu)->arrivals++;
	__sync_fetch_and_add(&fl_cpu(cpu)->queued_work, tctx->queued_work);
}

/*
 * Bring @tctx onto the clock of @cpu, with bounded credit and debt. While it
 * sleeps its vtime is kept as the lag against the clock of the CPU that it left,
 * so sleep itself earns nothing, but others run meanwhile and debt is made up.
 */
static inline void vtime_join(struct task_ctx *tctx, s32 cpu)
{
	u64 vclock = fl_cpu(cpu)->vclock, from = 0;

	if (tctx->vtime_cpu >= 0)
		from = fl_cpu(tctx->vtime_cpu)->vclock;
	else
		tctx->vtime = lag_at_wake(tctx->vtime,
					  fl_cpu(tctx->slept_cpu)->vclock - tctx->slept_vclock);
	if (tctx->vtime_cpu != cpu)
		tctx->vtime = vtime_rebase(tctx->vtime, from, vclock);
	tctx->vtime_cpu = cpu;
	tctx->vtime = vtime_clamp(tctx->vtime, vclock, tunables.lag_us * FL_USEC, fl_slice(tctx),
				  tctx->weight);
}

/* Most virtual time by which a clock may run ahead of the next task. */
#define CLOCK_STEP_NS (1000 * FL_USEC)

/* @tctx was picked on @cpu without a boost: the clock advances. */
static inline void vclock_advance(const struct task_ctx *tctx, s32 cpu)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	u64 head = tctx->vtime;
	struct task_struct *p;
	struct task_ctx *hctx;

	/*
	 * Only a task that is far ahead can be far ahead of the next one: the
	 * others are not looked at. One may come from another CPU with its debt; a
	 * wakee is not to share that.
	 */
	if (vtime_before(cctx->vclock + CLOCK_STEP_NS, tctx->vtime)) {
		p = __COMPAT_scx_bpf_dsq_peek(fl_queue(cpu));
		hctx = p ? fl_task(p) : NULL;
		if (hctx)
			head = hctx->vtime;
	}
	cctx->vclock = vclock_after(cctx->vclock, tctx->vtime, head);
}

/* Charge @tctx, which runs, for its time up to @now. */
static inline void vtime_run(struct task_ctx *tctx, u64 now)
{
	u64 ran = elapsed(tctx->charged_at, now), got = vtime_charge(ran, tctx->weight);

	tctx->vtime += got;
	fl_cgroup_charge(tctx, ran, now);
	tctx->charged_at = now;
	tctx->served = served_faded(tctx->served, elapsed(tctx->served_at, now)) + got;
	tctx->served_at = now;
}

static inline void vtime_sleep(struct task_ctx *tctx)
{
	if (tctx->vtime_cpu < 0)
		return;
	tctx->slept_cpu = tctx->vtime_cpu;
	tctx->slept_vclock = fl_cpu(tctx->vtime_cpu)->vclock;
	tctx->vtime -= tctx->slept_vclock;
	tctx->vtime_cpu = FL_ASLEEP;
}

/* Ticks from which their interval is measured. */
#define TICK_JIFFIES 64

/* Since when jiffies are counted for tick_ns. */
static u64 jiffies_since, jiffies_before;

static inline void begin_ticks(void)
{
	jiffies_since = scx_bpf_now();
	jiffies_before = bpf_jiffies64();
}

/* All CPUs count the same jiffies: any CPU may be the first to write tick_ns. */
static inline void learn_tick(u64 now)
{
	u64 jiffies;

	if (tick_ns)
		return;
	jiffies = bpf_jiffies64() - jiffies_before;
	if (jiffies >= TICK_JIFFIES)
		tick_ns = (now - jiffies_since) / jiffies;
}

/* @tctx stops on the CPU of @cctx after it @ran: if that was no turn, it is owed one. */
static inline void owe_turn(struct task_ctx *tctx, const struct cpu_ctx *cctx, u64 ran,
			    bool goes_on)
{
	if (goes_on)
		tctx->owed_since = owed_turn(tctx->owed_since, tctx->waited_since,
					     elapsed(cctx->look_ns, ran), fl_slice(tctx));
	else
		tctx->owed_since = 0;
}

/* What is left of @tctx's burst, for its next request. */
static inline u64 burst_rest(struct task_ctx *tctx)
{
	return tctx->burst ? learn_rest(tctx->burst, tctx->work) : 0;
}

/* @tctx is to be queued and asks for @request, ns. */
static inline void set_deadline(struct task_ctx *tctx, u64 request)
{
	tctx->deadline = vtime_deadline(tctx->vtime, burst_rest(tctx), request, tctx->weight);
}

#endif /* __FREQLOCK_CLOCK_BPF_H */
