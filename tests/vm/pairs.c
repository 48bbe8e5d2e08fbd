// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes that wake each other over pipes, which says to the scheduler that the waker is
 * about to sleep. Prints one line of name=value pairs; the tests judge.
 *
 *   pairs talk n=8 ms=400 work-us=10
 *	n pairs that pass a byte to and fro and work between: the passes of the pair that
 *	has least, of that which has most, and of all
 *   pairs lie n=40 work-us=20000
 *	beside busy loops on all other CPUs, one that wakes another and then works on: how
 *	long that one waited, in us, at most
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "timing.h"

enum { MAX_PAIRS = 64 };

static struct {
	volatile uint64_t passes[MAX_PAIRS];
	volatile uint64_t asked, longest, nr;
} *shared;

static void pass(int fd)
{
	if (write(fd, "", 1) != 1)
		_exit(0);
}

static void take(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		_exit(0);
}

static bool is_child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return !pid;
}

static void open_pipe(int ends[2])
{
	if (pipe(ends))
		die("pipe: %s", strerror(errno));
}

static void begin_pair(long i, long work_us)
{
	int to[2], back[2];

	open_pipe(to);
	open_pipe(back);
	if (is_child())
		for (;;) {
			take(to[0]);
			burn_us(work_us);
			pass(back[1]);
		}
	if (is_child())
		for (;;) {
			pass(to[1]);
			take(back[0]);
			burn_us(work_us);
			shared->passes[i]++;
		}
}

static void cmd_talk(void)
{
	long n = number("n", 8), i;
	uint64_t before[MAX_PAIRS], least = UINT64_MAX, most = 0, sum = 0;

	if (n < 1 || n > MAX_PAIRS)
		die("n is 1 to %d", MAX_PAIRS);
	for (i = 0; i < n; i++)
		begin_pair(i, number("work-us", 10));
	/* Where they are at first is of no concern. */
	sleep_us(100000);
	for (i = 0; i < n; i++)
		before[i] = shared->passes[i];
	sleep_us(number("ms", 400) * 1000);
	for (i = 0; i < n; i++) {
		uint64_t passes = shared->passes[i] - before[i];

		least = passes < least ? passes : least;
		most = passes > most ? passes : most;
		sum += passes;
	}
	printf("least=%lu most=%lu sum=%lu\n", least, most, sum);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity: %s", strerror(errno));
}

static void cmd_lie(void)
{
	long n = number("n", 40), i, cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int to[2];

	open_pipe(to);
	for (i = 1; i < cpus; i++)
		if (is_child()) {
			pin(i);
			for (;;)
				;
		}
	if (is_child())
		for (;;) {
			uint64_t waited;

			take(to[0]);
			waited = clock_ns(CLOCK_MONOTONIC) - shared->asked;
			if (waited > shared->longest)
				shared->longest = waited;
			shared->nr++;
		}
	pin(0);
	for (i = 0; i < n; i++) {
		sleep_us(5000);
		shared->asked = clock_ns(CLOCK_MONOTONIC);
		pass(to[1]);
		burn_us(number("work-us", 20000));
	}
	sleep_us(100000);
	printf("waited=%lu nr=%lu\n", shared->longest / 1000, shared->nr);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		die("usage: pairs talk|lie [name=value ...]");
	params = argv + 2;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		die("out of memory");
	if (!strcmp(argv[1], "talk"))
		cmd_talk();
	else if (!strcmp(argv[1], "lie"))
		cmd_lie();
	else
		die("no load is called '%s'", argv[1]);
	return 0;
}
