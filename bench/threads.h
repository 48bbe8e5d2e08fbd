/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Threads that begin together, and the time during which what they do counts.
 */
#ifndef __BENCH_THREADS_H
#define __BENCH_THREADS_H

#include <pthread.h>

#include "common.h"

/* SETTLING: the first moments, while threads spread over the CPUs. */
enum phase { SETTLING, MEASURING, OVER };

static _Atomic int current_phase;
static pthread_barrier_t together;

static inline enum phase phase(void)
{
	return atomic_load_explicit(&current_phase, memory_order_relaxed);
}

static inline void start_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
	if ((errno = pthread_create(thread, NULL, run, arg)))
		fail("pthread_create");
}

static inline void join_thread(pthread_t thread)
{
	if ((errno = pthread_join(thread, NULL)))
		fail("pthread_join");
}

/* As many threads as will call begin_together(), the calling one included. */
static inline void expect_threads(unsigned int nr)
{
	if ((errno = pthread_barrier_init(&together, NULL, nr)))
		fail("pthread_barrier_init");
	atomic_store(&current_phase, SETTLING);
}

static inline void begin_together(void)
{
	pthread_barrier_wait(&together);
}

/* Lets threads settle for a tenth of the time; returns for how long it measured. */
static inline uint64_t measure_for(uint64_t ns)
{
	uint64_t start, end;

	sleep_ns(ns / 10);
	start = now_ns();
	atomic_store(&current_phase, MEASURING);
	sleep_ns(ns);
	atomic_store(&current_phase, OVER);
	end = now_ns();
	return end - start;
}

#endif /* __BENCH_THREADS_H */
