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
	/* Instead of a buffer's number: the CPU is not to be recorded, ... */
	REC_UNWANTED = 0xffff,
	/* ... or was offline as the recording began. */
	REC_ABSENT = 0xfffe,
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

struct rec_event {
	u64 time; /* ns of CLOCK_MONOTONIC; 0: not yet written */
	u32 pid;
	u16 kind; /* enum fl_trace */
	u16 cpu;  /* on which it was recorded */
	u64 arg;
};

/* Where a CPU is in its buffer: counts of events since the recording began. */
struct rec_cursor {
	u64 head; /* of those that got a place */
	u64 tail; /* of those that the agent took out */
	u64 lost; /* of those that found no place */
	u64 unused[5];
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
_Static_assert(sizeof(struct rec_task) == 32, "rec_task is shared with the reader");

#endif /* __FREQLOCK_RECORD_H */
