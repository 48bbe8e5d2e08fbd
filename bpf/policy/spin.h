/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Spinning: the decision whether a task burns time waiting, from what
 * ticks saw of it, and where a spinner is put while it gives way.
 *
 * A loop that waits for memory to change stands still: its instruction pointer
 * stays within a few bytes and, tick after tick, its registers hold what they
 * held, for a loop that computes changes at least a counter, a pointer or a sum.
 * Where the loop says itself that it waits, by PAUSE or by a compare-exchange,
 * its registers may drift a little, as a back-off's counter does. A loop with
 * another locked operation in it works: adding to a counter in memory changes no
 * register either.
 */
#ifndef __FREQLOCK_POLICY_SPIN_H
#define __FREQLOCK_POLICY_SPIN_H

#include "deadline.h"
#include "verifier.h"

enum {
	SPIN_REGS = 32,         /* general registers and stack pointer, low halves */
	SPIN_CODE = 64,         /* bytes of code that are looked at */
	SPIN_BEFORE = 32,       /* of them, those before the instruction pointer */
	SPIN_DRIFT = 1 << 16,   /* a register of a loop with PAUSE moves less than this, */
	SPIN_APART_NS = 500000, /* of CPU time are between two ticks that count */
	SPIN_LITTLE = 64,       /* and one of a loop with a compare-exchange */
	SPIN_STORM = 8,         /* calls of sched_yield in a row that are a storm, */
	SPIN_YIELD_NS = 200000  /* with less CPU time than this between two */
};

/* What stands in the loop around an instruction pointer. */
enum spin_marks {
	SPIN_LOOP = 1 << 0,    /* a jump back over it: there is a loop */
	SPIN_PAUSE = 1 << 1,   /* PAUSE, or YIELD, WFE, ISB */
	SPIN_CMPXCHG = 1 << 2, /* a compare-exchange, or an exclusive load or store */
	SPIN_WORKS = 1 << 3,   /* another locked operation */
};

/* What a tick sees of a task in user mode. */
struct spin_sample {
	u64 ip;
	u32 regs[SPIN_REGS];
};

/* What is remembered of a task between ticks. */
struct spin_watch {
	struct spin_sample last; /* its ip is that of the first of @ticks */
	u64 known;               /* where it was found spinning, 0 nowhere */
	u64 ran;                 /* CPU time since it last slept, at the last tick, */
	u64 yield_ran;           /* and at its last sched_yield */
	u64 behind;              /* deadline of the last task of its process before it, 0 none */
	u64 least;               /* weight of the least favoured of them */
	u32 change;              /* of the registers since the last tick */
	u16 ticks;               /* in a row without a sign of progress */
	u16 yields;              /* in a row with little between */
	u16 seen;                /* tasks looked at for one to give way to; here as in park.bpf.c */
	bool spinning;
};

static inline bool spin_near(u64 a, u64 b, u64 window)
{
	return (a > b ? a - b : b - a) <= window;
}

/*
 * How far the registers moved, by their low halves: below a power of two if each
 * of them did. Without a branch, for the verifier follows every way through.
 */
static inline u32 spin_change(const struct spin_sample *a, const struct spin_sample *b)
{
	u32 moved = 0;

	for (int i = 0; i < SPIN_REGS; i++) {
		s32 d = a->regs[i] - b->regs[i];

		moved |= d < 0 ? -(u32)d : (u32)d;
	}
	return moved;
}

/*
 * Take in @now, after @ran ns of CPU time since the task last slept. True if it is
 * time to look at the code: nothing moved much for @need ticks, or the task is
 * where it was found spinning before.
 *
 * A tick that comes with hardly any CPU time since the one before, late ones and
 * those of a virtual machine that did not run, says nothing of standing still.
 */
static inline bool spin_watch_tick(struct spin_watch *w, const struct spin_sample *now, u64 ran,
				   u64 window, u64 need)
{
	bool there = w->ticks && spin_near(w->last.ip, now->ip, window);
	u64 first = there ? w->last.ip : now->ip;

	w->change = spin_change(&w->last, now);
	if (there && w->change < SPIN_DRIFT) {
		if (ran - w->ran < SPIN_APART_NS)
			return w->spinning;
		w->ticks += w->ticks < 0xffff;
	} else {
		/* Progress in the very place: it does not only wait there. */
		if (there)
			w->known = 0;
		w->ticks = 1;
	}
	w->ran = ran;
	w->last = *now;
	w->last.ip = first;
	return w->ticks >= need || (w->known && spin_near(w->known, now->ip, window));
}

/*
 * The verdict on a task for which spin_watch_tick() was true, by the @marks in
 * its code. A loop that does not say that it waits must stand still for a tick
 * more than @need. At the first of its ticks nothing is known of its registers:
 * in a known place then PAUSE is enough.
 */
static inline bool spin_verdict(const struct spin_watch *w, u32 marks, u64 need)
{
	if (marks & SPIN_PAUSE)
		return w->ticks < 2 || w->change < SPIN_DRIFT;
	if (w->ticks < 2)
		return false;
	if (marks & SPIN_CMPXCHG)
		return w->change < SPIN_LITTLE;
	return (marks & SPIN_LOOP) && !(marks & SPIN_WORKS) && w->ticks > need && !w->change;
}

/* True if there is something to forget. */
static inline bool spin_watched(const struct spin_watch *w)
{
	return w->ticks | w->yields | w->spinning;
}

/* It slept: it does not burn its time. */
static inline void spin_watch_reset(struct spin_watch *w)
{
	w->ticks = 0;
	w->yields = 0;
	w->spinning = false;
}

/* A call of sched_yield after @ran ns of CPU time since it last slept; true in a storm. */
static inline bool spin_watch_yield(struct spin_watch *w, u64 ran)
{
	if (w->yields && ran - w->yield_ran < SPIN_YIELD_NS)
		w->yields += w->yields < 0xffff;
	else
		w->yields = 1;
	w->yield_ran = ran;
	return w->yields >= SPIN_STORM;
}

/* True if the storm is not over yet. */
static inline bool spin_storms(const struct spin_watch *w, u64 ran)
{
	return w->yields >= SPIN_STORM && ran - w->yield_ran < SPIN_YIELD_NS;
}

/*
 * Deadline of a spinner that gives way: @own by its vtime, but with at most the
 * weight @least, and after that of the last task that it gives way to, @behind.
 * At most @bound, so that a task which is never favoured cannot keep it away for
 * long; never earlier than without it all.
 */
static inline u64 spin_deadline(u64 vtime, u64 slice, u64 weight, u64 least, u64 behind, u64 bound)
{
	u64 own = vtime_deadline(vtime, 0, slice, weight);
	u64 given = vtime_deadline(vtime, 0, slice, least < weight ? least : weight);

	if (!vtime_before(behind, given))
		given = behind + 1;
	if (vtime_before(bound, given))
		given = bound;
	return vtime_before(given, own) ? own : given;
}

/* Code around an instruction pointer, and what is found in it. */
struct spin_code {
	u8 bytes[SPIN_CODE];
	u32 at;    /* where in it the instruction pointer is */
	u32 begin; /* of the loop around that */
	u32 end;   /* of it, 0 for none */
	u32 marks; /* enum spin_marks */
};

/* Byte @i of the code; 0 beyond its end. */
static inline u8 spin_byte(const struct spin_code *c, u32 i)
{
	return i < SPIN_CODE ? c->bytes[i] : 0;
}

/* A jump from @i to @target: the first one back over the instruction pointer closes its loop. */
static inline void spin_jump(struct spin_code *c, u32 i, s32 target)
{
	if (c->end || i < c->at || target < 0 || target > (s32)c->at)
		return;
	c->begin = target;
	c->end = i;
	c->marks |= SPIN_LOOP;
}

static inline bool spin_inside(const struct spin_code *c, u32 i)
{
	return c->end && i >= c->begin && i < c->end;
}

/*
 * x86 instructions have no fixed length, so this goes by bytes: a jump that is
 * none, inside of an operand, makes a wrong loop now and then. It takes more than
 * that to be found spinning.
 */
static inline void spin_marks_x86(struct spin_code *c)
{
	u32 i;

	c->end = c->marks = 0;
	policy_for(i, SPIN_CODE - 1)
	{
		u8 op = c->bytes[i];

		if ((op & 0xf0) == 0x70 || op == 0xeb)
			spin_jump(c, i, (s32)i + 2 + (s8)c->bytes[i + 1]);
	}
	policy_for(i, SPIN_CODE - 1)
	{
		u8 op = c->bytes[i], next = c->bytes[i + 1], op1, op2;
		u32 rex = (next & 0xf0) == 0x40;

		/* Just done or about to be: a long loop calls a function that waits. */
		if (op == 0xf3 && next == 0x90 &&
		    (spin_inside(c, i) || i == c->at || i + 2 == c->at))
			c->marks |= SPIN_PAUSE;
		if (op != 0xf0 || !spin_inside(c, i))
			continue;
		op1 = spin_byte(c, i + 1 + rex);
		op2 = spin_byte(c, i + 2 + rex);
		if (op1 == 0x0f && (op2 == 0xb0 || op2 == 0xb1 || op2 == 0xc7))
			c->marks |= SPIN_CMPXCHG;
		else
			c->marks |= SPIN_WORKS;
	}
}

/* Instruction @i of arm64 code. */
static inline u32 spin_word(const struct spin_code *c, u32 i)
{
	const u8 *b = c->bytes + 4 * i;

	return b[0] | b[1] << 8 | b[2] << 16 | (u32)b[3] << 24;
}

/* Bytes that a branch of arm64 jumps, 0 if it is none. */
static inline s32 spin_branch_arm64(u32 op)
{
	if ((op & 0xff000010) == 0x54000000 || (op & 0x7e000000) == 0x34000000)
		return ((s32)(op << 8) >> 13) * 4; /* B.cond, CBZ, CBNZ */
	if ((op & 0x7e000000) == 0x36000000)
		return ((s32)(op << 13) >> 18) * 4; /* TBZ, TBNZ */
	if ((op & 0xfc000000) == 0x14000000)
		return ((s32)(op << 6) >> 6) * 4; /* B */
	return 0;
}

static inline void spin_marks_arm64(struct spin_code *c)
{
	u32 i;

	c->end = c->marks = 0;
	policy_for(i, SPIN_CODE / 4)
	{
		s32 jump = spin_branch_arm64(spin_word(c, i));

		if (jump < 0)
			spin_jump(c, 4 * i, 4 * (s32)i + jump);
	}
	policy_for(i, SPIN_CODE / 4)
	{
		u32 op = spin_word(c, i);
		bool inside = spin_inside(c, 4 * i);
		bool wait = op == 0xd503203f /* YIELD */ || op == 0xd503205f /* WFE */ ||
			    op == 0xd5033fdf /* ISB */;

		if (wait && (inside || 4 * i == c->at || 4 * i + 4 == c->at))
			c->marks |= SPIN_PAUSE;
		/* Exclusive loads and stores and CAS; then LDADD, SWP and the like. */
		if (inside && (op & 0x3f000000) == 0x08000000)
			c->marks |= SPIN_CMPXCHG;
		if (inside && (op & 0x3f200c00) == 0x38200000)
			c->marks |= SPIN_WORKS;
	}
}

/*
 * Where the code that is looked at begins: SPIN_BEFORE bytes before @ip, but all
 * of it in the page of @ip, which is there since it runs.
 */
static inline u64 spin_code_begin(u64 ip)
{
	u64 page = ip & ~4095ULL, last = page + 4096 - SPIN_CODE, begin = ip - SPIN_BEFORE;

	if (ip - page < SPIN_BEFORE)
		return page;
	return begin > last ? last : begin;
}

#endif /* __FREQLOCK_POLICY_SPIN_H */
