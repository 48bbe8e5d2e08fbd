/* SPDX-License-Identifier: MIT */
/*
 * Threads that make requests for some seconds, each of which is an epoch of libfreqlock if that is
 * loaded: by freqlock-run or freqlock-profile, or linked.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

__attribute__((weak)) int freqlock_epoch_start(uint32_t id);
__attribute__((weak)) int freqlock_epoch_end(uint32_t id, uint64_t slo_ns);

enum { REQUEST = 1, SLO_NS = 1000000, THREADS_MOST = 256 };

struct client {
	pthread_t thread;
	uint64_t random, done;
	void *(*begin)(void);
	void (*request)(void *state, uint64_t random);
};

static volatile int over;

/* SplitMix64. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static void *serve(void *arg)
{
	struct client *me = arg;
	void *state = me->begin();

	while (!over) {
		uint64_t random = next_random(&me->random);

		if (freqlock_epoch_start)
			freqlock_epoch_start(REQUEST);
		me->request(state, random);
		if (freqlock_epoch_end)
			freqlock_epoch_end(REQUEST, SLO_NS);
		me->done++;
	}
	return NULL;
}

/* As many threads as the first argument says, for as many seconds as the second one. */
static void serve_all(char **argv, void *(*begin)(void), void (*request)(void *, uint64_t))
{
	static struct client clients[THREADS_MOST];
	int threads = argv[1] ? atoi(argv[1]) : 0, seconds = threads ? atoi(argv[2] ?: "0") : 0;
	struct timespec time = { .tv_sec = seconds };
	uint64_t done = 0;

	if (threads < 1 || threads > THREADS_MOST || seconds < 1) {
		fprintf(stderr, "usage: %s THREADS SECONDS\n", argv[0]);
		exit(2);
	}
	for (int i = 0; i < threads; i++) {
		clients[i] = (struct client){ .random = i, .begin = begin, .request = request };
		if (pthread_create(&clients[i].thread, NULL, serve, &clients[i])) {
			fprintf(stderr, "no more threads\n");
			exit(1);
		}
	}
	nanosleep(&time, NULL);
	over = 1;
	for (int i = 0; i < threads; i++) {
		pthread_join(clients[i].thread, NULL);
		done += clients[i].done;
	}
	printf("%llu requests/s\n", (unsigned long long)(done / seconds));
}
