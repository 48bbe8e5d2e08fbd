// SPDX-License-Identifier: GPL-2.0-only
/*
 * The frames of a game: at each refresh of a screen one thread works (input, simulation),
 * hands jobs to workers and does some of them itself, waits until all are done, and works
 * again (what it gives to the screen).
 *
 * frames SECONDS RATE WORKERS STEPS JOBS JOB_STEPS HOGS
 *
 * RATE refreshes a second; STEPS of work by that thread, a half before and a half after its
 * JOBS, each of JOB_STEPS. HOGS busy threads run beside. A frame that is not done by the next
 * refresh is shown at a later one: the refreshes in between are missed.
 *
 * Prints the share of refreshes that were missed, and how long after its refresh a frame was
 * done (p50, p99).
 */
#define _GNU_SOURCE
#include "../histogram.h"
#include "../threads.h"

enum { MAX_RATE = 10000, MAX_JOBS = 100000, MAX_STEPS = 1000000000 };

static uint64_t job_steps;
static unsigned int nr_jobs;
/* The word that workers wait for: a frame's jobs are there. */
static _Atomic uint32_t frame;
static _Atomic uint32_t next_job, jobs_left;

static void do_jobs(void)
{
	while (atomic_fetch_add(&next_job, 1) < nr_jobs) {
		work(job_steps);
		if (atomic_fetch_sub(&jobs_left, 1) == 1)
			futex_wake(&jobs_left, 1, WITHIN_PROCESS);
	}
}

static void *worker_main(void *arg)
{
	uint32_t seen = 0;

	(void)arg;
	begin_together();
	while (phase() != OVER) {
		futex_wait(&frame, seen, 0, WITHIN_PROCESS);
		seen = atomic_load(&frame);
		do_jobs();
	}
	return NULL;
}

static void *hog_main(void *arg)
{
	(void)arg;
	begin_together();
	while (phase() != OVER)
		work(1000);
	return NULL;
}

static void next_frame(void)
{
	atomic_fetch_add(&frame, 1);
	futex_wake(&frame, INT_MAX, WITHIN_PROCESS);
}

static void draw(uint64_t steps)
{
	uint32_t left;

	work(steps / 2);
	/* In this order: a worker that is late for the last frame may take a job of this one. */
	atomic_store(&jobs_left, nr_jobs);
	atomic_store(&next_job, 0);
	next_frame();
	do_jobs();
	while ((left = atomic_load(&jobs_left)))
		futex_wait(&jobs_left, left, 0, WITHIN_PROCESS);
	work(steps - steps / 2);
}

static void sleep_until(uint64_t ns)
{
	struct timespec at = { ns / NS_PER_S, ns % NS_PER_S };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

int main(int argc, char **argv)
{
	static struct histogram took;
	unsigned long refreshes, missed = 0, i;
	unsigned int rate, nr_workers, nr, t;
	uint64_t period, steps, due;
	pthread_t *threads;

	if (argc != 8) {
		fprintf(stderr, "usage: frames SECONDS RATE WORKERS STEPS JOBS JOB_STEPS HOGS\n");
		return 2;
	}
	rate = number(argv[2], 1, MAX_RATE);
	refreshes = number(argv[1], 1, MAX_SECONDS) * (unsigned long)rate;
	nr_workers = number(argv[3], 1, MAX_THREADS);
	steps = number(argv[4], 1, MAX_STEPS);
	nr_jobs = number(argv[5], 1, MAX_JOBS);
	job_steps = number(argv[6], 1, MAX_STEPS);
	nr = nr_workers + number(argv[7], 0, MAX_THREADS);
	period = NS_PER_S / rate;
	/* There are none before the first frame. */
	atomic_store(&next_job, nr_jobs);
	threads = allocate(nr, sizeof(*threads));
	expect_threads(nr + 1);
	for (t = 0; t < nr; t++)
		start_thread(&threads[t], t < nr_workers ? worker_main : hog_main, NULL);
	begin_together();
	due = now_ns() + period;
	for (i = 0; i < refreshes; i++) {
		uint64_t late;

		sleep_until(due);
		draw(steps);
		late = now_ns() - due;
		histogram_add(&took, late);
		missed += late / period;
		i += late / period;
		due += period * (1 + late / period);
	}
	atomic_store(&current_phase, OVER);
	next_frame();
	for (t = 0; t < nr; t++)
		join_thread(threads[t]);
	free(threads);
	printf("missed %.2f %% lower\n", 100.0 * missed / i);
	print_us("", "p50", percentile_ns(&took, 0.5));
	print_us("", "p99", percentile_ns(&took, 0.99));
	return 0;
}
