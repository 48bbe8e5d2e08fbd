/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Decisions by predicted finish made on the host, by the scheduler's own code: choose.bpf.c and
 * freq.bpf.c compiled for it. src/trace/replay.rs calls this; one caller at a time.
 */
#ifndef __FREQLOCK_REPLAY_H
#define __FREQLOCK_REPLAY_H

#include "../record.h"

/* As many as decision.bpf.h has room for. */
enum { REPLAY_PLACES = 8 };

/* What is the same for all decisions. */
struct replay_machine {
	struct cpu_topo topo[FL_MAX_CPUS];
	u32 turbo[FL_MAX_CPUS];
	u32 source; /* enum fl_freq_source */
	u32 smt;    /* whether cores have two threads */
};

/* What a candidate costs, ns; struct candidate. */
struct replay_cost {
	s32 cpu; /* -1: it is not considered */
	u32 idle;
	u64 wait;
	u64 run;
	u64 migration;
	u64 displaced;
	u64 others;
	u64 finish;
};

struct replay_result {
	struct replay_cost cost[REPLAY_PLACES]; /* by enum auto_why */
	s32 best;                               /* CPU, -1 none: of REC_DECIDES_BACK, or it loses */
	u32 why;
	u32 bought; /* it is idle, finishes later, and pays off */
};

/* What tells idle CPUs apart before they are candidates. */
struct replay_idle {
	u32 speed; /* now, 0..1024 */
	u32 unused;
	u64 back; /* in how many ns its last task wants it back; ~0 not known, or never */
};

/* On which machine decisions are made from now on. */
void replay_on(const struct replay_machine *machine);
/* @candidates: as many as @decision says. */
void replay_decision(const struct tunables *knobs, const struct rec_decision *decision,
		     const struct rec_candidate *candidates, struct replay_result *result);
void replay_idle(const struct tunables *knobs, const struct rec_candidate *candidate,
		 struct replay_idle *idle);
/* Speed, SPEED_ONE for full, of a CPU that had @speed, @busy ns of work later and @idle ns idle. */
u32 replay_speed(const struct tunables *knobs, u32 speed, u64 busy, u64 idle);
/* What is known of a time, of which @sample is the latest: policy/learn.h. 0 is none. */
u64 replay_average(u64 known, u64 sample);

#endif /* __FREQLOCK_REPLAY_H */
