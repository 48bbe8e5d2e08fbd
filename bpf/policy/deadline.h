/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Virtual deadlines: which task runs first on a CPU, and which may preempt which.
 *
 * A task's vtime is the CPU time that it received divided by its weight; its
 * virtual deadline is its vtime plus what it asks for (at most a slice) divided
 * by its weight. The earliest deadline runs first (Stoica and Abdel-Wahab,
 * "Earliest Eligible Virtual Deadline First", 1995, without the test of
 * eligibility: the clamp of lag bounds what a late comer can gain).
 */
#ifndef __FREQLOCK_POLICY_DEADLINE_H
#define __FREQLOCK_POLICY_DEADLINE_H

#include "../intf.h"
#include "verifier.h"

enum {
	WEIGHT_NICE_0 = 1024,
	WEIGHT_IDLE = 3,   /* SCHED_IDLE, as the kernel's own class has it */
	PRIO_NICE_0 = 120, /* task_struct::static_prio of nice 0 */
	NR_NICE = 40,
	REQUEST_WORTH = 8,          /* a rest below this part of a slice is not worth a turn */
	TURN_ROUNDS = 4,            /* rounds of a queue that fit into starve_ms, ... */
	TURN_LEAST_NS = 500 * 1000, /* ... down to turns of this length */
	TURN_LATE_NS = 1000 * 1000, /* most of a turn that comes for its wait alone */
	LATE_LOOKS = 8,             /* searches of each queue for such tasks in starve_ms */
	SLICE_SLACK_NS = 15 * 1000, /* a slice that has no more left is over */
	SERVED_SHIFT = 32,          /* what a task got fades in 2^32 ns */
};

/*
 * Weight of nice -20 + @i: 1024 at nice 0 and a factor of 1.25 for each step, the
 * table of sched(7)'s default class. p->scx.weight is not used: it rounds nice 19
 * from 1.46 down to 1 per cent.
 */
static inline u64 weight_of_step(u32 i)
{
	static const u32 weights[64 /* a power of two */] = {
		88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
		9548,  7620,  6100,  4904,  3906,  3121,  2501,  1991,  1586,  1277,
		1024,  820,   655,   526,   423,   335,   272,   215,   172,   137,
		110,   87,    70,    56,    45,    36,    29,    23,    18,    15,
	};

	return weights[in_range(i, 64)];
}

/* Weight of a static priority, 100..139 being nice -20..19. */
static inline u64 weight_of_prio(s32 static_prio)
{
	if (static_prio < 100)
		return weight_of_step(0);
	if (static_prio > 139)
		return weight_of_step(NR_NICE - 1);
	return weight_of_step(static_prio - 100);
}

/* Virtual time (ns at nice 0) that @ran ns of CPU time cost at @weight. */
static inline u64 vtime_charge(u64 ran, u64 weight)
{
	const u64 limit = 1ULL << 53; /* 104 days: keeps the product in 64 bits */

	/* Most tasks, and a division takes dozens of cycles. */
	if (weight == WEIGHT_NICE_0)
		return ran;
	return shorter(ran, limit) * WEIGHT_NICE_0 / longer(weight, 1);
}

/* True if virtual time @a is before @b; virtual times may wrap. */
static inline bool vtime_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/*
 * The vtime with which a task joins a CPU whose clock is at @vclock: its own, but with at
 * most @lag ns of credit for time asleep and at most @lag of debt, both at its weight. A
 * whole @slice that it ran is charged in any case, however long that is: else a
 * task that asks for long slices and sleeps for a moment after each would have them
 * for nothing.
 */
static inline u64 vtime_clamp(u64 vtime, u64 vclock, u64 lag, u64 slice, u64 weight)
{
	u64 credit = vtime_charge(lag, weight), debt = vtime_charge(longer(lag, slice), weight);

	if (vtime_before(vtime, vclock - credit))
		return vclock - credit;
	if (vtime_before(vclock + debt, vtime))
		return vclock + debt;
	return vtime;
}

/*
 * How far a task is ahead of the clock of the CPU where it fell asleep, @ahead then, after
 * that clock has @passed: a task that is ahead stays so until others have caught
 * up, asleep or not, and one that is behind stays so (the kernel's, fair.c: delayed
 * dequeue and PLACE_LAG).
 */
static inline u64 lag_at_wake(u64 ahead, u64 passed)
{
	if ((s64)ahead <= 0)
		return ahead;
	return passed < ahead ? ahead - passed : 0;
}

/* A task's vtime carried from the clock of one CPU to that of another. */
static inline u64 vtime_rebase(u64 vtime, u64 from_vclock, u64 to_vclock)
{
	return to_vclock + (vtime - from_vclock);
}

/*
 * The slice, ns, of a task that asks for one of @asked where others have @slice: no longer
 * than it may be ahead of others, @lag. Without the test of eligibility, a task
 * with short requests would run until its deadlines are as late, and then wait for
 * all of it.
 */
static inline u64 slice_granted(u64 asked, u64 slice, u64 lag)
{
	return shorter(asked, longer(slice, lag));
}

/*
 * Virtual deadline of a task that expects to run @burst ns more: short requests
 * get early deadlines, and no request is longer than a @slice.
 */
static inline u64 vtime_deadline(u64 vtime, u64 burst, u64 slice, u64 weight)
{
	return vtime + vtime_charge(burst && burst < slice ? burst : slice, weight);
}

/*
 * The deadline of a running task once it has outlived what it usually does, @rest ns (0: not
 * known), which gave it @deadline: it asks for all of its @request then.
 */
static inline u64 deadline_outlived(u64 deadline, u64 rest, u64 request, u64 weight)
{
	return rest && rest < request ? deadline + vtime_charge(request - rest, weight) : deadline;
}

/*
 * CPU time, ns, that is left of a @request after @ran ns: a preempted task
 * continues with that and keeps its deadline, as in the paper above. 0 if it is
 * over, or next to nothing is left of it: then the task asks for a @slice again.
 */
static inline u64 request_left(u64 request, u64 ran, u64 slice)
{
	u64 left = request > ran ? request - ran : 0;

	if (left > slice)
		left = slice;
	return left < slice / REQUEST_WORTH ? 0 : left;
}

/*
 * True if a slice is over that has @left ns: with next to nothing left, a timer would cost
 * more than that is worth.
 */
static inline bool slice_over(u64 left)
{
	return left <= SLICE_SLACK_NS;
}

/*
 * When the present slice of a task began that has run since @since, as if each had ended after
 * @slice, ns.
 */
static inline u64 slice_began(u64 since, u64 now, u64 slice)
{
	u64 ran = (s64)(now - since) > 0 ? now - since : 0;

	return slice ? since + ran / slice * slice : since;
}

/* True if a slice of @ns can begin and end between two ticks, @tick ns apart. */
static inline bool slice_misses_ticks(u64 ns, u64 tick)
{
	return ns + SLICE_SLACK_NS < tick;
}

/* True if a slice with @left ns ends before the next of the ticks, @tick ns apart, or 0. */
static inline bool slice_wants_timer(u64 left, u64 tick)
{
	return !tick || left < tick + SLICE_SLACK_NS;
}

/*
 * CPU time, ns, that a task gets in one turn which asked for @request, on a CPU where
 * @runnable tasks want to run: short enough for a round of them all to end well before
 * any of them @starves, ns.
 */
static inline u64 turn_length(u64 request, u64 runnable, u64 starves)
{
	u64 round = starves / TURN_ROUNDS, turn;

	if (request * runnable <= round)
		return request;
	turn = longer(round / runnable, TURN_LEAST_NS);
	return shorter(turn, request);
}

/* True if a task that waits @since is to run for that reason, whatever its deadline. */
static inline bool is_late(u64 since, u64 now, u64 starves)
{
	/* Clocks of two CPUs may differ: it may wait since a moment to come. */
	return (s64)(now - since) >= (s64)(starves / 2);
}

/*
 * Since when a task is owed a turn that stops after it @ran, and @waited since then before
 * that: a task that is preempted as soon as it runs still waits. 0 if that was a turn: half of
 * a @slice is one, however short a slice it asks for.
 */
static inline u64 owed_turn(u64 owed, u64 waited, u64 ran, u64 slice)
{
	return ran < shorter(slice, TURN_LEAST_NS) / 2 ? owed ?: waited : 0;
}

/*
 * True if the task that waits longest, @since, goes before those whose deadlines come:
 * in turns with them, so that a wakee need not wait for all of them, unless there is no
 * time left for that.
 */
static inline bool late_goes_first(u64 since, u64 now, u64 starves, bool went_last)
{
	return !went_last || (s64)(now - since) >= (s64)(starves - starves / 4);
}

/*
 * A CPU's clock, after it stood at @vclock and a task of @vtime was picked there: it
 * never goes back, and not past the vtime of the next task, @head. Each of a few
 * tasks of little weight may be ahead of the others by seconds, and a wakee is not
 * to be.
 */
static inline u64 vclock_after(u64 vclock, u64 vtime, u64 head)
{
	if (vtime_before(head, vtime))
		vtime = head;
	return vtime_before(vclock, vtime) ? vtime : vclock;
}

/* A waking task preempts if its deadline is earlier by more than @margin ns. */
static inline bool deadline_preempts(u64 wakee, u64 running, u64 margin)
{
	return vtime_before(wakee + margin, running);
}

/*
 * CPU time, ns, that a task of @weight has from the beginning of its turn before one of
 * @wakee_weight that wakes up may preempt it: @each for every task on the CPU, so that with
 * many that come and go it still has its part, and no more than its @slice. What this costs
 * the wakee weighs as much as what it is worth to the other: in proportion to the weights.
 * Linux's own protects 0.7 ms whatever the weights (fair.c, protect_slice()).
 */
static inline u64 protected_ns(u64 each, u64 nr, u64 weight, u64 wakee_weight, u64 slice)
{
	u64 ns = shorter(each * nr, slice);

	return weight < wakee_weight ? ns * weight / wakee_weight : ns;
}

/*
 * The virtual time that a task got recently: @served as of @ago ns, which fades linearly.
 * Tasks of equal weight on whatever CPUs have got equally much if they had equal turns, and
 * what was long ago, or while others slept, is forgotten.
 */
static inline u64 served_faded(u64 served, u64 ago)
{
	const u32 half = SERVED_SHIFT / 2;

	if (ago >> SERVED_SHIFT)
		return 0;
	return served - (served >> half) * (ago >> half);
}

#endif /* __FREQLOCK_POLICY_DEADLINE_H */
