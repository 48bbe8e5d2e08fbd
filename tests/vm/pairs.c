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
#include "tasks.h"

enum { MAX_PAIRS = 64 };

/* What they report, beside each pair's passes, which are its note's checks. */
static struct {
	volatile uint64_t asked, longest, nr;
} *report;

static int to_wakee[2];

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

static void open_pipe(int ends[2])
{
	if (pipe(ends))
		die("pipe: %s", strerror(errno));
}

/* A pair's pipes, until its two processes have them. */
static int there[2], back[2];

static void answer(int i)
{
	(void)i;
	for (;;) {
		take(there[0]);
		burn_us(number("work-us", 10));
		pass(back[1]);
	}
}

static void ask(int i)
{
	for (;;) {
		pass(there[1]);
		take(back[0]);
		burn_us(number("work-us", 10));
		shared->task[i].checks++;
	}
}

static void cmd_talk(void)
{
	long n = number("n", 8), i;
	uint64_t before[MAX_PAIRS], least = UINT64_MAX, most = 0, sum = 0;

	if (n < 1 || n > MAX_PAIRS)
		die("n is 1 to %d", MAX_PAIRS);
	for (i = 0; i < n; i++) {
		open_pipe(there);
		open_pipe(back);
		spawn(answer, i);
		spawn(ask, i);
	}
	/* Where they are at first is of no concern. */
	sleep_us(100000);
	for (i = 0; i < n; i++)
		before[i] = shared->task[i].checks;
	sleep_us(number("ms", 400) * 1000);
	for (i = 0; i < n; i++) {
		uint64_t passes = shared->task[i].checks - before[i];

		least = passes < least ? passes : least;
		most = passes > most ? passes : most;
		sum += passes;
	}
	printf("least=%lu most=%lu sum=%lu\n", least, most, sum);
}

static void wakee(int i)
{
	(void)i;
	for (;;) {
		uint64_t waited;

		take(to_wakee[0]);
		waited = clock_ns(CLOCK_MONOTONIC) - report->asked;
		if (waited > report->longest)
			report->longest = waited;
		report->nr++;
	}
}

static void cmd_lie(void)
{
	long n = number("n", 40), i, cpus = sysconf(_SC_NPROCESSORS_ONLN);

	report = share(sizeof(*report));
	open_pipe(to_wakee);
	for (i = 1; i < cpus; i++)
		spawn_hog(i, i);
	spawn(wakee, 0);
	pin(0, 0);
	for (i = 0; i < n; i++) {
		sleep_us(5000);
		report->asked = clock_ns(CLOCK_MONOTONIC);
		pass(to_wakee[1]);
		burn_us(number("work-us", 20000));
	}
	sleep_us(100000);
	printf("waited=%lu nr=%lu\n", report->longest / 1000, report->nr);
}

static const struct command commands[] = { { "talk", cmd_talk }, { "lie", cmd_lie }, {} };

int main(int argc, char **argv)
{
	return run_command("pairs", commands, argc, argv);
}
