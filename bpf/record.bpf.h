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
/* By CPU: which buffer it has, or REC_UNWANTED or REC_ABSENT. */
const volatile u16 buffer_of[FL_MAX_CPUS];
/* Events in each buffer, a power of two. */
const volatile u32 nr_places = 1;
/* Whether a full buffer begins anew. */
const volatile bool overwrite;

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

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct rec_cursor);
} cursors SEC(".maps");

static __always_inline void record(enum fl_trace kind, u32 pid, u64 arg)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct rec_cursor *cursor;
	struct rec_event *event;
	u32 buffer, place;
	u64 now;

	if (!(wanted & (1ULL << kind)) || cpu >= FL_MAX_CPUS)
		return;
	buffer = buffer_of[cpu];
	cursor = bpf_map_lookup_elem(&cursors, &buffer);
	if (!cursor) {
		if (buffer == REC_ABSENT)
			__sync_fetch_and_add(&lost_elsewhere, 1);
		return;
	}
	if (!overwrite && cursor->head - cursor->tail >= nr_places - REC_MARGIN) {
		__sync_fetch_and_add(&cursor->lost, 1);
		return;
	}
	now = bpf_ktime_get_ns();
	place = __sync_fetch_and_add(&cursor->head, 1) & (nr_places - 1);
	place += buffer * nr_places;
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
