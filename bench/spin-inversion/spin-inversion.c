// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unsafe busy waiting, as Andreoli and Cucinotta found it in WiredTiger ("Inducing
 * Huge Tail Latency on a MongoDB deployment", 2023): one thread gives out ids, and
 * the others, which need the next one, spin until it is published. All of them are
 * restricted to fewer CPUs than they are, and those that spin have a nice value of
 * their own.
 *
 * spin-inversion SECONDS CPUS THREADS NICE pause|load|yield STEPS
 *
 * Printed are the publications per second, and the time from one to the next.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../common.h"

/* What a waiting thread does with an id, against STEPS between two of them. */
enum { SHARE_OF_STEPS = 10 };

static _Atomic uint64_t published;
static uint64_t steps, seconds;
static int spin_nice;
static void (*wait_for)(uint64_t);

static bool has_come(uint64_t id)
{
	return atomic_load_explicit(&published, memory_order_acquire) >= id;
}

static void wait_load(uint64_t id)
{
	while (!has_come(id))
		;
}

static void wait_pause(uint64_t id)
{
	while (!has_come(id)) {
#if defined(__x86_64__)
		__asm__ volatile("pause");
#elif defined(__aarch64__)
		__asm__ volatile("yield");
#endif
	}
}

static void wait_yield(uint64_t id)
{
	while (!has_come(id))
		sched_yield();
}

static __attribute__((noreturn)) void *spin(void *unused)
{
	(void)unused;
	/* Of this thread alone, on Linux. */
	if (setpriority(PRIO_PROCESS, gettid(), spin_nice))
		fail("cannot set the nice value");
	for (;;) {
		wait_for(atomic_load(&published) + 1);
		work(steps / SHARE_OF_STEPS);
	}
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Publishes until the time is over; the gaps between two, in ns, sorted. */
static uint64_t *publish(uint64_t begin, size_t *nr)
{
	size_t room = 1 << 20;
	uint64_t *gaps = malloc(room * sizeof(*gaps)), last = begin, now = begin;

	if (!gaps)
		fail("no memory");
	for (*nr = 0; now - begin < seconds * 1000000000ull; (*nr)++) {
		if (*nr == room) {
			gaps = realloc(gaps, (room *= 2) * sizeof(*gaps));
			if (!gaps)
				fail("no memory");
		}
		work(steps);
		atomic_fetch_add_explicit(&published, 1, memory_order_release);
		now = now_ns();
		gaps[*nr] = now - last;
		last = now;
	}
	qsort(gaps, *nr, sizeof(*gaps), by_value);
	return gaps;
}

/* To the first @nr of the CPUs that this process may use. */
static void restrict_to(int nr)
{
	cpu_set_t allowed, set;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		fail("cannot read the affinity");
	CPU_ZERO(&set);
	for (int cpu = 0; cpu < CPU_SETSIZE && nr > 0; cpu++)
		if (CPU_ISSET(cpu, &allowed)) {
			CPU_SET(cpu, &set);
			nr--;
		}
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("cannot set the affinity");
}

int main(int argc, char **argv)
{
	uint64_t begin, took, *gaps;
	pthread_t id;
	size_t nr;

	if (argc != 7) {
		fprintf(stderr, "spin-inversion: six arguments\n");
		return 2;
	}
	seconds = strtoull(argv[1], NULL, 0);
	restrict_to(atoi(argv[2]));
	spin_nice = atoi(argv[4]);
	wait_for = !strcmp(argv[5], "load")  ? wait_load :
		   !strcmp(argv[5], "yield") ? wait_yield :
					       wait_pause;
	steps = strtoull(argv[6], NULL, 0);

	begin = now_ns();
	for (int i = 0; i < atoi(argv[3]); i++)
		if (pthread_create(&id, NULL, spin, NULL))
			fail("cannot start a thread");
	gaps = publish(begin, &nr);
	took = now_ns() - begin;

	printf("published %.1f 1/s higher\n", nr * 1e9 / took);
	printf("gap_p99 %.3f ms lower\n", gaps[nr - 1 - nr / 100] / 1e6);
	printf("gap_longest %.3f ms lower\n", gaps[nr - 1] / 1e6);
	fflush(stdout);
	/* Those that spin still wait for the next one. */
	_exit(0);
}
