// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes recorded decisions again. The files of the scheduler that make them are part of this one,
 * so that their static functions and variables are at hand.
 */
#include "../freq.bpf.c"
#include "../choose.bpf.c"

#include "replay.h"

/* Any time will do: ages are taken from it. */
#define NOW (1ULL << 50)

struct cpu_ctx cpu_ctxs[FL_MAX_CPUS];
struct cpu_stats cpu_stats[FL_MAX_CPUS];
volatile struct tunables tunables;
volatile struct fl_policy policies[FL_MAX_POLICIES];
volatile struct cpu_topo cpu_topo[FL_MAX_CPUS];
volatile u32 nr_present, freq_source, turbo[FL_MAX_CPUS];
volatile bool smt_present;
const volatile bool isolates, partial, tickless, tickless_cpus[FL_MAX_CPUS];
u32 warm_share;

/* A task of a higher class, and an idle task. */
static struct task_struct higher = { .prio = 0, .pid = 1 }, idle = { .prio = 120 };
static struct rq rqs[FL_MAX_CPUS];

struct rq *host_rq(s32 cpu)
{
	return &rqs[cpu & (FL_MAX_CPUS - 1)];
}

void replay_on(const struct replay_machine *machine)
{
	u32 cpu;

	for (cpu = 0; cpu < FL_MAX_CPUS; cpu++) {
		*(struct cpu_topo *)&cpu_topo[cpu] = machine->topo[cpu];
		turbo[cpu] = machine->turbo[cpu];
	}
	freq_source = machine->source;
	smt_present = machine->smt;
}

/* The CPU is as it was for the decision. */
static void restore(const struct rec_candidate *c)
{
	struct cpu_ctx *cctx = fl_cpu(c->cpu);
	struct rent *rent = rent_of(c->cpu);

	*cctx = (struct cpu_ctx){
		.running_since = c->flags & REC_CANDIDATE_RUNS ? NOW - c->running_age : 0,
		.running_rest = c->rest,
		.running_away = c->away,
		.running_slice = c->slice,
		.leave_at = c->flags & REC_CANDIDATE_LEAVES ? NOW + c->leave : 0,
		.last_stop = NOW - c->stopped_age,
		.queued_work = queued_entry(c->queued, 1),
		.speed_at = NOW - c->speed_age,
		.busy_ns = c->busy,
		.busy_at = NOW - c->busy_age,
		.speed = c->speed,
		.idle_exit = c->exit,
		.idle_exit_at = NOW - c->exit_age,
		.overrun = c->overrun,
		.overrun_at = NOW - c->overrun_age,
	};
	test_speed[c->cpu & (FL_MAX_CPUS - 1)] = longer(c->given, 1);
	host_rq(c->cpu)->curr = c->flags & REC_CANDIDATE_TAKEN ? &higher : &idle;
	*rent = (struct rent){ .ns = c->rent, .at = NOW - c->rent_age, .life = c->rent_life };
}

/* So is the other thread of its core, of which less is known than of a candidate. */
static void restore_sibling(const struct rec_candidate *c)
{
	s32 sibling = fl_topo(c->cpu)->sibling;

	if (sibling >= 0)
		fl_cpu(sibling)->running_since = c->flags & REC_CANDIDATE_SHARED ? NOW : 0;
}

/* What the candidate costs by itself. */
static void cost_of(struct placement *pl, const struct rec_candidate *c, struct replay_cost *cost)
{
	bool is_idle = c->flags & REC_CANDIDATE_IDLE;
	const struct candidate *first = pl->choice.first;

	pl->choice.first[false].cpu = pl->choice.first[true].cpu = -1;
	fl_consider(pl, c->cpu, is_idle, c->why);
	if (first->cpu < 0)
		first++;
	if (first->cpu < 0)
		return;
	*cost = (struct replay_cost){ .cpu = first->cpu,
				      .idle = is_idle,
				      .wait = first->wait,
				      .run = first->run,
				      .migration = first->migration,
				      .displaced = first->displaced,
				      .others = first->others,
				      .finish = first->finish };
}

void replay_decision(const struct tunables *knobs, const struct rec_decision *d,
		     const struct rec_candidate *candidates, struct replay_result *result)
{
	struct placement pl = {
		.now = NOW,
		.prev_cpu = d->prev_cpu,
		.this_cpu = d->this_cpu,
		.leave_ns = d->leave == (u32)-1 ? FL_NONE : d->leave,
		.fork = d->flags & REC_DECIDES_FORK,
		.from_task = d->flags & REC_DECIDES_FROM_TASK,
		.nr_active = d->active,
		.any_idle = d->flags & REC_DECIDES_ANY_IDLE,
		.burst = d->burst,
		.scan = { .soon_ns = d->soon, .set_only = d->flags & REC_DECIDES_SET },
	};
	struct cpu_ctx *here = fl_cpu(d->this_cpu);
	u64 bought = cpu_stats[0].count[FL_STAT_auto_bought];
	u32 i;

	*(struct tunables *)&tunables = *knobs;
	warm_share = d->share;
	here->idle_exit = d->exit;
	here->idle_exit_at = NOW - d->exit_age;
	for (i = 0; i < AUTO_PLACES; i++) {
		pl.choice.cpu[i] = -1;
		result->cost[i].cpu = -1;
	}
	for (i = 0; i < d->candidates; i++)
		restore_sibling(&candidates[i]);
	for (i = 0; i < d->candidates; i++)
		restore(&candidates[i]);
	for (i = 0; i < d->candidates; i++) {
		const struct rec_candidate *c = &candidates[i];
		u32 why = in_range(c->why, AUTO_PLACES);

		pl.choice.cpu[why] = c->cpu;
		pl.choice.idle[why] = c->flags & REC_CANDIDATE_IDLE;
		cost_of(&pl, c, &result->cost[why]);
	}
	if (d->flags & REC_DECIDES_BACK) {
		result->best = prev_wins(&pl) ? pl.prev_cpu : -1;
		result->why = AUTO_PREV;
		result->bought = false;
		return;
	}
	fl_choose(&pl);
	result->best = pl.choice.best;
	result->why = pl.choice.best_why;
	result->bought = cpu_stats[0].count[FL_STAT_auto_bought] != bought;
}

void replay_idle(const struct tunables *knobs, const struct rec_candidate *c,
		 struct replay_idle *idle)
{
	*(struct tunables *)&tunables = *knobs;
	restore_sibling(c);
	restore(c);
	idle->speed = fl_speed(c->cpu, NOW);
	idle->back = last_is_back(fl_cpu(c->cpu), NOW);
}

u32 replay_speed(const struct tunables *knobs, u32 speed, u64 busy, u64 idle)
{
	struct speed_model m;

	*(struct tunables *)&tunables = *knobs;
	model_of(&m);
	return speed_fall(speed_rise(speed, busy, &m), idle, &m);
}

u64 replay_average(u64 known, u64 sample)
{
	return learn_average(known, sample);
}
