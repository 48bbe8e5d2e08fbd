// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes in a cgroup with a quota. Each command prints what it saw as one line of name=value
 * pairs and judges nothing. dir= is the folder of the cgroup.
 *
 *   quota loops dir= n=8 warm-ms=500 ms=2000
 *	so many busy loops: what they used, in thousandths of a CPU, and for how long none of
 *	them ran at most, in us
 *   quota naps dir= n=8 work-us=300 nap-us=1000 ms=2000
 *	so many that work and sleep in turns: the same
 *   quota burst dir= ms=1000
 *	one that sleeps for so long, then runs: what it ran before it was kept from that, in us
 *   quota holder dir= n=10 hold-us=15000
 *	one that holds a lock for so much of its CPU time, for which one outside waits: for how
 *	long that one waited at most and in the mean, in us
 *   quota killed dir= n=40 ms=500
 *	so many loops that are killed after so long: until all are gone, in us
 *	then=QUOTA/PERIOD: the quota from the moment when all run, of loops and killed
 *   quota crowd dir= n=100 ms=10000 quota="1000 100000"
 *	so many cgroups below dir, each with that quota and a loop: what they used, in thousandths
 *	of a CPU, least and most of one in us, and for how long one did not run at most, in us
 */
#define _GNU_SOURCE
#include <pthread.h>
#include "groups.h"

enum { MAX_CROWD = 1024, GAP_NS = 5 * 1000 * 1000, LOOK_ROUNDS = 4000 };

/* Of a loop, in a cache line of its own. */
struct __attribute__((aligned(64))) seat {
	volatile uint64_t last, gap, used;
};

static struct board {
	struct seat seat[MAX_CROWD];
	volatile uint64_t last; /* any of them ran */
	volatile uint64_t gap;
	volatile uint64_t since; /* gaps and use before it do not count */
	volatile int ready;
	pthread_mutex_t lock;
	volatile int held, rounds, waits;
} *board;

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Raise @most to @value, which another may do at the same time; what it was before. */
static uint64_t raise_to(volatile uint64_t *most, uint64_t value)
{
	uint64_t seen = *most, was;

	while (seen < value) {
		was = __sync_val_compare_and_swap(most, seen, value);
		if (was == seen)
			break;
		seen = was;
	}
	return seen;
}

/* It ran at @at: notes for how long it, and all of them, did not. */
static void note(struct seat *seat, uint64_t at)
{
	uint64_t since = board->since, last = raise_to(&board->last, at);
	uint64_t own = seat->last > since ? seat->last : since;

	seat->last = at;
	if (!since || at < since)
		return;
	if (at > own && at - own > seat->gap)
		seat->gap = at - own;
	last = last > since ? last : since;
	if (at > last)
		raise_to(&board->gap, at - last);
}

/*
 * Seldom: reading that clock is mostly spent under RCU, where a task is not throttled, and would be
 * all that it does.
 */
static void look_at_clock(struct seat *seat)
{
	for (volatile int i = 0; i < LOOK_ROUNDS; i++)
		;
	seat->used = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void loop_in(const char *folder, int i)
{
	struct seat *seat = &board->seat[i];

	enter(folder);
	__sync_fetch_and_add(&board->ready, 1);
	for (;;) {
		look_at_clock(seat);
		note(seat, now_ns());
	}
}

static void loop(int i)
{
	loop_in(dir(), i);
}

static void nap(int i)
{
	long work = number("work-us", 300), sleeps = number("nap-us", 1000);

	enter(dir());
	__sync_fetch_and_add(&board->ready, 1);
	for (;;) {
		burn_us(work);
		note(&board->seat[i], now_ns());
		board->seat[i].used = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		sleep_us(sleeps);
	}
}

static pid_t pids[MAX_CROWD];

static int nr(long preset)
{
	long n = number("n", preset);

	if (n < 1 || n > MAX_CROWD)
		die("n=%ld", n);
	return n;
}

static void kill_all(int n)
{
	for (int i = 0; i < n; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < n; i++)
		waitpid(pids[i], NULL, 0);
}

static uint64_t used_by(int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += board->seat[i].used;
	return sum;
}

/* QUOTA/PERIOD, us. */
static void write_quota(const char *text)
{
	char quota[64], *slash;

	snprintf(quota, sizeof(quota), "%s", text);
	slash = strchr(quota, '/');
	if (!slash)
		die("%s is not QUOTA/PERIOD", text);
	*slash = ' ';
	write_file(dir(), "cpu.max", quota);
}

/* All are in their cgroups, and have the quota that then= says from now on. */
static void await_all(int n)
{
	while (board->ready < n)
		sleep_us(1000);
	if (param("then", NULL))
		write_quota(param("then", NULL));
}

/* They have run for a while. Then what they used is taken anew. */
static uint64_t warm_up(int n)
{
	await_all(n);
	sleep_us(number("warm-ms", 500) * 1000);
	board->since = now_ns();
	return used_by(n);
}

static void run_tasks(void (*body)(int))
{
	int n = nr(8);
	uint64_t used, began;

	for (int i = 0; i < n; i++)
		pids[i] = spawn(body, i);
	used = warm_up(n);
	began = now_ns();
	sleep_us(number("ms", 2000) * 1000);
	used = used_by(n) - used;
	began = now_ns() - began;
	kill_all(n);
	printf("permille=%lu gap_us=%lu\n", used * 1000 / began, board->gap / 1000);
}

static void loops(void)
{
	run_tasks(loop);
}

static void naps(void)
{
	run_tasks(nap);
}

static void burst_body(int i)
{
	uint64_t last, at;

	(void)i;
	enter(dir());
	/* That it is there is seen when it runs. */
	sleep_us(1000);
	sleep_us(number("ms", 1000) * 1000);
	for (last = now_ns(); (at = now_ns()) - last < GAP_NS; last = at)
		look_at_clock(&board->seat[0]);
	_exit(0);
}

static void burst(void)
{
	reap(spawn(burst_body, 0));
	printf("ran_us=%lu\n", board->seat[0].used / 1000);
}

static void hold(int i)
{
	long hold_us = number("hold-us", 15000);

	(void)i;
	enter(dir());
	for (;;) {
		/* One that waits has it first. */
		while (board->rounds == board->held)
			sleep_us(500);
		pthread_mutex_lock(&board->lock);
		board->held++;
		burn_us(hold_us);
		pthread_mutex_unlock(&board->lock);
	}
}

static void holder(void)
{
	int n = nr(10);
	uint64_t total = 0, most = 0, began;
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&board->lock, &attr);
	pids[0] = spawn(hold, 0);
	for (int i = 0; i < n; i++) {
		board->rounds++;
		while (board->held != board->rounds)
			sleep_us(200);
		began = now_ns();
		pthread_mutex_lock(&board->lock);
		began = now_ns() - began;
		pthread_mutex_unlock(&board->lock);
		total += began;
		most = began > most ? began : most;
	}
	kill_all(1);
	printf("mean_us=%lu max_us=%lu\n", total / n / 1000, most / 1000);
}

static void killed(void)
{
	int n = nr(40);
	uint64_t began;

	for (int i = 0; i < n; i++)
		pids[i] = spawn(loop, i);
	await_all(n);
	sleep_us(number("ms", 500) * 1000);
	began = now_ns();
	kill_all(n);
	printf("gone_us=%lu\n", (now_ns() - began) / 1000);
}

static char below[MAX_CROWD][300];

static void crowd_loop(int i)
{
	loop_in(below[i], i);
}

static void crowd(void)
{
	const char *quota = param("quota", "1000 100000");
	uint64_t used, began, least = ~0ull, most = 0, gap = 0, before[MAX_CROWD];
	int n = nr(100);

	for (int i = 0; i < n; i++) {
		snprintf(below[i], sizeof(below[i]), "%s/%d", dir(), i);
		if (mkdir(below[i], 0755))
			die("%s: %s", below[i], strerror(errno));
		write_file(below[i], "cpu.max", quota);
		pids[i] = spawn(crowd_loop, i);
	}
	used = warm_up(n);
	for (int i = 0; i < n; i++)
		before[i] = board->seat[i].used;
	began = now_ns();
	sleep_us(number("ms", 10000) * 1000);
	used = used_by(n) - used;
	began = now_ns() - began;
	for (int i = 0; i < n; i++) {
		uint64_t own = board->seat[i].used - before[i];

		least = own < least ? own : least;
		most = own > most ? own : most;
		gap = board->seat[i].gap > gap ? board->seat[i].gap : gap;
	}
	kill_all(n);
	for (int i = 0; i < n; i++)
		if (rmdir(below[i]))
			die("rmdir %s: %s", below[i], strerror(errno));
	printf("permille=%lu least_us=%lu most_us=%lu gap_us=%lu\n", used * 1000 / began,
	       least / 1000, most / 1000, gap / 1000);
}

static const struct command commands[] = {
	{ "loops", loops },   { "naps", naps },   { "burst", burst }, { "holder", holder },
	{ "killed", killed }, { "crowd", crowd }, { NULL, NULL },
};

int main(int argc, char **argv)
{
	board = share(sizeof(*board));
	return run_command("quota", commands, argc, argv);
}
