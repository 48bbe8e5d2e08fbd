/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The buffers of `scx_freqlock record`, and how an event gets into one.
 *
 * Each hook writes one event of 24 bytes into the buffer of its CPU, which is a part of an
 * array that the agent has mapped. Nothing is allocated, and nobody is woken: the agent
 * looks by itself whether there is much to take out. Hooks interrupt each other, so a place
 * is taken by an atomic addition, and the time of an event, which the agent waits for, is
 * written last.
 *
 * A full buffer refuses events, which are counted, or, as a flight recorder, begins anew.
 * What the kernel leaves out because a hook interrupted itself, it counts itself.
 */
#ifndef __FREQLOCK_RECORD_BPF_H
#define __FREQLOCK_RECORD_BPF_H

#include <bpf/bpf_helpers.h>

#include "record.h"

/* Written before load. Bits of enum fl_trace: what is to be recorded. */
const volatile u64 wanted;

/* Events of CPUs that came after the recording began. */
u64 lost_elsewhere;

/* All buffers, one after the other; the agent knows how many there are. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct rec_event);
} events SEC(".maps");

/* By CPU. A map of its own, which the objects of a recording share and the agent maps. */
struct rec_cursor cursors[FL_MAX_CPUS] SEC(".data.cursors");

/* The CPU of @cursor has no buffer, or a full one. */
static __noinline int record_lost(struct rec_cursor *cursor)
{
	if (cursor->stop)
		__sync_fetch_and_add(&cursor->lost, 1);
	else if (cursor->mask == REC_ABSENT)
		__sync_fetch_and_add(&lost_elsewhere, 1);
	return 0;
}

/* What is wanted is asked where a program writes more than one kind: others are not loaded. */
static __always_inline bool is_wanted(enum fl_trace kind)
{
	return wanted & (1ULL << kind);
}

static __always_inline void record(enum fl_trace kind, u32 pid, u64 arg)
{
	u32 cpu = bpf_get_smp_processor_id(), place;
	struct rec_cursor *cursor;
	struct rec_event *event;
	u64 now;

	if (cpu >= FL_MAX_CPUS)
		return;
	cursor = &cursors[cpu];
	if (cursor->head >= cursor->stop) {
		record_lost(cursor);
		return;
	}
	now = bpf_ktime_get_ns();
	place = cursor->first + (__sync_fetch_and_add(&cursor->head, 1) & cursor->mask);
	event = bpf_map_lookup_elem(&events, &place);
	if (!event)
		return;
	event->pid = pid;
	event->kind = kind;
	event->cpu = cpu;
	event->arg = arg;
	barrier();
	event->time = now;
}

#endif /* __FREQLOCK_RECORD_BPF_H */
