// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two threads that want one mutex all the time, with critical sections of different lengths:
 * who has it for how long.
 *
 * lockshare SECONDS SHORT_STEPS LONG_STEPS PAUSE_STEPS
 *
 * Each thread locks, works for so many steps, unlocks, and works for PAUSE_STEPS. Printed are the
 * share of the lock's time that the thread with the long sections has, the share of the time
 * for which the lock is held, and critical sections per second of both.
 */
#define _GNU_SOURCE
#include "../common.h"
#include "../threads.h"

struct worker {
	pthread_t thread;
	uint64_t steps;
	uint64_t held_ns, nr_sections;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t pause_steps;

static void *worker_main(void *arg)
{
	struct worker *self = arg;
	uint64_t begin, end;

	begin_together();
	while (phase() != OVER) {
		pthread_mutex_lock(&mutex);
		begin = now_ns();
		work(self->steps);
		end = now_ns();
		pthread_mutex_unlock(&mutex);
		if (phase() == MEASURING) {
			self->held_ns += end - begin;
			self->nr_sections++;
		}
		work(pause_steps);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct worker workers[2] = {};
	uint64_t ns, elapsed_ns, held_ns;
	int i;

	if (argc != 5) {
		fprintf(stderr, "usage: lockshare SECONDS SHORT_STEPS LONG_STEPS PAUSE_STEPS\n");
		return 2;
	}
	ns = number(argv[1], 1, MAX_SECONDS) * (uint64_t)NS_PER_S;
	workers[0].steps = number(argv[2], 1, LONG_MAX);
	workers[1].steps = number(argv[3], 1, LONG_MAX);
	pause_steps = number(argv[4], 0, LONG_MAX);

	expect_threads(3);
	for (i = 0; i < 2; i++)
		start_thread(&workers[i].thread, worker_main, &workers[i]);
	begin_together();
	elapsed_ns = measure_for(ns);
	for (i = 0; i < 2; i++)
		join_thread(workers[i].thread);
	held_ns = workers[0].held_ns + workers[1].held_ns;
	if (held_ns == 0)
		wrong("not one critical section came to an end: give it more seconds");
	printf("long_share %.2f %% lower\n", 100.0 * workers[1].held_ns / held_ns);
	printf("held %.2f %% higher\n", 100.0 * held_ns / elapsed_ns);
	printf("short_sections %.1f 1/s higher\n", 1e9 * workers[0].nr_sections / elapsed_ns);
	printf("long_sections %.1f 1/s higher\n", 1e9 * workers[1].nr_sections / elapsed_ns);
	return 0;
}
