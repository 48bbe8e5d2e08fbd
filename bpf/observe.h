/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ABI of `scx_freqlock observe`: the events that observe.bpf.c sends and
 * src/observe/ reads. Ids are only ever added at the end.
 */
#ifndef __FREQLOCK_OBSERVE_H
#define __FREQLOCK_OBSERVE_H

#include "intf.h"

enum obs_consts {
	OBS_MASK_WORDS = FL_MAX_CPUS / 64,
	OBS_RING_BYTES = 64 << 20, /* two million events before the reader must run */
};

/*
 * What happened, and what the fields a, b, pid, cpu and flags then hold. Times
 * are nanoseconds of CLOCK_MONOTONIC; pid 0 is any CPU's idle task.
 */
enum obs_kind {
	OBS_SWITCH,   /* a: time, b: previous pid, pid: next, cpu: where */
	OBS_FORK,     /* a: time, b: parent, pid: child, cpu: the parent's */
	OBS_WAKE,     /* a: time, pid: became runnable (also for the first time) */
	OBS_MIGRATE,  /* a: time, pid, cpu: destination */
	OBS_AFFINITY, /* a: word of the mask of allowed CPUs, b: which word, pid */
	OBS_COMM,     /* a, b: the name of a task that exits, pid */
	OBS_NR_KINDS,
};

enum obs_flag {
	OBS_PREV_RUNNABLE = 1 << 0, /* SWITCH: the previous task did not want to leave */
	OBS_PREV_DEAD = 1 << 1,     /* SWITCH: the previous task will never run again */
	OBS_PARENT_ALONE = 1 << 2,  /* FORK: nothing else was runnable on the CPU */
	OBS_ROOT = 1 << 3,          /* FORK: the first task of the observed tree */
};

struct obs_event {
	u64 a;
	u64 b;
	u32 pid;
	u16 cpu;
	u8 kind;
	u8 flags;
};

_Static_assert(sizeof(struct obs_event) == 24, "obs_event is shared with the reader");

#endif /* __FREQLOCK_OBSERVE_H */
