/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A log-linear histogram of nanoseconds: 256 slots for each power of two, so a
 * percentile is off by at most 0.2%. One writer; adding costs a few
 * instructions and no memory.
 */
#ifndef __BENCH_HISTOGRAM_H
#define __BENCH_HISTOGRAM_H

#include "common.h"

enum {
	SUB_BITS = 8,
	SUB = 1 << SUB_BITS,
	NR_SLOTS = (64 - SUB_BITS + 1) * SUB,
};

struct histogram {
	uint64_t nr;
	uint64_t sum_ns;
	uint64_t longest_ns;
	uint64_t slots[NR_SLOTS];
};

static inline unsigned int slot_of(uint64_t ns)
{
	unsigned int shift;

	if (ns < SUB)
		return ns;
	shift = 63 - __builtin_clzll(ns) - SUB_BITS;
	return shift * SUB + (ns >> shift);
}

/* The middle of a slot. */
static inline double slot_ns(unsigned int slot)
{
	unsigned int shift;

	if (slot < 2 * SUB)
		return slot;
	shift = slot / SUB - 1;
	return ((uint64_t)(slot - shift * SUB) << shift) + ((1ull << shift) - 1) / 2.0;
}

static inline void histogram_add(struct histogram *h, uint64_t ns)
{
	h->nr++;
	h->sum_ns += ns;
	if (ns > h->longest_ns)
		h->longest_ns = ns;
	h->slots[slot_of(ns)]++;
}

static inline void histogram_merge(struct histogram *into, const struct histogram *from)
{
	unsigned int i;

	into->nr += from->nr;
	into->sum_ns += from->sum_ns;
	if (from->longest_ns > into->longest_ns)
		into->longest_ns = from->longest_ns;
	for (i = 0; i < NR_SLOTS; i++)
		into->slots[i] += from->slots[i];
}

static inline double mean_ns(const struct histogram *h)
{
	return h->nr ? (double)h->sum_ns / h->nr : 0;
}

/* Never more than the longest, in whose slot it may be. */
static inline double percentile_ns(const struct histogram *h, double share)
{
	uint64_t wanted = h->nr * share, seen = 0;
	double longest = h->longest_ns;
	unsigned int i;

	for (i = 0; i < NR_SLOTS; i++) {
		seen += h->slots[i];
		if (seen > wanted)
			return slot_ns(i) < longest ? slot_ns(i) : longest;
	}
	return longest;
}

/* A line for `compare`: NAME VALUE us lower. */
static inline void print_us(const char *prefix, const char *name, double ns)
{
	printf("%s%s %.1f us lower\n", prefix, name, ns / NS_PER_US);
}

#endif /* __BENCH_HISTOGRAM_H */
