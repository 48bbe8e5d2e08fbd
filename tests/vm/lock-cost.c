// SPDX-License-Identifier: GPL-2.0-only
/*
 * What libfreqlock costs where nobody waits, beside a mutex of glibc, in ns: the least of n
 * short measurements (20 us), taken in turn; one in which the machine does nothing else is enough.
 *
 *   lock-cost n=8000
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "freqlock.h"
#include "params.h"

enum { CALLS = 1000 };

static freqlock_t lock = FREQLOCK_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *nothing(void *arg)
{
	return arg;
}

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static void use_mutex(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

static void use_lock(void)
{
	freqlock_lock(&lock);
	freqlock_unlock(&lock);
}

static void use_hint(void)
{
	freqlock_hint_hold(&lock);
	freqlock_hint_release();
}

static void use_epoch(void)
{
	freqlock_epoch_start(1);
	freqlock_epoch_end(1, 1000);
}

static void use_clock(void)
{
	now_ns();
	now_ns();
}

static const struct {
	const char *name;
	void (*use)(void);
} what[] = {
	{ "mutex", use_mutex }, { "lock", use_lock },   { "hint", use_hint },
	{ "epoch", use_epoch }, { "clock", use_clock },
};

enum { KINDS = sizeof(what) / sizeof(*what) };

int main(int argc, char **argv)
{
	double least[KINDS], began, took;
	pthread_t thread;
	long rounds;

	(void)argc;
	params = argv + 1;
	rounds = atol(param("n", "8000"));
	if (rounds < 1)
		die("n must be positive");

	/* With a second thread glibc's mutexes cost what they cost in programs that need them. */
	if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL))
		abort();
	for (long round = 0; round < rounds; round++) {
		for (int kind = 0; kind < KINDS; kind++) {
			began = now_ns();
			for (int call = 0; call < CALLS; call++)
				what[kind].use();
			took = (now_ns() - began) / CALLS;
			if (!round || took < least[kind])
				least[kind] = took;
		}
	}
	for (int kind = 0; kind < KINDS; kind++)
		printf("%s_ns=%.1f ", what[kind].name, least[kind]);
	printf("\n");
	return 0;
}
