/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Busy loops of several kinds, which note for how long each did not run. The kinds are
 * those of gaps.c.
 *
 * The loops are threads without a libc of their own (clone), since thousands of
 * processes would not fit; they call nothing but the clock. Their stacks are never
 * made into huge pages: a loop that meets khugepaged at that waits in a page fault for
 * milliseconds, and has had its turn.
 */
#ifndef FREQLOCK_TEST_LOOPS_H
#define FREQLOCK_TEST_LOOPS_H

#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "attributes.h"
#include "timing.h"

enum {
	MAX_LOOPS = 4096,
	MAX_KINDS = 16,
	STACK = 16384,
	PRIORITY = 10, /* of a real-time task; that of who measures is higher */
};

static struct loop {
	volatile uint64_t last; /* when it ran last */
	volatile uint64_t gap;  /* the longest time for which it did not */
	volatile uint32_t cpu;
	int tid;
	uint32_t kind;
	volatile bool asks;  /* for a slice, all the time */
	volatile bool asked; /* for a slice, by another CPU all the time */
} *loops;

static volatile bool stop;
static volatile uint64_t gaps_since; /* what was before does not count */
static bool looks_where;
static int nr_loops;

static uint64_t now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t any_slice(uint32_t *seed)
{
	static const uint64_t odd[] = { 0, 1, 100000, 3600000000000, INT64_MAX, UINT64_MAX };
	uint32_t draw;

	*seed = *seed * 1664525 + 1013904223;
	draw = *seed >> 16;
	/* Half of them such as the kernel would not change. */
	return draw & 1 ? draw / 2 * 3000ull : odd[draw / 2 % (sizeof(odd) / sizeof(*odd))];
}

/* @tid asks for a slice of @ns, and stays what else it is. False if it does not exist. */
static bool ask_slice_ns(int tid, uint64_t ns)
{
	struct attributes attr;

	if (syscall(SYS_sched_getattr, tid, &attr, sizeof(attr), 0))
		return false;
	attr.runtime = ns;
	return !syscall(SYS_sched_setattr, tid, &attr, 0);
}

static int loop(void *arg)
{
	struct loop *l = arg;
	uint32_t seed = 1;

	while (!stop) {
		uint64_t last = l->last, t = now(), since = gaps_since;

		/* It may have waited for long between any two of these. */
		if (last < since)
			last = since;
		if (t > last && t - last > l->gap)
			l->gap = t - last;
		if (since != gaps_since)
			l->gap = 0;
		l->last = t;
		/* Not glibc's sched_getcpu(), which asks the thread that made this one. */
		if (looks_where)
			syscall(SYS_getcpu, &l->cpu, NULL, NULL);
		if (l->asks && !ask_slice_ns(l->tid, any_slice(&seed)))
			break;
	}
	syscall(SYS_exit, 0);
	return 0;
}

static void pin(int tid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(tid, sizeof(set), &set))
		die("sched_setaffinity: %s", strerror(errno));
}

static void set_policy(int tid, int policy, int priority)
{
	struct sched_param param = { .sched_priority = priority };

	if (sched_setscheduler(tid, policy, &param))
		die("sched_setscheduler: %s", strerror(errno));
}

static struct loop *begin_loop(uint32_t kind)
{
	struct loop *l = &loops[nr_loops];
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (nr_loops == MAX_LOOPS || stack == MAP_FAILED)
		die("no room for another loop");
	l->kind = kind;
	l->last = now();
	l->tid = clone(loop, stack + STACK,
		       CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
			       CLONE_SYSVSEM,
		       l);
	if (l->tid < 0)
		die("clone: %s", strerror(errno));
	nr_loops++;
	return l;
}

/* From here on gaps count; those who wait have waited from here on. */
static void begin_gaps(void)
{
	gaps_since = now();
	for (int i = 0; i < nr_loops; i++)
		loops[i].gap = 0;
}

/* The longest gap of the loops of a kind, ns; one that goes on counts too. */
static uint64_t longest_gap(uint32_t kind)
{
	uint64_t longest = 0, t = now();

	for (int i = 0; i < nr_loops; i++) {
		uint64_t last = loops[i].last > gaps_since ? loops[i].last : gaps_since;
		uint64_t gap = t > last ? t - last : 0;

		if (loops[i].kind != kind)
			continue;
		if (loops[i].gap > gap)
			gap = loops[i].gap;
		if (gap > longest)
			longest = gap;
	}
	return longest;
}

/* By the clock of a thread, whose number the kernel makes of the thread's. */
static uint64_t thread_cpu_time(int tid)
{
	return clock_ns((~(clockid_t)tid << 3) | 6);
}

static uint64_t cpu_time(uint32_t kind)
{
	uint64_t sum = 0;

	for (int i = 0; i < nr_loops; i++)
		if (loops[i].kind == kind)
			sum += thread_cpu_time(loops[i].tid);
	return sum;
}

static void ask_slice(int tid, long us)
{
	if (!ask_slice_ns(tid, us * 1000ull))
		die("sched_setattr: %s", strerror(errno));
}

/* Makes @tid one of the kind @what, which gaps.c lists, or dies. */
static void set_kind(int tid, const char *what)
{
	const char *slice = strchr(what, '/');
	bool batch = !strncmp(what, "batch", 5);

	if (!strcmp(what, "idle")) {
		set_policy(tid, SCHED_IDLE, 0);
		return;
	}
	set_policy(tid, batch ? SCHED_BATCH : SCHED_OTHER, 0);
	if (!batch && setpriority(PRIO_PROCESS, tid, strtol(what, NULL, 0)))
		die("setpriority: %s", strerror(errno));
	/* The other two are a loop's own. */
	if (slice && slice[1] >= '0' && slice[1] <= '9')
		ask_slice(tid, strtol(slice + 1, NULL, 0));
}

/* Of COUNTxKIND: its kind, and its count. */
static const char *parse_kind(const char *text, long *count)
{
	char *kind;

	*count = strtol(text, &kind, 10);
	if (*count < 1 || *kind != 'x')
		die("'%s' is not COUNTxKIND", text);
	return kind + 1;
}

#endif
