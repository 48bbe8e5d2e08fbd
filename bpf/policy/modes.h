/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rules of the simple placement modes, one predicate each (Carver et al.,
 * "Fork/Wait and Multicore Frequency Scaling", PLOS 2019, section 4, for fork-local
 * and fork-all; Gouicem et al., "Fewer Cores, More Hertz", USENIX ATC 2020, for
 * smove; Lawall et al., "OS Scheduling with Nest", EuroSys 2022, for the warm set).
 */
#ifndef __FREQLOCK_POLICY_MODES_H
#define __FREQLOCK_POLICY_MODES_H

#include "../intf.h"
#include "verifier.h"

/* True if @mode has @flag in the table. */
static inline bool mode_has(u64 mode, enum fl_mode_flags flag)
{
	u64 those = 0;

#define MODE(name, cli, flags, help) those |= ((flags) & flag) ? 1ULL << FL_MODE_##name : 0;
#include "../modes.h"
#undef MODE
	return those >> (mode & 63) & 1;
}

/* fork-local: the child stays if the parent is alone on its CPU. */
static inline bool forklocal_keeps_child(u32 nr_running)
{
	return nr_running <= 1;
}

/*
 * True if a wakee is to queue on its waker's CPU, with @here tasks, and not on its previous
 * one, with @there: where it will have fewer before it, by two unless the waker @leaves (fair.c,
 * wake_affine_idle() and wake_affine_weight()).
 */
static inline bool waker_less_crowded(u32 here, bool leaves, u32 there)
{
	return leaves ? here <= there : (u64)here + 1 < there;
}

/* fork-local: the wakee stays on its previous CPU if at most one task is there. */
static inline bool forklocal_keeps_wakee(u32 nr_running)
{
	return nr_running <= 1;
}

/* smove: stay local when the idle CPU is slower now. Speeds 0..1024. */
static inline bool smove_stays(u32 local_speed, u32 idle_speed)
{
	return idle_speed < local_speed;
}

/* nest: a CPU is warm for @nest_idle_ns after it last ran a task. */
static inline bool nest_is_warm(u64 now, u64 last_stop, u64 nest_idle_ns)
{
	return last_stop && elapsed(last_stop, now) < nest_idle_ns;
}

/* Distance between two CPUs of which the topology is known. */
static inline u32 topo_distance(const struct cpu_topo *a, const struct cpu_topo *b, bool same_cpu)
{
	if (same_cpu)
		return FL_SAME_CPU;
	if (a->core == b->core)
		return FL_SAME_CORE;
	if (a->llc == b->llc)
		return FL_SAME_LLC;
	if (a->node == b->node)
		return FL_SAME_NODE;
	return FL_FAR;
}

#endif /* __FREQLOCK_POLICY_MODES_H */
