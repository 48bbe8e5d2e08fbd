/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What keeps the verifier's work small, and so the time to load: it follows each
 * way through a program, and a plain loop round by round.
 */
#ifndef __FREQLOCK_POLICY_VERIFIER_H
#define __FREQLOCK_POLICY_VERIFIER_H

#include "../intf.h"

#ifdef __bpf__
#define policy_for(i, n) bpf_for(i, 0, n)
#else
#define policy_for(i, n) for (i = 0; i < (n); i++)
#endif

/*
 * @i within @size, a power of two. The barrier keeps the compiler from knowing
 * better and leaving out the mask, which the verifier wants to see.
 */
static inline u32 in_range(u32 i, u32 size)
{
	__asm__ volatile("" : "+r"(i));
	return i & (size - 1);
}

/*
 * The smaller of two, without a branch: those are where the verifier's ways part.
 * The highest bit of the sum is the borrow of @a - @b (Warren, "Hacker's
 * Delight", section 2-12); the barrier keeps the compiler from making a branch of it.
 */
static inline u64 lesser(u64 a, u64 b)
{
	u64 less = ((~a & b) | (~(a ^ b) & (a - b))) >> 63;

	__asm__ volatile("" : "+r"(less));
	return b ^ ((a ^ b) & (0 - less));
}

static inline u64 greater(u64 a, u64 b)
{
	return a ^ b ^ lesser(a, b);
}

/*
 * The same by a branch, a quarter of the instructions: for sums of times that nothing depends on
 * which the verifier looks at, so that it soon finds both ways alike.
 */
static inline u64 shorter(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 longer(u64 a, u64 b)
{
	return a < b ? b : a;
}

/*
 * Time from @from to @to, ns; 0 if @to is before: the clocks of two CPUs differ by a little,
 * and by more where a host or a firmware stops one. Less than half of all time is between two
 * of ours, so the sign of the difference says which is before: a third of what lesser() takes.
 */
static inline u64 elapsed(u64 from, u64 to)
{
	s64 passed = (s64)(to - from), before = passed >> 63;

	__asm__ volatile("" : "+r"(before));
	return (u64)(passed & ~before);
}

/* The number of the highest bit of @v, which is not 0; without branches. */
static inline u32 highest_bit(u64 v)
{
	v |= v >> 1;
	v |= v >> 2;
	v |= v >> 4;
	v |= v >> 8;
	v |= v >> 16;
	v |= v >> 32;
	v -= (v >> 1) & 0x5555555555555555ULL;
	v = (v & 0x3333333333333333ULL) + ((v >> 2) & 0x3333333333333333ULL);
	v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	/* Wraps on purpose: the sum of the bytes is in the highest one. */
	return (u32)((v * 0x0101010101010101ULL) >> 56) - 1;
}

#endif /* __FREQLOCK_POLICY_VERIFIER_H */
