/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a decision about where a task goes knows and says: placement.bpf.h begins it and carries it
 * out, place.bpf.c and choose.bpf.c make it.
 */
#ifndef __FREQLOCK_DECISION_BPF_H
#define __FREQLOCK_DECISION_BPF_H

#include "freqlock.bpf.h"
#include "policy/finish.h"

/* The fastest of some CPUs now; of equals the one that was busiest recently. */
struct warmest {
	s32 cpu; /* -1 none */
	u32 speed;
	u32 util;
};

/* The idle CPUs worth looking at, from one pass over those nearest to a CPU. */
struct idle_scan {
	s32 near; /* the first that is idle, -1 none */
	s32 fast; /* the nearest of the highest capacity */
	u32 fast_capacity;
	struct warmest warm; /* of all that are idle */
	struct warmest free; /* of those that their last task does not want back soon, ... */
	u64 soon_ns;         /* ... which is before the task that is placed wants it back itself */
	bool nest_only;      /* look only at CPUs of the warm set */
	bool set_only;       /* auto: look only at CPUs of the set of warm.bpf.c */
	s32 least;           /* with it, the busy one with the least work, -1 none, ... */
	u64 least_ns;        /* ... which is so much */
};

/* Candidates of auto in the order in which they win when they finish alike. */
enum auto_why { AUTO_LOCAL, AUTO_PREV, AUTO_HOME, AUTO_WARM, AUTO_FAST, AUTO_FREE, NR_AUTO };

/* A power of two, for in_range(). */
#define AUTO_PLACES 8

struct auto_choice {
	s32 cpu[AUTO_PLACES]; /* candidates by enum auto_why, -1 none */
	bool idle[AUTO_PLACES];
	struct candidate
		first[2]; /* of those busy or lent, and of the others: the first to finish */
	u32 why[2];       /* which of the candidates that is */
	s32 best;         /* out: what is chosen, -1 none: its CPU, ... */
	bool best_idle;   /* out: ... whether that is idle, ... */
	u32 best_why;     /* out: ... which of the candidates it is, ... */
	u64 best_wait;    /* out: ... and its wait */
};

/*
 * The decision about one task: in and out of place.bpf.c. Kept by the CPU that
 * makes it, which does so with interrupts off and so makes one at a time. Not on
 * the stack: the verifier of Linux 7.3 follows what points there into every call.
 */
struct placement {
	/* What `record` writes of it, side by side: up to now. */
	u64 mode; /* read once: it may change meanwhile */
	s32 prev_cpu;
	bool fork;
	bool idle; /* out: the CPU was idle and has been claimed */
	bool hold; /* out: wait among the warm CPUs, and leave those outside of them idle */
	bool park; /* out: wait there on purpose */
	u64 now;
	u64 wake_flags;
	s32 this_cpu;
	u64 leave_ns;    /* until the task on this_cpu leaves it by itself, FL_NONE unknown */
	bool displaced;  /* a real-time task takes prev_cpu from it just now */
	bool from_task;  /* forked or woken by the task on this_cpu, not by an interrupt */
	u32 nr_active;   /* auto: cores that are not idle, where that slows others */
	bool any_idle;   /* auto: some CPU that the task may use is idle */
	u64 burst;       /* auto: work that it is expected to do, ns at full speed */
	s32 park_target; /* out: idle CPU for when the wait was too long, or -1 */
	u64 park_ns;     /* out: how long to wait at most */
	u64 park_spared; /* out: ns that an idle CPU would take to run it */
	u64 wait_ns;     /* out: predicted wait */
	struct idle_scan scan;
	struct auto_choice choice;
} __attribute__((aligned(128)));

/* In how many ns the last task of an idle CPU wants it back; FL_NONE: not known, or never. */
static __always_inline u64 last_is_back(const struct cpu_ctx *cctx, u64 now)
{
	return finish_back(cctx->running_away, elapsed(cctx->last_stop, now));
}

#endif /* __FREQLOCK_DECISION_BPF_H */
