// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who gets a lock next: threads on two CPUs, on each of which a loop runs too, take one lock again
 * and again. Prints how often it went to the first CPU, and how often it stayed where it was, of a
 * thousand, as a line of name=value pairs.
 *
 *   order taken ms=1000 threads=2 hold-us=200 pause-us=200 cpu=0 other=1
 */
#include "threads.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t taken[2], stayed;
static long hold_us, pause_us;
static volatile bool measuring;

static long cpu_of(long side)
{
	return side ? number("other", 1) : number("cpu", 0);
}

static void *member(void *arg)
{
	static long last;
	long side = (long)arg;

	pin(cpu_of(side));
	while (!stop) {
		pthread_mutex_lock(&lock);
		if (measuring) {
			taken[side]++;
			stayed += last == side;
		}
		last = side;
		burn_us(hold_us);
		pthread_mutex_unlock(&lock);
		burn_us(pause_us);
	}
	return NULL;
}

static void *loop_beside(void *arg)
{
	pin(cpu_of((long)arg));
	while (!stop)
		;
	return NULL;
}

static void cmd_taken(void)
{
	long threads = number("threads", 2), nr = 0;
	pthread_t thread[64];
	uint64_t all;

	hold_us = number("hold-us", 200);
	pause_us = number("pause-us", 200);
	if (threads < 1 || threads > 31)
		die("threads is not in 1..31");
	for (long side = 0; side < 2; side++) {
		thread[nr++] = start(loop_beside, (void *)side);
		for (long i = 0; i < threads; i++)
			thread[nr++] = start(member, (void *)side);
	}
	sleep_us(20000);
	measuring = true;
	sleep_us(number("ms", 1000) * 1000);
	measuring = false;
	stop = true;
	while (nr)
		pthread_join(thread[--nr], NULL);
	all = taken[0] + taken[1];
	if (!all)
		die("nobody took the lock");
	printf("first_permille=%lu stayed_permille=%lu taken=%lu\n", taken[0] * 1000 / all,
	       stayed * 1000 / all, all);
}

static const struct command commands[] = { { "taken", cmd_taken } };

int main(int argc, char **argv)
{
	return run_command(commands, 1, argc, argv);
}
