// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wake-up latency under load, after the idea of Chris Mason's schbench: message
 * threads wake worker threads, which note how long it took until they ran, do a
 * little work and queue for the next message. Nobody sleeps on a clock: the
 * machine is as busy as its threads make it.
 *
 * schbench SECONDS MESSENGERS WORKERS STEPS
 *
 * WORKERS is the number for each messenger. Printed are the percentiles of the
 * wake-up latency of workers, from just before the wake-up call to the first
 * instruction after the wait, and the requests served per second.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../common.h"

/*
 * A log-linear histogram of nanoseconds: 128 slots for each power of two, so a
 * percentile is off by less than 1%.
 */
enum {
	SUB_BITS = 7,
	SUB = 1 << SUB_BITS,
	NR_SLOTS = (64 - SUB_BITS + 1) * SUB,
};

struct messenger {
	_Atomic(struct worker *) queue; /* workers that wait for a message */
	_Atomic uint32_t posted;        /* bumped with each one that joins */
	pthread_t thread;
};

struct worker {
	struct worker *next;
	struct messenger *messenger;
	_Atomic uint32_t message; /* 1: there is one */
	uint64_t woken_ns;
	uint64_t nr_requests;
	uint64_t *slots;
	pthread_t thread;
};

static _Atomic bool measuring, stopping;
static uint64_t steps;

static void fail(const char *what)
{
	fprintf(stderr, "schbench: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
	/* Woken for nothing or word changed already: the caller looks again. */
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static unsigned int slot_of(uint64_t ns)
{
	unsigned int shift;

	if (ns < SUB)
		return ns;
	shift = 63 - __builtin_clzll(ns) - SUB_BITS;
	return shift * SUB + (ns >> shift);
}

/* The middle of a slot. */
static double ns_of(unsigned int slot)
{
	unsigned int shift;

	if (slot < 2 * SUB)
		return slot;
	shift = slot / SUB - 1;
	return ((uint64_t)(slot - shift * SUB) << shift) + (1ull << shift) / 2.0;
}

static double percentile(const uint64_t *slots, uint64_t nr, double share)
{
	uint64_t wanted = nr * share, seen = 0;
	unsigned int i;

	for (i = 0; i < NR_SLOTS; i++) {
		seen += slots[i];
		if (seen > wanted)
			break;
	}
	return ns_of(i);
}

static void *messenger_main(void *arg)
{
	struct messenger *m = arg;

	while (!atomic_load(&stopping)) {
		uint32_t posted = atomic_load(&m->posted);
		struct worker *w = atomic_exchange(&m->queue, NULL);

		if (!w)
			futex_wait(&m->posted, posted);
		while (w) {
			/* Once woken, a worker may join the queue again. */
			struct worker *next = w->next;

			w->woken_ns = now_ns();
			atomic_store(&w->message, 1);
			futex_wake(&w->message);
			w = next;
		}
	}
	return NULL;
}

static void join_queue(struct worker *w)
{
	struct messenger *m = w->messenger;

	w->next = atomic_load(&m->queue);
	while (!atomic_compare_exchange_weak(&m->queue, &w->next, w))
		;
	atomic_fetch_add(&m->posted, 1);
	futex_wake(&m->posted);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	while (!atomic_load(&stopping)) {
		atomic_store(&w->message, 0);
		join_queue(w);
		while (!atomic_load(&w->message) && !atomic_load(&stopping))
			futex_wait(&w->message, 0);
		if (atomic_load(&measuring)) {
			w->slots[slot_of(now_ns() - w->woken_ns)]++;
			w->nr_requests++;
		}
		work(steps);
	}
	return NULL;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec ts = { ns / 1000000000, ns % 1000000000 };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

static void report(const struct worker *workers, unsigned int nr, uint64_t elapsed_ns)
{
	uint64_t *slots = calloc(NR_SLOTS, sizeof(*slots)), requests = 0;
	unsigned int i, j;

	if (!slots)
		fail("memory");
	for (i = 0; i < nr; i++) {
		requests += workers[i].nr_requests;
		for (j = 0; j < NR_SLOTS; j++)
			slots[j] += workers[i].slots[j];
	}
	if (requests == 0) {
		fprintf(stderr, "schbench: not one request was served\n");
		exit(1);
	}
	printf("wakeup_p50 %.1f us lower\n", percentile(slots, requests, 0.5) / 1e3);
	printf("wakeup_p99 %.1f us lower\n", percentile(slots, requests, 0.99) / 1e3);
	printf("wakeup_p99.9 %.1f us lower\n", percentile(slots, requests, 0.999) / 1e3);
	printf("requests %.0f 1/s higher\n", requests * 1e9 / elapsed_ns);
	free(slots);
}

int main(int argc, char **argv)
{
	unsigned int nr_messengers, per_messenger, nr, i;
	struct messenger *messengers;
	struct worker *workers;
	uint64_t duration, start, end;

	if (argc != 5) {
		fprintf(stderr, "usage: schbench SECONDS MESSENGERS WORKERS STEPS\n");
		return 2;
	}
	duration = strtoull(argv[1], NULL, 10) * 1000000000ull;
	nr_messengers = strtoul(argv[2], NULL, 10);
	per_messenger = strtoul(argv[3], NULL, 10);
	steps = strtoull(argv[4], NULL, 10);
	nr = nr_messengers * per_messenger;

	messengers = calloc(nr_messengers, sizeof(*messengers));
	workers = calloc(nr, sizeof(*workers));
	if (!messengers || !workers)
		fail("memory");
	for (i = 0; i < nr; i++) {
		workers[i].messenger = &messengers[i / per_messenger];
		workers[i].slots = calloc(NR_SLOTS, sizeof(*workers[i].slots));
		if (!workers[i].slots)
			fail("memory");
	}
	for (i = 0; i < nr_messengers; i++)
		if ((errno = pthread_create(&messengers[i].thread, NULL, messenger_main,
					    &messengers[i])))
			fail("pthread_create");
	for (i = 0; i < nr; i++)
		if ((errno = pthread_create(&workers[i].thread, NULL, worker_main, &workers[i])))
			fail("pthread_create");

	/* The first moments, while threads spread over the CPUs, do not count. */
	sleep_ns(duration / 10);
	start = now_ns();
	atomic_store(&measuring, true);
	sleep_ns(duration);
	atomic_store(&measuring, false);
	end = now_ns();

	atomic_store(&stopping, true);
	for (i = 0; i < nr_messengers; i++) {
		atomic_fetch_add(&messengers[i].posted, 1);
		futex_wake(&messengers[i].posted);
		pthread_join(messengers[i].thread, NULL);
	}
	for (i = 0; i < nr; i++) {
		atomic_store(&workers[i].message, 1);
		futex_wake(&workers[i].message);
		pthread_join(workers[i].thread, NULL);
	}
	report(workers, nr, end - start);
	return 0;
}
