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
#define _GNU_SOURCE
#include "../common.h"
#include "../histogram.h"
#include "../threads.h"

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
	struct histogram *waits;
	pthread_t thread;
};

static uint64_t steps;

static void *messenger_main(void *arg)
{
	struct messenger *m = arg;

	while (phase() != OVER) {
		uint32_t posted = atomic_load(&m->posted);
		struct worker *w = atomic_exchange(&m->queue, NULL);

		if (!w)
			futex_wait(&m->posted, posted, 0, WITHIN_PROCESS);
		while (w) {
			/* Once woken, a worker may join the queue again. */
			struct worker *next = w->next;

			w->woken_ns = now_ns();
			atomic_store(&w->message, 1);
			futex_wake(&w->message, 1, WITHIN_PROCESS);
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
	futex_wake(&m->posted, 1, WITHIN_PROCESS);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	while (phase() != OVER) {
		atomic_store(&w->message, 0);
		join_queue(w);
		while (!atomic_load(&w->message) && phase() != OVER)
			futex_wait(&w->message, 0, 0, WITHIN_PROCESS);
		if (phase() == MEASURING)
			histogram_add(w->waits, now_ns() - w->woken_ns);
		work(steps);
	}
	return NULL;
}

static void report(const struct worker *workers, unsigned int nr, uint64_t elapsed_ns)
{
	struct histogram *all = allocate(1, sizeof(*all));
	unsigned int i;

	for (i = 0; i < nr; i++)
		histogram_merge(all, workers[i].waits);
	if (all->nr == 0)
		wrong("not one request was served");
	print_us("wakeup_", "p50", percentile_ns(all, 0.5));
	print_us("wakeup_", "p99", percentile_ns(all, 0.99));
	print_us("wakeup_", "p99.9", percentile_ns(all, 0.999));
	printf("requests %.0f 1/s higher\n", (double)all->nr * NS_PER_S / elapsed_ns);
	free(all);
}

int main(int argc, char **argv)
{
	unsigned int nr_messengers, per_messenger, nr, i;
	struct messenger *messengers;
	struct worker *workers;
	uint64_t seconds, elapsed_ns;

	if (argc != 5) {
		fprintf(stderr, "usage: schbench SECONDS MESSENGERS WORKERS STEPS\n");
		return 2;
	}
	seconds = number(argv[1], 1, MAX_SECONDS);
	nr_messengers = number(argv[2], 1, MAX_THREADS);
	per_messenger = number(argv[3], 1, MAX_THREADS);
	steps = number(argv[4], 1, LONG_MAX);
	nr = nr_messengers * per_messenger;

	messengers = allocate(nr_messengers, sizeof(*messengers));
	workers = allocate(nr, sizeof(*workers));
	for (i = 0; i < nr; i++) {
		workers[i].messenger = &messengers[i / per_messenger];
		workers[i].waits = allocate(1, sizeof(*workers[i].waits));
	}
	for (i = 0; i < nr_messengers; i++)
		start_thread(&messengers[i].thread, messenger_main, &messengers[i]);
	for (i = 0; i < nr; i++)
		start_thread(&workers[i].thread, worker_main, &workers[i]);

	elapsed_ns = measure_for(seconds * NS_PER_S);
	for (i = 0; i < nr_messengers; i++) {
		atomic_fetch_add(&messengers[i].posted, 1);
		futex_wake(&messengers[i].posted, 1, WITHIN_PROCESS);
		join_thread(messengers[i].thread);
	}
	for (i = 0; i < nr; i++) {
		atomic_store(&workers[i].message, 1);
		futex_wake(&workers[i].message, 1, WITHIN_PROCESS);
		join_thread(workers[i].thread);
	}
	report(workers, nr, elapsed_ns);
	return 0;
}
