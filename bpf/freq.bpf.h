/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How fast each CPU is now, and how much slower it gets by other active cores.
 * main.bpf.c reports when a task begins to run there, runs on and stops.
 */
#ifndef __FREQLOCK_FREQ_BPF_H
#define __FREQLOCK_FREQ_BPF_H

#include "freqlock.bpf.h"

extern volatile u32 freq_source;
extern volatile u32 turbo[FL_MAX_CPUS];

u32 fl_speed(s32 cpu, u64 now);
int fl_freq_catch_up(s32 cpu, u64 now);
u32 fl_freq_stopping(s32 cpu, u64 now);
u32 fl_freq_tick(s32 cpu, u64 now);

/*
 * A CPU's speed and utilisation are brought up to date once in this time, and at ticks:
 * with each switch of tasks that would cost as much as the rest of a decision.
 */
#define FREQ_STEP_NS (100 * FL_USEC)
/* Most of what an idle CPU does on its way to a task that it was sent. */
#define FREQ_WAKE_NS (5 * FL_USEC)

/*
 * This CPU begins to run a task. If it was not idle since the last one, it was busy with the
 * switch, which in tasks of a few us is as long as what they do.
 */
static __always_inline void fl_freq_running(s32 cpu, u64 now)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);

	if (cctx->busy_at && !cctx->was_idle)
		cctx->busy_ns += elapsed(cctx->busy_at, now);
	cctx->busy_at = now;
	cctx->was_idle = false;
	if (elapsed(cctx->speed_at, now) >= FREQ_STEP_NS)
		fl_freq_catch_up(cpu, now);
}

/* Speed of each of @active cores, 0..1024 of one that is alone. */
static __always_inline u32 fl_turbo(u32 active)
{
	return active ? turbo[(active - 1) & (FL_MAX_CPUS - 1)] : FL_FULL_SPEED;
}

/* True if the number of active cores makes any difference; the last stands for more. */
static __always_inline bool fl_turbo_falls(void)
{
	return turbo[FL_MAX_CPUS - 1] < turbo[0];
}

#endif /* __FREQLOCK_FREQ_BPF_H */
