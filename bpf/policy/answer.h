/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who answers whom. A task that wakes another one and sleeps until that one wakes it waits for it,
 * whatever is between them: a pipe, a socket, an eventfd. It is then in the wait-for graph
 * (graph.h) as if the other one held a lock.
 *
 * Seen are wake-ups alone, and a request and its answer both are one. The client is the one that
 * asks first. From then on a wake-up is an answer if the wakee has asked the waker, or if the waker
 * answered it before and not the other way round: the request may have found the waker awake, and
 * then woke nobody. So a task that wakes another one again and again is not known to answer it:
 * it has to be asked.
 *
 * One that a timer woke, and then wakes another task, is taken to ask whatever was known before: of
 * pairs that were busy when the scheduler came, the one seen first may be the server. So
 * nobody is known to wait for a server that sleeps for a while before it answers.
 */
#ifndef __FREQLOCK_POLICY_ANSWER_H
#define __FREQLOCK_POLICY_ANSWER_H

#include "../intf.h"
#include "verifier.h"

enum {
	/* Tasks that answer one and are remembered. */
	ANSWERERS = 2,
	/* Answers of each that are counted. */
	ANSWERS_MAX = 15,
	/* After so many more answers than wrong guesses a task waits for it without a request. */
	ANSWERS_USUAL = 4,
};

/* Of a task; tasks are called by fl_self(), which is never 0. */
struct answers {
	u64 asked;           /* has been asked and has not answered yet, 0 none */
	u64 by[ANSWERERS];   /* those that answer it, 0 none */
	u8 nr[ANSWERERS];    /* how often, up to ANSWERS_MAX */
	u8 level[ANSWERERS]; /* their levels (graph.h) at the last answer */
	u8 timed;            /* it sleeps, and a timer may wake it; awake: one did */
};

/* What a task waits for as it falls asleep. */
struct awaited {
	u64 self;   /* 0 nothing known */
	bool asked; /* it was asked; else it is the usual one */
};

/*
 * True if something follows from wake-ups between tasks of these levels. @inherits: others
 * may wait for one of them already, and so for whom that one waits.
 */
static inline bool answer_matters(u32 waker, u32 wakee, bool inherits)
{
	return waker != wakee || inherits;
}

/* How often @self has answered the task of @a, as far as that is known. */
static inline u32 answers_by(const struct answers *a, u64 self)
{
	u32 i, nr = 0;

	for (i = 0; i < ANSWERERS; i++) {
		if (a->by[i] == self)
			nr = a->nr[i];
	}
	return nr;
}

/*
 * @self, of @level, has answered. One that is not known takes a count from the rarest, or at 0 its
 * place.
 */
static inline void answers_add(struct answers *a, u64 self, u32 level)
{
	u32 i, rarest = 0;

	for (i = 0; i < ANSWERERS; i++) {
		if (a->by[i] == self) {
			if (a->nr[i] < ANSWERS_MAX)
				a->nr[i]++;
			a->level[i] = level;
			return;
		}
		if (a->nr[i] < a->nr[rarest])
			rarest = i;
	}
	if (a->nr[rarest]) {
		a->nr[rarest]--;
		return;
	}
	a->by[rarest] = self;
	a->nr[rarest] = 1;
	a->level[rarest] = level;
}

/* @self does not answer the task of @a as it was thought to. */
static inline void answers_wrong(struct answers *a, u64 self)
{
	u32 i;

	for (i = 0; i < ANSWERERS; i++) {
		if (a->by[i] == self)
			a->nr[i] /= 2;
	}
	if (a->asked == self)
		a->asked = 0;
}

/* The task of @by, @self, wakes that of @of, @wakee: true if it answers it, else it asks it. */
static inline bool answer_is(const struct answers *by, u64 self, const struct answers *of,
			     u64 wakee)
{
	if (by->timed)
		return false;
	return of->asked == self || (answers_by(of, self) && !answers_by(by, wakee));
}

/*
 * Whom the task of @a waits for that falls asleep, of those with a lesser level than @level, its
 * own or an inherited one: the one that it has asked if that one answered before, else the one
 * that answers most often.
 */
static inline struct awaited answer_awaited(const struct answers *a, u32 level)
{
	struct awaited w = {};
	u32 i, most = ANSWERS_USUAL - 1;

	for (i = 0; i < ANSWERERS; i++) {
		if (!a->nr[i] || a->level[i] >= level)
			continue;
		if (a->by[i] == a->asked) {
			w.self = a->asked;
			w.asked = true;
			return w;
		}
		if (a->nr[i] > most) {
			most = a->nr[i];
			w.self = a->by[i];
		}
	}
	return w;
}

#endif /* __FREQLOCK_POLICY_ANSWER_H */
