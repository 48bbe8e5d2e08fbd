/* SPDX-License-Identifier: GPL-2.0-only */
/* What watch.bpf.c sees, in memory that the lab has mapped. Times are ns of CLOCK_MONOTONIC. */
#ifndef __FREQLOCK_LAB_WATCH_H
#define __FREQLOCK_LAB_WATCH_H

#include "intf.h"

/* Tasks are found by the last bits of their id; of two that share them, the latter is known. */
#define WATCH_TASKS 32768

enum watch_task_flags {
	WATCH_FORK = 1 << 0,      /* it is new, and was not woken since */
	WATCH_FROM_TASK = 1 << 1, /* a task woke it, or forked it; not an interrupt */
};

/* Written by the CPU itself. */
struct watch_cpu {
	u32 pid;   /* who runs there; 0: it is idle */
	u32 taken; /* whether that one is of a higher class */
	u64 since; /* when that began */
	u64 busy;  /* for how long it ran tasks before, in all */
	u32 last;  /* who ran there last */
	u32 unused[9];
};

/* Written by who wakes it up, and by the CPU that it leaves. */
struct watch_task {
	u32 pid;
	u32 flags;    /* enum watch_task_flags */
	u32 waker;    /* the CPU on which it was woken up, or forked */
	u32 bursts;   /* how many of them ended: the others are news if this changed */
	u64 ran;      /* since it was woken up, as of when it left its CPU */
	u64 burst;    /* how long its last burst was, ... */
	u64 slept_at; /* ... when that ended, ... */
	u64 slept;    /* ... and for how long it slept last */
	u64 began_at; /* when it got a CPU last */
};

#endif /* __FREQLOCK_LAB_WATCH_H */
