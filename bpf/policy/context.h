/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which context a task is in: the first whose rule it fits, by its name, its
 * cgroup and its user.
 *
 * One word, the version, says what is in force: how many contexts there are,
 * in which of two banks of the tables they stand, and a count of changes. The agent
 * writes new contexts into the bank that is not in use, and then the version.
 */
#ifndef __FREQLOCK_POLICY_CONTEXT_H
#define __FREQLOCK_POLICY_CONTEXT_H

#include "../intf.h"
#include "verifier.h"

enum {
	/* More than any text and pattern take that are not made to take long. */
	GLOB_STEPS = 4096,
};

static inline u32 version_bank(u32 version)
{
	return version & ((1U << FL_VERSION_NR) - 1);
}

/* Number of contexts. */
static inline u32 version_nr(u32 version)
{
	return (version & ((1U << FL_VERSION_CHANGES) - 1)) >> FL_VERSION_NR;
}

/* Where the policy of context @number stands, counted from 1; 0 is of none. */
static inline u32 policy_at(u32 version, u32 number)
{
	return version_bank(version) * (FL_MAX_POLICIES / 2) + number;
}

/* Where the rule of context @i stands, counted from 0. */
static inline u32 rule_at(u32 version, u32 i)
{
	return version_bank(version) * FL_MAX_CONTEXTS + i;
}

/* How far a pattern and a text have been compared. */
struct glob {
	u32 p;
	u32 t;
	u32 star_p; /* after the last star, 0 none yet, */
	u32 star_t; /* and what of the text that leaves to the rest */
	bool fits;
};

/*
 * True if @text fits @pattern, both with a 0 at the end. A star stands for any number
 * of characters and a question mark for one, but neither for @stop; the text may go on
 * after the pattern with @stop. So with '/' a path fits the pattern of a folder above
 * it; 0 is for names.
 *
 * Only the last star is ever given more: what came before it fits already, and
 * could not fit better. That takes at most as many steps as pattern times text.
 */
static inline bool glob_fits(struct glob *g, const u8 *pattern, const u8 *text, u8 stop)
{
	u32 i;

	g->p = g->t = g->star_p = g->star_t = 0;
	g->fits = false;
	policy_for(i, GLOB_STEPS)
	{
		u8 want = pattern[in_range(g->p, FL_GLOB)];
		u8 c = text[in_range(g->t, FL_GLOB_TEXT)];

		if (want == '*') {
			g->p++;
			g->star_p = g->p;
			g->star_t = g->t;
			continue;
		}
		if (!want && (!c || c == stop)) {
			g->fits = true;
			break;
		}
		if (c && (want == c || (want == '?' && c != stop))) {
			g->p++;
			g->t++;
			continue;
		}
		c = text[in_range(g->star_t, FL_GLOB_TEXT)];
		if (!g->star_p || !c || c == stop)
			break;
		g->p = g->star_p;
		g->star_t++;
		g->t = g->star_t;
	}
	return g->fits;
}

/* @weight within what a context allows; where the limits contradict, the upper one counts. */
static inline u64 weight_within(u64 weight, u64 min, u64 max)
{
	return lesser(greater(weight, min), max);
}

#endif /* __FREQLOCK_POLICY_CONTEXT_H */
