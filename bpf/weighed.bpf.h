/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a decision by predicted finish was made by, for `analyze --what-if`: read from the
 * scheduler's memory just before it decides. Its global variables are a map, which the agent
 * passes on to this object with where each of them is in it.
 */
#ifndef __FREQLOCK_WEIGHED_BPF_H
#define __FREQLOCK_WEIGHED_BPF_H

#include "choose.bpf.h"
#include "freq.bpf.h"
#include "policy/balance.h"
#include "record.bpf.h"

/* For the agent, before load: sizes that must be the scheduler's, ... */
const volatile u32 cpu_ctx_size = sizeof(struct cpu_ctx);
const volatile u32 rent_size = sizeof(struct rent);
/* ... and where variables are in its .bss. */
const volatile u32 at_cpu_ctxs, at_cpu_topo, at_rents, at_test_speed, at_warm_share;

/* The scheduler's .bss, by its own name: the skeleton does not take it as a map of this object. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} variables SEC(".maps");

/* The decision that a CPU makes: it makes one at a time. */
struct deciding {
	struct placement pl; /* a copy */
	u32 pid;             /* whose */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct deciding);
} decides SEC(".maps");

static struct deciding *deciding(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&decides, &zero);
}

/* The scheduler's variables. */
static char *all_variables(void)
{
	u32 zero = 0;
	void *bss = bpf_map_lookup_elem(&variables, &zero);

	return bss ? bpf_map_lookup_elem(bss, &zero) : NULL;
}

/* Of the array of @type at @at, element @i. */
#define element(at, type, i)                                                       \
	({                                                                         \
		char *all = all_variables();                                       \
		all ? (type *)(all + (at)) + in_range(i, FL_MAX_CPUS) : (type *)0; \
	})

static u32 word_of(u64 ns)
{
	return shorter(ns, (u32)-1);
}

static __noinline int record_words(u32 pid, const u64 *words __arg_nonnull, u32 nr)
{
	u32 i;

	for (i = 0; i < sizeof(struct rec_candidate) / sizeof(u64) && i < nr; i++)
		record(FL_TRACE_weigh_rest, pid, words[i]);
	return 0;
}

static bool is_taken(s32 cpu)
{
	struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);

	return rq && BPF_CORE_READ(rq, curr, prio) < PRIO_RT_END;
}

/* @cpu as a candidate. */
static __noinline int record_candidate(u32 pid, s32 cpu, u32 why_and_idle, u64 now)
{
	struct cpu_ctx *cctx = element(at_cpu_ctxs, struct cpu_ctx, cpu), *other;
	struct cpu_topo *topo = element(at_cpu_topo, struct cpu_topo, cpu);
	u32 *given = element(at_test_speed, u32, cpu);
	struct rec_candidate c = {};
	struct rent *rent;

	if (!cctx || !topo || !given)
		return 0;
	rent = element(at_rents, struct rent, topo->llc);
	other = element(at_cpu_ctxs, struct cpu_ctx, topo->sibling);
	if (!rent || !other)
		return 0;
	c.cpu = cpu;
	c.why = why_and_idle >> 1;
	c.flags = why_and_idle & 1 ? REC_CANDIDATE_IDLE : 0;
	if (cctx->running_since)
		c.flags |= REC_CANDIDATE_RUNS;
	else if (is_taken(cpu))
		c.flags |= REC_CANDIDATE_TAKEN;
	if (topo->sibling >= 0 && other->running_since)
		c.flags |= REC_CANDIDATE_SHARED;
	if (cctx->leave_at)
		c.flags |= REC_CANDIDATE_LEAVES;
	c.speed = cctx->speed;
	c.speed_age = word_of(elapsed(cctx->speed_at, now));
	c.busy = word_of(cctx->busy_ns);
	c.busy_age = word_of(elapsed(cctx->busy_at, now));
	c.running_age = word_of(elapsed(cctx->running_since, now));
	c.rest = word_of(cctx->running_rest);
	c.away = word_of(cctx->running_away);
	c.slice = word_of(cctx->running_slice);
	c.leave = word_of(elapsed(now, cctx->leave_at));
	c.queued = word_of(queued_ns(cctx->queued_work));
	c.stopped_age = word_of(elapsed(cctx->last_stop, now));
	c.exit = word_of(cctx->idle_exit);
	c.exit_age = word_of(elapsed(cctx->idle_exit_at, now));
	c.overrun = word_of(cctx->overrun);
	c.overrun_age = word_of(elapsed(cctx->overrun_at, now));
	c.rent = word_of(rent->ns);
	c.rent_age = word_of(elapsed(rent->at, now));
	c.rent_life = word_of(rent->life);
	c.given = *given;
	return record_words(pid, (const u64 *)&c, sizeof(c) / sizeof(u64));
}

static u32 flags_of(const struct placement *pl)
{
	u32 flags = 0;

	if (pl->fork)
		flags |= REC_DECIDES_FORK;
	if (pl->from_task)
		flags |= REC_DECIDES_FROM_TASK;
	if (pl->any_idle)
		flags |= REC_DECIDES_ANY_IDLE;
	if (pl->scan.set_only)
		flags |= REC_DECIDES_SET;
	return flags;
}

/* A decision, which has @nr candidates. */
static __noinline int record_decision(u32 pid, const struct placement *pl __arg_nonnull, u32 flags,
				      u32 nr)
{
	struct cpu_ctx *here = element(at_cpu_ctxs, struct cpu_ctx, pl->this_cpu);
	u32 *share = element(at_warm_share, u32, 0);
	struct rec_decision d = {};

	if (!here || !share)
		return 0;
	d.prev_cpu = pl->prev_cpu;
	d.this_cpu = pl->this_cpu;
	d.flags = flags;
	d.candidates = nr;
	d.burst = word_of(pl->burst);
	d.soon = word_of(pl->scan.soon_ns);
	d.leave = word_of(pl->leave_ns);
	d.share = *share;
	d.exit = word_of(here->idle_exit);
	d.exit_age = word_of(elapsed(here->idle_exit_at, pl->now));
	d.active = pl->nr_active;
	record(FL_TRACE_weigh, pid, *(const u64 *)&d);
	if (flags & REC_DECIDES_AGAIN)
		return 0;
	return record_words(pid, (const u64 *)&d + 1, sizeof(d) / sizeof(u64) - 1);
}

#endif /* __FREQLOCK_WEIGHED_BPF_H */
