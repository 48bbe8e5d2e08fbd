// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that compete for one mutex, all alike: lock, work, unlock, work.
 *
 * oversubscribed SECONDS THREADS HOLD_STEPS PAUSE_STEPS
 *
 * HOLD_STEPS is the work with the mutex held, PAUSE_STEPS that without it.
 * Printed are critical sections per second, and of the time from asking for the
 * mutex until having it, the p99 and the longest of any thread.
 */
#define _GNU_SOURCE
#include "../common.h"
#include "../histogram.h"
#include "../threads.h"

struct worker {
	pthread_t thread;
	struct histogram waits;
	uint64_t nr_sections; /* from first to last, settling included */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t hold_steps, pause_steps;

/* Nothing but the mutex keeps this one right. */
static volatile uint64_t nr_guarded;

static void *worker_main(void *arg)
{
	struct worker *self = arg;
	uint64_t begin, end, guarded;
	bool counts;

	begin_together();
	while (phase() != OVER) {
		/* By its beginning, or the longest would be left out at the end. */
		counts = phase() == MEASURING;
		begin = now_ns();
		pthread_mutex_lock(&mutex);
		end = now_ns();
		guarded = nr_guarded;
		work(hold_steps);
		nr_guarded = guarded + 1;
		pthread_mutex_unlock(&mutex);
		self->nr_sections++;
		if (counts)
			histogram_add(&self->waits, end - begin);
		work(pause_steps);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct histogram *waits = allocate(1, sizeof(*waits));
	uint64_t seconds, elapsed_ns, nr_sections = 0;
	struct worker *workers;
	unsigned int nr, i;

	if (argc != 5) {
		fprintf(stderr, "usage: oversubscribed SECONDS THREADS HOLD_STEPS PAUSE_STEPS\n");
		return 2;
	}
	seconds = number(argv[1], 1, MAX_SECONDS);
	nr = number(argv[2], 1, MAX_THREADS);
	hold_steps = number(argv[3], 1, LONG_MAX);
	pause_steps = number(argv[4], 0, LONG_MAX);

	workers = allocate(nr, sizeof(*workers));
	expect_threads(nr + 1);
	for (i = 0; i < nr; i++)
		start_thread(&workers[i].thread, worker_main, &workers[i]);
	begin_together();
	elapsed_ns = measure_for(seconds * NS_PER_S);
	for (i = 0; i < nr; i++) {
		join_thread(workers[i].thread);
		histogram_merge(waits, &workers[i].waits);
		nr_sections += workers[i].nr_sections;
	}
	if (nr_sections != nr_guarded)
		wrong("two threads were in a critical section at once");
	if (waits->nr == 0)
		wrong("not one critical section came to an end: give it more seconds");
	printf("throughput %.1f 1/s higher\n", (double)waits->nr * NS_PER_S / elapsed_ns);
	print_us("wait_", "p99", percentile_ns(waits, 0.99));
	print_us("wait_", "longest", waits->longest_ns);
	return 0;
}
