// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes that share a CPU and exit, and what the kernel itself counted of them:
 *
 *   figures n=3 cpu=0 ms=200
 *	n processes, each until it has had so many ms of the CPU: what all of
 *	them, and the one that made them, ran and waited, in ns, and how often
 *	they were given a CPU, by /proc/PID/schedstat
 *   figures n=0 threads=5000
 *	so many threads, one after the other
 *   figures n=0 sleepers=5000
 *	so many threads that sleep until they are killed
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "params.h"

struct figures {
	uint64_t run_ns, wait_ns, picked;
};

static struct figures own_figures(void)
{
	FILE *file = fopen("/proc/self/schedstat", "r");
	struct figures f;

	if (!file || fscanf(file, "%lu %lu %lu", &f.run_ns, &f.wait_ns, &f.picked) != 3)
		die("/proc/self/schedstat: %s", strerror(errno));
	fclose(file);
	return f;
}

static void run_for(uint64_t ms)
{
	struct timespec now;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	while (now.tv_sec * 1000ull + now.tv_nsec / 1000000 < ms);
}

static void *nothing(void *arg)
{
	return arg;
}

static void *sleeps(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void run_sleepers(int n)
{
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (int i = 0; i < n; i++)
		if (pthread_create(&thread, &small, sleeps, NULL))
			die("no thread");
	if (n)
		sleeps(NULL);
}

static void run_threads(int n)
{
	pthread_t thread;

	for (int i = 0; i < n; i++)
		if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL))
			die("no thread");
}

int main(int argc, char **argv)
{
	struct figures sum, f;
	int n, pipe_fd[2];
	uint64_t ms;
	cpu_set_t cpu;

	(void)argc;
	params = argv + 1;
	n = atoi(param("n", "3"));
	ms = strtoull(param("ms", "200"), NULL, 10);
	CPU_ZERO(&cpu);
	CPU_SET(atoi(param("cpu", "0")), &cpu);
	if (pipe(pipe_fd))
		die("cannot start: %s", strerror(errno));
	run_threads(atoi(param("threads", "0")));
	run_sleepers(atoi(param("sleepers", "0")));
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork: %s", strerror(errno));
		if (pid)
			continue;
		/* Not their parent, which would take its turn when they have counted. */
		if (sched_setaffinity(0, sizeof(cpu), &cpu))
			die("sched_setaffinity: %s", strerror(errno));
		run_for(ms);
		f = own_figures();
		if (write(pipe_fd[1], &f, sizeof(f)) != sizeof(f))
			die("write: %s", strerror(errno));
		_exit(0);
	}
	memset(&sum, 0, sizeof(sum));
	for (int i = 0; i <= n; i++) {
		if (i == n) {
			while (wait(NULL) > 0)
				;
			f = own_figures();
		} else if (read(pipe_fd[0], &f, sizeof(f)) != sizeof(f)) {
			die("read: %s", strerror(errno));
		}
		sum.run_ns += f.run_ns;
		sum.wait_ns += f.wait_ns;
		sum.picked += f.picked;
	}
	printf("run_ns=%lu wait_ns=%lu picked=%lu\n", sum.run_ns, sum.wait_ns, sum.picked);
	return 0;
}
