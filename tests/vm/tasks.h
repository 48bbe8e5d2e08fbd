/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks for the loads of tests: how they are made and ended, and what they report, in memory
 * that they share with who made them.
 */
#ifndef FREQLOCK_TEST_TASKS_H
#define FREQLOCK_TEST_TASKS_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "share.h"
#include "timing.h"

enum {
	MAX_CPUS = 1024,
	MAX_TASKS = 256,
	/* Longest wait for something that a working scheduler does at once. */
	PATIENCE_MS = 20000,
};

/* What a task reports about itself; each has a page of its own in shared memory. */
struct task_note {
	volatile int cpu;  /* where it ran last, -1 before it ran */
	volatile int goal; /* requeue: where it is expected */
	volatile long checks;
	volatile long wrong;
	volatile uint64_t seen[MAX_CPUS]; /* loops done on each CPU */
};

static struct shared {
	volatile bool stop;
	volatile bool count; /* hogs: count loops only while this is set */
	struct task_note task[MAX_TASKS];
} *shared;

static cpu_set_t all_cpus;

static inline void set_affinity(pid_t pid, const cpu_set_t *set)
{
	if (sched_setaffinity(pid, sizeof(*set), set))
		die("sched_setaffinity(%d): %s", pid, strerror(errno));
}

static inline void pin(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	set_affinity(pid, &set);
}

/* Move to a CPU and be free to leave it again. */
static inline void go_to(int cpu)
{
	if (cpu < 0)
		return;
	pin(0, cpu);
	set_affinity(0, &all_cpus);
}

/* A child that cannot outlive the test. */
static inline pid_t spawn(void (*body)(int), int i)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		body(i);
		_exit(0);
	}
	return pid;
}

static inline void reap(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("waitpid: %s", strerror(errno));
	if (status)
		die("task %d ended with status 0x%x", pid, status);
}

/* One byte through a pipe is how a task reports to its parent that it got somewhere. */
static int bell[2];

static inline void ring(void)
{
	/* Full is loud enough. */
	if (write(bell[1], "", 1) != 1 && errno != EAGAIN)
		_exit(3);
}

static inline bool wait_for_bell(void)
{
	struct pollfd fd = { .fd = bell[0], .events = POLLIN };
	char byte;

	if (poll(&fd, 1, PATIENCE_MS) != 1)
		return false;
	return read(bell[0], &byte, 1) == 1;
}

static inline int by_count(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* Where the events happened, and how many on the busiest one and two CPUs. */
static inline void print_spread(const uint64_t *events)
{
	uint64_t sorted[MAX_CPUS];
	uint64_t total = 0;
	int cpus = 0;

	memcpy(sorted, events, sizeof(sorted));
	for (int i = 0; i < MAX_CPUS; i++) {
		total += sorted[i];
		cpus += sorted[i] > 0;
	}
	qsort(sorted, MAX_CPUS, sizeof(*sorted), by_count);
	printf("events=%lu cpus=%d top1=%lu top2=%lu", total, cpus, sorted[0],
	       sorted[0] + sorted[1]);
	for (int i = 0; i < MAX_CPUS; i++)
		if (CPU_ISSET(i, &all_cpus))
			printf(" on%d=%lu", i, events[i]);
	printf("\n");
}

/* Loops until told to stop; rings whenever it comes to another CPU. */
static inline void hog(int i)
{
	struct task_note *note = &shared->task[i];

	while (!shared->stop) {
		int cpu = sched_getcpu();

		if (shared->count)
			note->seen[cpu]++;
		if (note->cpu != cpu) {
			note->cpu = cpu;
			ring();
		}
		for (volatile int spin = 0; spin < 2000; spin++)
			;
	}
}

static inline pid_t spawn_hog(int i, int cpu)
{
	pid_t pid;

	shared->task[i].cpu = -1;
	pid = spawn(hog, i);
	if (cpu >= 0)
		pin(pid, cpu);
	return pid;
}

static inline void stop_hogs(const pid_t *pid, int n)
{
	shared->stop = true;
	for (int i = 0; i < n; i++)
		reap(pid[i]);
}

struct command {
	const char *name;
	void (*run)(void);
};

/* Runs the command that is asked for, one of a list that ends with no name. */
static inline int run_command(const char *program, const struct command *commands, int argc,
			      char **argv)
{
	if (argc < 2)
		die("usage: %s COMMAND [name=value ...]", program);
	params = argv + 2;
	shared = share(sizeof(*shared));
	if (pipe(bell) || fcntl(bell[1], F_SETFL, O_NONBLOCK))
		die("pipe: %s", strerror(errno));
	if (sched_getaffinity(0, sizeof(all_cpus), &all_cpus))
		die("sched_getaffinity: %s", strerror(errno));
	for (; commands->name; commands++)
		if (!strcmp(argv[1], commands->name)) {
			commands->run();
			return 0;
		}
	die("no load is called '%s'", argv[1]);
}

#endif /* FREQLOCK_TEST_TASKS_H */
