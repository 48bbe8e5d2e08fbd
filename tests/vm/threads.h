/* SPDX-License-Identifier: GPL-2.0-only */
/* What the programs that put loads of locks on a scheduler have in common. */
#ifndef FREQLOCK_TEST_THREADS_H
#define FREQLOCK_TEST_THREADS_H

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "timing.h"

static inline void set_nice(int nice)
{
	if (setpriority(PRIO_PROCESS, gettid(), nice))
		die("setpriority: %s", strerror(errno));
}

static inline void pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity: %s", strerror(errno));
}

static pthread_t start(void *(*body)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	err = pthread_create(&thread, &attr, body, arg);
	if (err)
		die("pthread_create: %s", strerror(err));
	return thread;
}

static volatile bool stop;

static inline void wait_for(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

/* Where hogs are, -1 for anywhere. */
static int hog_cpu;

static inline void *hog(void *arg)
{
	pin(hog_cpu);
	set_nice(*(int *)arg);
	while (!stop)
		;
	return NULL;
}

struct command {
	const char *name;
	void (*run)(void);
};

/* Runs what argv[1] names. */
static int run_command(const struct command *commands, size_t n, int argc, char **argv)
{
	if (argc < 2)
		die("usage: %s COMMAND [name=value ...]", argv[0]);
	params = argv + 2;
	for (size_t i = 0; i < n; i++)
		if (!strcmp(argv[1], commands[i].name)) {
			commands[i].run();
			return 0;
		}
	die("no load is called '%s'", argv[1]);
}

#endif /* FREQLOCK_TEST_THREADS_H */
