/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a cgroup's tasks weigh, so that CPU time is shared along the tree of cgroups by
 * cpu.weight. Weights are flattened: a task's weight is its own by nice value, times the scale of
 * its cgroup, which is worked out anew some dozens of times a second.
 *
 * From the root down, what a cgroup has is shared by its members, its children and its own tasks,
 * by max-min fairness (Bertsekas and Gallager, Data Networks, section 6.5.2): who wanted less
 * than its part by its weight has what it wanted, and the others share the rest. The root has
 * what all used. So what a group leaves stays with those nearest to it in the tree, which weights
 * alone, multiplied along the path, would give to all. A task weighs what its cgroup's own tasks
 * have, over their weights, so that by weight each runs at the rate that makes up the parts.
 *
 * Where CPUs differ in what waits there, and tasks are bound to them, this is not exact. So what
 * each ran since the pass before is held against its part of what all members ran, and an integral
 * controller corrects the weight. Nothing of that fades: what one misses is what others have too
 * much of, in each pass, however long each waits for a turn. That all of them ran less or more than
 * was theirs is corrected above.
 *
 * A scale is relative to the mean of all tasks: with one cgroup alone it is 1, and margins and
 * bounds in virtual time mean what they do without cgroups.
 */
#ifndef __FREQLOCK_POLICY_CGROUP_H
#define __FREQLOCK_POLICY_CGROUP_H

#include "../intf.h"
#include "deadline.h"
#include "verifier.h"

enum {
	CGROUP_PERIOD_SHIFT = 24,    /* 2^24 ns, 17 ms, from the first sums to a pass */
	CGROUP_UNIT_SHIFT = 26,      /* of what a unit of weight is worth */
	CGROUP_MEAN_SHIFT = 12,      /* bits of that which sums leave out */
	CGROUP_CLAIM_SHIFT = 6,      /* bits of tasks' number which the mean leaves out */
	CGROUP_SLEW_SHIFT = 10,      /* ... and that of scales */
	CGROUP_ONE_SHIFT = 16,       /* a correction or a scale of 1 */
	CGROUP_ACTIVE = 1024,        /* was active all the time */
	CGROUP_WEIGHT_MAX = 1 << 18, /* kernel/sched/fair.c, MAX_SHARES */
	CGROUP_FADE_SHIFT = 27,      /* sums fade in 2^27 ns, 134 ms */
	CGROUP_GONE_NS = 1 << 15,    /* less than this of it is nothing */
	CGROUP_CORRECT_SHIFT = 2,    /* a correction changes by this part of what is missing, ... */
	CGROUP_BURSTS = 8,           /* ... with that many bursts in that time, ... */
	CGROUP_SLOW_MOST = 6,        /* ... or 2^6 times less, ... */
	CGROUP_CORRECT_MOST = 3,     /* ... between 2^-3 and 2^3 */
	CGROUP_CONTENT_SHIFT = 3,    /* ... and as slowly where more is not wanted */
	CGROUP_ROUNDS = 3,           /* of asking who is content */
	CGROUP_WAITS_SHIFT = 4,      /* below this part of what it runs, a wait is none, ... */
	CGROUP_WORTH_SHIFT = 6,      /* ... nor is one below this part of what the pool has */
	CGROUP_STEADY_SHIFT = 5,     /* a scale stays unless it is off by this part */
};

#define CGROUP_ONE (1ULL << CGROUP_ONE_SHIFT)

/* A new cgroup's scale before any pass, by what a sibling of default weight has. */
#define CGROUP_BEGINS_LEAST (CGROUP_ONE >> 7)
#define CGROUP_BEGINS_MOST  (CGROUP_ONE << 7)

/*
 * A cgroup's weight, 1024 for the default of 100, by task_group::shares, which has 10 bits more
 * on 64-bit machines, and that of its tasks' entity in the kernel's own class if it is
 * cpu.idle.
 */
static inline u64 cgroup_weight(u64 shares, bool idle)
{
	if (idle)
		return WEIGHT_IDLE;
	return lesser(greater(shares >> 10, 2), CGROUP_WEIGHT_MAX);
}

/*
 * The correction of a member that @has so much in the time in which sums fade, and runs for a
 * @burst at once, ns, changes 2^slowness times as slowly: a burst is not to change it by much.
 */
static inline u32 cgroup_slowness(u64 burst, u64 has)
{
	u64 times = burst / greater(has / CGROUP_BURSTS, 1);

	return times ? lesser(highest_bit(times) + 1, CGROUP_SLOW_MOST) : 0;
}

/*
 * For how long, ns, anything may have run in a pass @now after one at @passed, where the first
 * CPU to add up time since then had begun to run at @since. One that always runs adds up in each
 * period: one that began later than in the next came after a time in which all were idle, which
 * says nothing of who wants to run.
 */
static inline u64 cgroup_span(u64 passed, u64 since, u64 now)
{
	if (since >> CGROUP_PERIOD_SHIFT <= (passed >> CGROUP_PERIOD_SHIFT) + 1)
		since = passed;
	return elapsed(since, now);
}

/* A @sum of ns that fades, @ns after it was added to last, with @more. */
static inline u64 cgroup_faded(u64 sum, u64 ns, u64 more)
{
	const u64 whole = 1ULL << CGROUP_FADE_SHIFT, most = 1ULL << 40;
	u64 left = whole - lesser(ns, whole);

	sum = (sum >> 7) * (left >> 10) >> (CGROUP_FADE_SHIFT - 17);
	return lesser(sum + lesser(more, most), most);
}

/*
 * A fading @sum over the @time that faded with it, as it will be when that is whole: so
 * the rates of a cgroup that begins are right from its first pass on.
 */
static inline u64 cgroup_mature(u64 sum, u64 time)
{
	u64 most = 1ULL << 46;

	return (lesser(sum, most) << (CGROUP_FADE_SHIFT - 10)) / greater(time >> 10, 1);
}

/* What @ns add to a cgroup's load, ns by weight, whose runnable tasks weigh so much. */
static inline u64 cgroup_load(u64 weight, u64 ns)
{
	return lesser(weight, 1ULL << 30) * lesser(ns, 1ULL << 32) / WEIGHT_NICE_0;
}

/* The part of the time for which something was @runnable, ns over all its tasks: 1..1024. */
static inline u64 cgroup_active(u64 runnable)
{
	u64 active = runnable >> (CGROUP_FADE_SHIFT - 10);

	return lesser(greater(active, 1), CGROUP_ACTIVE);
}

/*
 * The claim of a cgroup's own tasks: their weight in the mean, by @load, the ns for which each was
 * runnable times its weight over that of nice 0. With the same 10 bits more as the claims of
 * cgroups, weight * active().
 */
static inline u64 cgroup_claim(u64 load)
{
	return load >> (CGROUP_FADE_SHIFT - 20);
}

/*
 * The same for the @active time, ns, in which one of them was: the weight of those that run at
 * once. Of tasks that were never seen to, as they sleep soon again, one of nice 0.
 */
static inline u64 cgroup_right(u64 claim, u64 active)
{
	return claim ? claim * CGROUP_ACTIVE / cgroup_active(active) :
		       (u64)WEIGHT_NICE_0 * CGROUP_ACTIVE;
}

/* @amount, below 2^40, times @part over @whole, which is at least as much. */
static inline u64 cgroup_part(u64 amount, u64 part, u64 whole)
{
	u32 shift = whole >> 24 ? highest_bit(whole) - 23 : 0;

	return amount * (part >> shift) / greater(whole >> shift, 1);
}

/* Own tasks of a cgroup, or a cgroup below it: each has a part of what that one has. */
struct cgroup_member {
	u64 used, runnable; /* ns, fading */
	u64 ran, wanted;    /* ns, the same since the pass before */
	u64 right;          /* by its weight */
	u64 has;            /* its part, ns of the same time */
	u64 rate;           /* the same, were it always active */
	u64 correction;
	bool content; /* it wants no more than its part */
	bool gone;    /* nothing of it wanted to run since the pass before */
};

/* What the members of a cgroup share. */
struct cgroup_pool {
	u64 has, rate; /* as of a member */
	u64 lift;      /* the corrections from here up */
	u64 rights;
	u64 content; /* wanted by those that are content, ns */
	u64 open;    /* rights of the others, ... */
	s64 ran;     /* ... and what is theirs of what ran since the pass before, ns */
};

/*
 * What one that is gone used is still in what the pool has. It keeps that: else the others seemed
 * to have its CPUs as well, and those of small weight had what the others then could not use.
 */
static inline void cgroup_join(struct cgroup_member *m, struct cgroup_pool *pool)
{
	m->gone = !m->wanted;
	m->content = m->gone;
	pool->rights += m->right;
	if (m->gone) {
		pool->content += m->used;
		return;
	}
	pool->open += m->right;
	pool->ran += m->ran;
}

/* What @m may have of what the content leave. */
static inline u64 cgroup_open_part(const struct cgroup_member *m, const struct cgroup_pool *pool)
{
	return cgroup_part(elapsed(pool->content, pool->has), m->right, pool->open);
}

/*
 * After all have joined. Who wants less than its part has that, and leaves more to the others: of
 * these some may then be content, and so all are asked CGROUP_ROUNDS times.
 */
static inline void cgroup_ask(struct cgroup_member *m, struct cgroup_pool *pool)
{
	if (m->content || m->runnable > cgroup_open_part(m, pool))
		return;
	m->content = true;
	pool->content += m->runnable;
	pool->open -= m->right;
	pool->ran -= m->wanted;
}

/*
 * A @correction of one that misses so much, ns, and @has so much in 2^slowness times that in which
 * sums fade. A burst is no more than one part in CGROUP_BURSTS of that. What is more comes of a
 * start, or of a change, and is not made up for.
 */
static inline u64 cgroup_corrected(u64 correction, s64 missing, u64 has)
{
	u64 off = lesser(missing < 0 ? -missing : missing, has / CGROUP_BURSTS);
	u64 change = cgroup_part(correction, off, greater(has, 1)) >> CGROUP_CORRECT_SHIFT;

	return missing < 0 ? greater(correction - change, CGROUP_ONE >> CGROUP_CORRECT_MOST) :
			     lesser(correction + change, CGROUP_ONE << CGROUP_CORRECT_MOST);
}

/*
 * The same of one that is content. If it hardly waits it goes back to 1, so that it has no more
 * than its due as soon as it wants more.
 */
static inline u64 cgroup_corrected_content(const struct cgroup_member *m,
					   const struct cgroup_pool *pool)
{
	u64 wait = elapsed(m->used, m->runnable), c = m->correction;

	if (wait > greater(m->used >> CGROUP_WAITS_SHIFT, pool->has >> CGROUP_WORTH_SHIFT))
		return cgroup_corrected(c, wait, m->runnable << CGROUP_CONTENT_SHIFT);
	if (c > CGROUP_ONE)
		return c - ((c - CGROUP_ONE) >> CGROUP_CONTENT_SHIFT >> CGROUP_CORRECT_SHIFT);
	return c + ((CGROUP_ONE - c) >> CGROUP_CONTENT_SHIFT >> CGROUP_CORRECT_SHIFT);
}

/* After all have asked. Tasks of @m run for a @burst at once, ns. */
static inline void cgroup_settle(struct cgroup_member *m, const struct cgroup_pool *pool, u64 burst)
{
	u64 due;

	if (m->content) {
		m->has = m->gone ? m->used : m->runnable;
		/* While a sleeper is active, it is one of all. */
		m->rate = greater(m->has, cgroup_part(pool->rate, m->right, pool->rights));
		if (!m->gone)
			m->correction = cgroup_corrected_content(m, pool);
		return;
	}
	m->has = cgroup_open_part(m, pool);
	m->rate = m->has;
	due = cgroup_part(pool->ran < 0 ? -pool->ran : pool->ran, m->right, pool->open);
	m->correction = cgroup_corrected(m->correction,
					 (s64)(pool->ran < 0 ? -due : due) - (s64)m->ran,
					 m->has << cgroup_slowness(burst, m->has));
}

/* The corrections from the member @m up, within the bounds of one. */
static inline u64 cgroup_lift(const struct cgroup_member *m, const struct cgroup_pool *pool)
{
	u64 lift = pool->lift * m->correction >> CGROUP_ONE_SHIFT;

	return lesser(greater(lift, CGROUP_ONE >> CGROUP_CORRECT_MOST),
		      CGROUP_ONE << CGROUP_CORRECT_MOST);
}

/* For how long the @own tasks, alike, run one after another, each for a @slice, ns. */
static inline u64 cgroup_burst(const struct cgroup_member *own, u64 slice)
{
	return lesser(own->right, 1ULL << 38) * lesser(slice, 1ULL << 24) >> 20;
}

/* What a unit of weight is worth among the @own tasks of a cgroup. */
static inline u64 cgroup_unit(const struct cgroup_member *own, const struct cgroup_pool *pool)
{
	u64 rate = lesser(own->rate, 1ULL << 40) * cgroup_lift(own, pool) >> CGROUP_ONE_SHIFT;

	return (lesser(rate, 1ULL << 37) << CGROUP_UNIT_SHIFT) / greater(own->right, 1);
}

/*
 * What a cgroup adds to the sum for the mean that has so many own @tasks, by claim() of the time in
 * which they are runnable, and this @unit. Not by their weights: a moment of a task of nice -20 is
 * not to say what those weigh that want the CPUs all the time.
 */
static inline u64 cgroup_mass(u64 tasks, u64 unit)
{
	return tasks * (lesser(unit, 1ULL << 47) >> CGROUP_MEAN_SHIFT) >> 20;
}

/*
 * What a unit of weight is worth in the mean, by the sums of mass() and of own @tasks over all
 * cgroups. One that is always runnable counts 2^20: some bits of that are needed, or a cgroup
 * alone had a scale of 3/4 with 3.9 of them.
 */
static inline u64 cgroup_mean(u64 mass, u64 tasks)
{
	return (lesser(mass, 1ULL << 49) << (20 - CGROUP_CLAIM_SHIFT)) /
		       greater(tasks >> CGROUP_CLAIM_SHIFT, 1)
	       << CGROUP_MEAN_SHIFT;
}

/* What a cgroup of this @scale adds to the sum for the mean of scales, 2^54 at most. */
static inline u64 cgroup_mass_before(u64 tasks, u64 scale)
{
	return (tasks >> CGROUP_SLEW_SHIFT) * lesser(scale, 1ULL << 24);
}

/*
 * The @mean by which scales are relative, in place of that of all, so that their own mean is as it
 * was before, by the sum @before over all @tasks, or an eighth nearer to 1. Virtual time that
 * tasks were charged counts by the scales of then: if all scales changed at once, who had a turn
 * just before would wait for, or run for, as many turns. 0 where next to nothing ran: that says
 * nothing of scales.
 */
static inline u64 cgroup_slewed(u64 mean, u64 before, u64 tasks)
{
	u64 whole = tasks >> CGROUP_SLEW_SHIFT, scale = before / greater(whole, 1);
	u64 target = lesser(greater(CGROUP_ONE, scale - scale / 8), scale + scale / 8);

	if (!mean || !whole)
		return 0;
	return greater((lesser(mean, 1ULL << 47) << CGROUP_ONE_SHIFT) / greater(target, 1), 1);
}

/* A scale, by its @unit and the @mean of all. */
static inline u64 cgroup_scale(u64 unit, u64 mean)
{
	return greater((lesser(unit, 1ULL << 47) << CGROUP_ONE_SHIFT) / greater(mean, 1), 1);
}

/* The scale of a new cgroup of default weight with a task of nice 0, whose siblings share @pool. */
static inline u64 cgroup_newcomer(const struct cgroup_pool *pool, u64 mean)
{
	struct cgroup_member m = {
		.rate = pool->rate,
		.right = pool->rights,
		.correction = CGROUP_ONE,
	};

	return pool->rights ? cgroup_scale(cgroup_unit(&m, pool), mean) : CGROUP_ONE;
}

/* The same of one of this @weight, where the scale of one of the default weight is @newcomer. */
static inline u64 cgroup_begin(u64 weight, u64 newcomer)
{
	return greater(weight * lesser(newcomer, 1ULL << 40) / WEIGHT_NICE_0, 1);
}

/*
 * The @scale in force, or what is due. Where little changes, all tasks of a cgroup are charged
 * at one weight from turn to turn, and take turns in order.
 */
static inline u64 cgroup_steady(u64 scale, u64 due)
{
	u64 off = greater(scale, due) - lesser(scale, due);

	return off > scale >> CGROUP_STEADY_SHIFT ? due : scale;
}

/* A task's @weight in a cgroup of @scale, rounded: small weights are a few units. */
static inline u64 cgroup_scaled(u64 weight, u64 scale)
{
	u64 scaled = weight * shorter(scale, 1ULL << 40) + CGROUP_ONE / 2;

	return longer(scaled >> CGROUP_ONE_SHIFT, 1);
}

#endif /* __FREQLOCK_POLICY_CGROUP_H */
