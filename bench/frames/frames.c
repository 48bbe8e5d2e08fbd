// SPDX-License-Identifier: GPL-2.0-only
/*
 * The frames of a game: at each refresh of a screen one thread works (input, simulation),
 * hands jobs to workers and does some of them itself, waits until all are done, and works
 * again (what it gives to the screen).
 *
 * frames SECONDS RATE WORKERS STEPS JOBS JOB_STEPS HOGS
 *
 * RATE refreshes a second; STEPS of work by that thread, a half before and a half after its
 * JOBS, each of JOB_STEPS. HOGS busy threads run beside. What it prints, ../refreshes.h says.
 */
#define _GNU_SOURCE
#include "../refreshes.h"
#include "../threads.h"

enum { MAX_JOBS = 100000, MAX_STEPS = 1000000000 };

static uint64_t steps, job_steps;
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

static void draw(void)
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

int main(int argc, char **argv)
{
	unsigned int nr_workers, nr, t;
	long seconds, rate;
	pthread_t *threads;

	if (argc != 8) {
		fprintf(stderr, "usage: frames SECONDS RATE WORKERS STEPS JOBS JOB_STEPS HOGS\n");
		return 2;
	}
	seconds = number(argv[1], 1, MAX_SECONDS);
	rate = number(argv[2], 1, MAX_RATE);
	nr_workers = number(argv[3], 1, MAX_THREADS);
	steps = number(argv[4], 1, MAX_STEPS);
	nr_jobs = number(argv[5], 1, MAX_JOBS);
	job_steps = number(argv[6], 1, MAX_STEPS);
	nr = nr_workers + number(argv[7], 0, MAX_THREADS);
	/* There are none before the first frame. */
	atomic_store(&next_job, nr_jobs);
	threads = allocate(nr, sizeof(*threads));
	expect_threads(nr + 1);
	for (t = 0; t < nr; t++)
		start_thread(&threads[t], t < nr_workers ? worker_main : hog_main, NULL);
	begin_together();
	draw_frames(seconds, rate, draw);
	atomic_store(&current_phase, OVER);
	next_frame();
	for (t = 0; t < nr; t++)
		join_thread(threads[t]);
	free(threads);
	return 0;
}
