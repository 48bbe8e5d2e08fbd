/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ABI of `scx_freqlock record`: the buffers that record.bpf.c fills and src/trace/
 * empties. The events in them are those of the file, docs/TRACE.md.
 */
#ifndef __FREQLOCK_RECORD_H
#define __FREQLOCK_RECORD_H

#include "intf.h"

enum rec_consts {
	/* Room that stays free: as many programs can interrupt each other on one CPU. */
	REC_MARGIN = 16,
	/* In place of a mask, of a CPU without a buffer: it is not to be recorded, ... */
	REC_UNWANTED = 0,
	/* ... or was offline as the recording began. */
	REC_ABSENT = 1,
};

/* Of FL_TRACE_place, beside the mode: what came of it. */
enum rec_place {
	REC_PLACE_MODE = 0xff,
	REC_PLACE_IDLE = 1 << 8,  /* the CPU was idle */
	REC_PLACE_PARK = 1 << 9,  /* the task is to wait for it on purpose */
	REC_PLACE_SET = 1 << 10,  /* the task is to wait within the warm set */
	REC_PLACE_BIG = 1 << 11,  /* a big one for a holder, or by prefer_big */
	REC_PLACE_PREV = 1 << 12, /* it is the one that the task ran on before */
	REC_PLACE_FORK = 1 << 13, /* the task is new */
};

/* Of FL_TRACE_weigh. */
enum rec_decides {
	REC_DECIDES_FORK = 1 << 0,      /* the task is new */
	REC_DECIDES_FROM_TASK = 1 << 1, /* a task woke it, or forked */
	REC_DECIDES_ANY_IDLE = 1 << 2,
	REC_DECIDES_SET = 1 << 3,   /* among the CPUs of the warm set */
	REC_DECIDES_BACK = 1 << 4,  /* its previous CPU, idle, was the best whatever others are; */
	REC_DECIDES_AGAIN = 1 << 5, /* ... by the look before this one: there was none */
};

/* Of a candidate. */
enum rec_candidate_flags {
	REC_CANDIDATE_IDLE = 1 << 0,
	REC_CANDIDATE_RUNS = 1 << 1,   /* a task of ours */
	REC_CANDIDATE_SHARED = 1 << 2, /* its core's other thread runs one */
	REC_CANDIDATE_TAKEN = 1 << 3,  /* a task of a higher class has it */
	REC_CANDIDATE_LEAVES = 1 << 4, /* when its task leaves is known */
};

struct rec_event {
	u64 time; /* ns of CLOCK_MONOTONIC; 0: not yet written */
	u32 pid;
	u16 kind; /* enum fl_trace */
	u16 cpu;  /* on which it was recorded */
	u64 arg;
};

/* A CPU's buffer, and where it is there: counts of events since the recording began. */
struct rec_cursor {
	u64 head;  /* of those that got a place */
	u64 stop;  /* there it is full; 0: it has no buffer */
	u64 lost;  /* of those that found no place */
	u64 first; /* its first place among those of all CPUs */
	u64 mask;  /* of its places, whose number is a power of two */
	u64 unused[3];
};

/*
 * What FL_TRACE_weigh and the FL_TRACE_weigh_rest behind it say, word by word: a decision, and then
 * each of its candidates. Times in ns, ages before it was made; what is longer than 32 bits hold is
 * as long as these, which is longer than any that policy/finish.h tells apart.
 */
struct rec_decision {
	u16 prev_cpu;
	u16 this_cpu;
	u16 flags;      /* enum rec_decides */
	u16 candidates; /* how many follow */
	u32 burst;      /* of the task, at full speed */
	u32 soon;       /* a task that is back sooner wants its idle CPU */
	u32 leave;      /* until the task on this_cpu leaves by itself; ~0 not known */
	u32 share;      /* 0..1024 that is forgiven an idle CPU of the set */
	u32 exit;       /* what this_cpu took to leave idle, as of ... */
	u32 exit_age;
	u32 active; /* cores */
	u32 unused;
};

struct rec_candidate {
	u16 cpu;
	u8 why;    /* enum auto_why */
	u8 flags;  /* enum rec_candidate_flags */
	u32 speed; /* SPEED_ONE for full, as of ... */
	u32 speed_age;
	u32 busy; /* ... and it was busy for so long since, as of ... */
	u32 busy_age;
	u32 running_age; /* its task runs since then */
	u32 rest;        /* cpu_ctx: running_rest, ... */
	u32 away;
	u32 slice;
	u32 leave; /* until its task leaves; 0 if that was to be before */
	u32 queued;
	u32 stopped_age;
	u32 exit;
	u32 exit_age;
	u32 overrun;
	u32 overrun_age;
	u32 rent; /* struct rent of its last-level cache */
	u32 rent_age;
	u32 rent_life;
	u32 given; /* 0..1024, where a test gives speeds */
};

/* A task that was there as the recording began. */
struct rec_task {
	u32 pid;
	u32 tgid;
	s32 running_on; /* CPU, or -1 */
	u32 unused;
	char comm[FL_COMM];
};

_Static_assert(sizeof(struct rec_event) == 24, "rec_event is shared with the reader");
_Static_assert(sizeof(struct rec_cursor) == 64, "a cursor has a cache line");
_Static_assert(sizeof(struct rec_decision) == 40, "rec_decision is part of the format");
_Static_assert(sizeof(struct rec_candidate) == 80, "rec_candidate is part of the format");
_Static_assert(sizeof(struct rec_task) == 32, "rec_task is shared with the reader");

#endif /* __FREQLOCK_RECORD_H */
