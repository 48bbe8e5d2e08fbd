/* SPDX-License-Identifier: MIT */
/*
 * How fast each CPU is now: a page that scx_freqlock keeps for programs that treat threads
 * on fast CPUs in another way than those on slow ones, such as the locks of libfreqlock.
 *
 *	const struct fl_speeds_page *page = fl_speeds_open();
 *	int speed = page ? fl_speeds_of_cpu(page, sched_getcpu()) : -1;
 *
 * Anybody may read it. The scheduler writes it every period (its knob speeds_ms). Each
 * field is read and written whole, so there is no lock: a reader may see speeds of two
 * periods beside each other, each of which was true a period ago at most.
 *
 * A scheduler that ends leaves the page in place with a period of 0, and one that starts
 * again takes it over: who has it mapped need not open it again, and asks the kernel for
 * nothing but the time. fl_speeds_is_fresh() says whether somebody writes it.
 */
#ifndef FREQLOCK_SPEEDS_PAGE_H
#define FREQLOCK_SPEEDS_PAGE_H

#include <stdint.h>

#define FL_SPEEDS_PATH "/run/scx_freqlock/speeds"

enum fl_speeds_consts {
	FL_SPEEDS_MAGIC = 0x73647073, /* "spds" in little-endian memory */
	FL_SPEEDS_VERSION = 1,        /* of all that follows */
	FL_SPEEDS_CPUS = 1024,
	FL_SPEEDS_FULL = 1024, /* speed of the machine's fastest CPU at its best */
	/* A page is old when it was not written for three periods and so many ms. */
	FL_SPEEDS_GRACE_MS = 100,
};

struct fl_speeds_page {
	uint32_t magic;
	uint32_t version;
	uint64_t updated; /* when it was written, ns of CLOCK_MONOTONIC */
	uint64_t period;  /* how often it is, ns; 0: not any more */
	uint32_t agent;   /* the process that writes it */
	uint32_t least;   /* speed of the slowest CPU that is there, 1..1024 */
	uint32_t most;    /* and of the fastest */
	uint32_t reserved[7];
	uint16_t speed[FL_SPEEDS_CPUS]; /* by CPU, 1..1024; 0: there is no such CPU */
};

_Static_assert(sizeof(struct fl_speeds_page) == 64 + 2 * FL_SPEEDS_CPUS, "programs rely on it");

/* The agent takes the layout alone, as for the BPF side. */
#ifndef __bpf__

#include "page.h"

/* The page, or NULL: ENOENT where none was ever written, EPROTO if it is of another version. */
static inline const struct fl_speeds_page *fl_speeds_open(void)
{
	return (const struct fl_speeds_page *)fl_page_open(
		FL_SPEEDS_PATH, sizeof(struct fl_speeds_page), FL_SPEEDS_MAGIC, FL_SPEEDS_VERSION);
}

static inline void fl_speeds_close(const struct fl_speeds_page *page)
{
	munmap((void *)page, sizeof(*page));
}

/* True while somebody writes it. */
static inline int fl_speeds_is_fresh(const struct fl_speeds_page *page)
{
	return fl_page_is_fresh(&page->period, &page->updated, FL_SPEEDS_GRACE_MS);
}

/* Present speed of @cpu, 1..1024; -1 if nobody writes the page any more, or without that CPU. */
static inline int fl_speeds_of_cpu(const struct fl_speeds_page *page, int cpu)
{
	uint16_t speed;

	if (cpu < 0 || cpu >= FL_SPEEDS_CPUS || !fl_speeds_is_fresh(page))
		return -1;
	speed = __atomic_load_n(&page->speed[cpu], __ATOMIC_RELAXED);
	return speed ? speed : -1;
}

#endif /* __bpf__ */

#endif /* FREQLOCK_SPEEDS_PAGE_H */
