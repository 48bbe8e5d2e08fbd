/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the programs of bench/ share: how they fail, their arguments, clocks,
 * sleep, futexes, and work of a known amount. A program defines _GNU_SOURCE
 * before it includes anything.
 */
#ifndef __BENCH_COMMON_H
#define __BENCH_COMMON_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	NS_PER_US = 1000,
	NS_PER_S = 1000000000,
	/* What an argument may be. */
	MAX_SECONDS = 3600,
	MAX_THREADS = 4096,
};

/* Ends the program with one line: what failed, and errno's word for it. */
static inline void __attribute__((noreturn)) fail(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(1);
}

/* The same where no system call has failed, but what was measured is wrong. */
static inline void __attribute__((noreturn)) wrong(const char *what)
{
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
	exit(1);
}

static inline void *allocate(size_t nr, size_t size)
{
	void *memory = calloc(nr, size);

	if (!memory)
		fail("memory");
	return memory;
}

/* An argument; status 2 is wrong usage. */
static inline long number(const char *text, long min, long max)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || *end || n < min || n > max) {
		fprintf(stderr, "%s: %s is not a whole number in %ld..%ld\n",
			program_invocation_short_name, text, min, max);
		exit(2);
	}
	return n;
}

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * (uint64_t)NS_PER_S + ts.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* CPU time of the calling thread: stands still while it does not run. */
static inline uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static inline void sleep_ns(uint64_t ns)
{
	struct timespec ts = { ns / NS_PER_S, ns % NS_PER_S };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

/* The nice value of the calling thread. */
static inline void set_nice(int nice)
{
	if (setpriority(PRIO_PROCESS, 0, nice))
		fail("setpriority");
}

/* Who waits for a futex word and wakes its waiters: within_process is cheaper. */
enum futex_scope { BETWEEN_PROCESSES = 0, WITHIN_PROCESS = FUTEX_PRIVATE_FLAG };

/*
 * Returns false when `ns` have passed; 0 waits for ever. Woken for nothing, or
 * the word was changed already: the caller looks again.
 */
static inline bool futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns,
			      enum futex_scope scope)
{
	struct timespec ts = { ns / NS_PER_S, ns % NS_PER_S };

	return !syscall(SYS_futex, word, FUTEX_WAIT | scope, value, ns ? &ts : NULL, NULL, 0) ||
	       errno != ETIMEDOUT;
}

static inline void futex_wake(_Atomic uint32_t *word, int nr, enum futex_scope scope)
{
	syscall(SYS_futex, word, FUTEX_WAKE | scope, nr, NULL, NULL, 0);
}

/* xorshift; the state is never 0. */
static inline uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/*
 * Work is a number of steps, not a time: on a slow CPU it takes longer. Every
 * step needs the one before, so no CPU can do two of them at once, and the
 * empty asm keeps the compiler from leaving out what nobody looks at.
 */
static inline void work(uint64_t steps)
{
	uint64_t x = steps;

	while (steps--) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		__asm__ volatile("" : "+r"(x));
	}
}

#endif /* __BENCH_COMMON_H */
