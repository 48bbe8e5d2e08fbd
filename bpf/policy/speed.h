/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How fast a CPU is by how recently it was busy: the recency model, for
 * machines that do not report it. Speed rises along a straight line while the CPU is
 * busy, and falls along one once it has been idle for a while (Gouicem et al., "Fewer Cores, More
 * Hertz", USENIX ATC 2020, section 2: 29 ms from
 * 1.25 to 3.00 GHz under load; the fall is an assumption, see the knob decay_us).
 *
 * Speeds are fixed point, SPEED_ONE for full speed, so that bursts of a
 * microsecond still add up.
 */
#ifndef __FREQLOCK_POLICY_SPEED_H
#define __FREQLOCK_POLICY_SPEED_H

#include "../intf.h"

#define SPEED_SHIFT 10
#define SPEED_ONE   ((u32)FL_FULL_SPEED << SPEED_SHIFT)

/* Constants of the model; all from knobs. */
struct speed_model {
	u64 ramp_ns;  /* busy time from floor to full */
	u64 hold_ns;  /* idle time before it falls */
	u64 decay_ns; /* idle time from full to floor, then */
	u32 floor;    /* 0..1024 */
};

/* True if @source has @flag in the table. */
static inline bool source_has(u32 source, enum fl_source_flags flag)
{
	u32 those = 0;

#define SOURCE(name, cli, flags, help) those |= ((flags) & flag) ? 1U << FL_FREQ_##name : 0;
#include "../sources.h"
#undef SOURCE
	return those >> (source & 31) & 1;
}

/* Change over @ns when the whole span takes @full_ns. */
static inline u32 speed_step(u32 span, u64 ns, u64 full_ns)
{
	if (ns >= full_ns)
		return span;
	/* span < 2^20, and ns < full_ns, which knobs keep under 2^34 */
	return (u32)((u64)span * ns / full_ns);
}

static inline u32 speed_floor(const struct speed_model *m)
{
	u32 floor = m->floor << SPEED_SHIFT;

	return floor < SPEED_ONE ? floor : SPEED_ONE;
}

/* Speed after @busy_ns of work, from @speed. */
static inline u32 speed_rise(u32 speed, u64 busy_ns, const struct speed_model *m)
{
	u32 floor = speed_floor(m), step;

	if (speed < floor)
		speed = floor;
	step = speed_step(SPEED_ONE - floor, busy_ns, m->ramp_ns);
	return speed + step < SPEED_ONE ? speed + step : SPEED_ONE;
}

/* Speed after @idle_ns without any work, from @speed: a period's whole length so far. */
static inline u32 speed_fall(u32 speed, u64 idle_ns, const struct speed_model *m)
{
	u32 floor = speed_floor(m), step;

	if (speed <= floor)
		return floor;
	if (idle_ns <= m->hold_ns)
		return speed;
	step = speed_step(SPEED_ONE - floor, idle_ns - m->hold_ns, m->decay_ns);
	return speed - floor > step ? speed - step : floor;
}

/* Speed 0..1024 of a CPU of @capacity that shares its core or does not. */
static inline u32 speed_effective(u32 speed, u32 capacity, bool sibling_busy, u32 smt_share)
{
	u64 s = (u64)speed * capacity >> (SPEED_SHIFT + 10);

	if (sibling_busy)
		s = s * smt_share / FL_FULL_SPEED;
	return s ? (u32)s : 1;
}

/*
 * Utilisation, in the fixed point of speeds so that short bursts still add up,
 * after @ns busy or idle; half of the way in UTIL_NS.
 */
#define UTIL_NS (32ULL * 1000 * 1000)

static inline u32 util_update(u32 util, u64 ns, bool busy)
{
	u64 target = busy ? SPEED_ONE : 0;
	u64 share = ns >= 2 * UTIL_NS ? SPEED_ONE : ns * SPEED_ONE / (2 * UTIL_NS);

	return (u32)((util * (SPEED_ONE - share) + target * share) / SPEED_ONE);
}

/* Speed 0..1024 to ask of schedutil for @util: a quarter above, as its own rule has it. */
static inline u32 util_request(u32 util)
{
	u32 want = (util + util / 4) >> SPEED_SHIFT;

	return want < FL_FULL_SPEED ? want : FL_FULL_SPEED;
}

/*
 * Speed by counters: cycles done per cycle of a clock that does not change its frequency
 * (APERF and MPERF of x86: 1 at the nominal frequency, more with turbo).
 */
#define RATIO_SHIFT 20
#define RATIO_ONE   (1ULL << RATIO_SHIFT)
/* A shorter interval gives a ratio of rounding errors. */
#define RATIO_LEAST_CYCLES 10000
/* Two days at 5 GHz; what is more comes from counters that were reset. */
#define RATIO_MOST_BITS 44

struct speed_counters {
	u64 aperf;
	u64 mperf;
};

/* The ratio since the last sample, 0 if it is not known; this is the last one then. */
static inline u64 counters_ratio(struct speed_counters *last, u64 aperf, u64 mperf)
{
	u64 da = aperf - last->aperf, dm = mperf - last->mperf;

	if (dm < RATIO_LEAST_CYCLES)
		return 0;
	last->aperf = aperf;
	last->mperf = mperf;
	if (da >> RATIO_MOST_BITS || dm >> RATIO_MOST_BITS)
		return 0;
	return (da << RATIO_SHIFT) / dm;
}

/*
 * Full speed is the highest recent ratio: of what a machine once showed, by a sample that
 * read too high or with a turbo that it has no more, each RATIO_FORGETS_NS take a
 * 64th, half in seven minutes, down to the nominal frequency.
 */
#define RATIO_FORGETS_NS    (10ULL * 1000 * 1000 * 1000)
#define RATIO_FORGETS_SHIFT 6
#define RATIO_FORGETS_MOST  64

struct ratio_top {
	u64 ratio;
	u64 at; /* when it was seen, or forgot last */
};

/* The top, with @ratio seen at @now. */
static inline u64 ratio_top_update(struct ratio_top *top, u64 ratio, u64 now)
{
	/* Another CPU's clock may be ahead by a little. */
	u64 steps = now > top->at ? (now - top->at) / RATIO_FORGETS_NS : 0, old = top->ratio;
	u32 i;

	for (i = 0; i < RATIO_FORGETS_MOST && i < steps; i++)
		old -= old >> RATIO_FORGETS_SHIFT;
	if (steps && old < RATIO_ONE && top->ratio >= RATIO_ONE)
		old = RATIO_ONE;
	if (steps || ratio >= old) {
		top->at = now;
		top->ratio = ratio > old ? ratio : old;
	}
	return top->ratio;
}

#endif /* __FREQLOCK_POLICY_SPEED_H */
