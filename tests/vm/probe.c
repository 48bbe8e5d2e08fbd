// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a simulated machine's guest sees of the model: known numbers of
 * instructions on chosen CPUs, and the time that they take there. Each command
 * prints one line of name=value pairs, times in nanoseconds. It judges nothing:
 * the tests do, by closed forms.
 *
 *   probe spin cpus=0,1 insns=1000000 n=1 heat=0 idle-us=0
 *	on all these CPUs at once, first so many instructions (heat) and so much
 *	idleness, then n times so many instructions: the least and the median
 *	time of these, and of all together
 *   probe move from=0 to=1 insns=1000000
 *	instructions right after a move
 *   probe copy bytes=1000000 (x86)
 *	as many bytes by rep movsq
 *   probe clocks cpus=0,1 n=1000
 *	reads the clocks on one CPU after the other: how often the next reader
 *	saw an earlier time than the one before it
 *   probe wake from=0 to=1 n=100
 *	from a write into a pipe to the return of the read that slept for it, on
 *	another CPU: least, median, most
 *   probe sleep s=1
 *	what the clocks say of a sleep
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "params.h"

enum { MAX_CPUS = 64, MAX_TIMES = 10000 };

static uint64_t number(const char *name, const char *preset)
{
	return strtoull(param(name, preset), NULL, 10);
}

/* The CPUs of "0,2,3": how many there are. */
static int list(const char *name, int *cpus)
{
	const char *text = param(name, "0");
	int n = 0;

	while (*text && n < MAX_CPUS) {
		char *end;

		cpus[n++] = (int)strtol(text, &end, 10);
		if (end == text)
			die("%s is not a list of CPUs", name);
		text = *end ? end + 1 : end;
	}
	return n;
}

static void pin(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		die("CPU %d: %s", cpu, strerror(errno));
}

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t read_tsc(void)
{
#if defined(__x86_64__)
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
#else
	uint64_t t;

	__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(t) : : "memory");
	return t;
#endif
}

/* That many instructions, two of which are a turn of the loop. */
static void work(uint64_t insns)
{
	uint64_t turns = insns / 2;

	if (!turns)
		return;
#if defined(__x86_64__)
	__asm__ volatile("1: dec %0; jnz 1b" : "+r"(turns) : : "cc");
#else
	__asm__ volatile("1: subs %0, %0, #1; b.ne 1b" : "+r"(turns) : : "cc");
#endif
}

static void sleep_us(uint64_t us)
{
	struct timespec t = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };

	while (us && nanosleep(&t, &t) && errno == EINTR)
		;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static pthread_barrier_t together;

struct spinner {
	int cpu;
	pthread_t thread;
	uint64_t all;
	uint64_t time[MAX_TIMES];
};

static void *spin(void *arg)
{
	uint64_t insns = number("insns", "1000000"), n = number("n", "1"), begin, last, now;
	struct spinner *s = arg;

	pin(s->cpu);
	pthread_barrier_wait(&together);
	work(number("heat", "0"));
	sleep_us(number("idle-us", "0"));
	begin = last = read_clock(CLOCK_MONOTONIC);
	for (uint64_t i = 0; i < n; i++) {
		work(insns);
		now = read_clock(CLOCK_MONOTONIC);
		s->time[i] = now - last;
		last = now;
	}
	s->all = last - begin;
	return NULL;
}

static void cmd_spin(void)
{
	static struct spinner spinners[MAX_CPUS];
	int cpus[MAX_CPUS], nr = list("cpus", cpus);
	uint64_t n = number("n", "1");

	if (!n || n > MAX_TIMES)
		die("n is 1 to %d", MAX_TIMES);
	pthread_barrier_init(&together, NULL, (unsigned int)nr);
	for (int i = 0; i < nr; i++) {
		spinners[i].cpu = cpus[i];
		/* Touched before it is timed. */
		memset(spinners[i].time, 0xff, n * sizeof(uint64_t));
		if (pthread_create(&spinners[i].thread, NULL, spin, &spinners[i]))
			die("no thread for CPU %d", cpus[i]);
	}
	for (int i = 0; i < nr; i++) {
		struct spinner *s = &spinners[i];

		pthread_join(s->thread, NULL);
		qsort(s->time, n, sizeof(uint64_t), by_value);
		printf("least%d=%lu median%d=%lu all%d=%lu ", s->cpu, s->time[0], s->cpu,
		       s->time[n / 2], s->cpu, s->all);
	}
	printf("\n");
}

static void cmd_move(void)
{
	uint64_t insns = number("insns", "1000000"), begin;
	int to = (int)number("to", "1");

	pin((int)number("from", "0"));
	work(insns);
	pin(to);
	begin = read_clock(CLOCK_MONOTONIC);
	work(insns);
	printf("all%d=%lu\n", to, read_clock(CLOCK_MONOTONIC) - begin);
}

static void cmd_copy(void)
{
#if defined(__x86_64__)
	size_t bytes = number("bytes", "1000000") / 8 * 8, words = bytes / 8;
	void *from = malloc(bytes), *to = malloc(bytes), *source = from, *target = to;
	uint64_t begin, took;

	if (!from || !to)
		die("no memory for %zu bytes", bytes);
	/* Touched before it is timed. */
	memset(from, 1, bytes);
	memset(to, 2, bytes);
	begin = read_clock(CLOCK_MONOTONIC);
	__asm__ volatile("rep movsq" : "+S"(source), "+D"(target), "+c"(words) : : "memory");
	took = read_clock(CLOCK_MONOTONIC) - begin;
	printf("all=%lu same=%d\n", took, !memcmp(from, to, bytes));
#else
	die("rep movsq is x86's");
#endif
}

static struct {
	int turn;
	uint64_t n;
	uint64_t monotonic;
	uint64_t tsc;
	uint64_t earlier;
} relay;

struct reader {
	int cpu, place, next;
	pthread_t thread;
};

static void *read_in_turn(void *arg)
{
	const struct reader *r = arg;

	pin(r->cpu);
	pthread_barrier_wait(&together);
	for (uint64_t i = 0; i < relay.n; i++) {
		uint64_t monotonic, tsc;

		while (__atomic_load_n(&relay.turn, __ATOMIC_ACQUIRE) != r->place)
#if defined(__x86_64__)
			__asm__ volatile("pause");
#else
			__asm__ volatile("yield");
#endif
		tsc = read_tsc();
		monotonic = read_clock(CLOCK_MONOTONIC);
		relay.earlier += monotonic < relay.monotonic || tsc < relay.tsc;
		/* Read anew: what the next one sees comes after this. */
		relay.monotonic = read_clock(CLOCK_MONOTONIC);
		relay.tsc = read_tsc();
		__atomic_store_n(&relay.turn, r->next, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void cmd_clocks(void)
{
	static struct reader readers[MAX_CPUS];
	int cpus[MAX_CPUS], nr = list("cpus", cpus);

	relay.n = number("n", "1000");
	pthread_barrier_init(&together, NULL, (unsigned int)nr);
	for (int i = 0; i < nr; i++) {
		readers[i] = (struct reader){ .cpu = cpus[i], .place = i, .next = (i + 1) % nr };
		if (pthread_create(&readers[i].thread, NULL, read_in_turn, &readers[i]))
			die("no thread for CPU %d", cpus[i]);
	}
	for (int i = 0; i < nr; i++)
		pthread_join(readers[i].thread, NULL);
	printf("reads=%lu earlier=%lu\n", relay.n * (uint64_t)nr, relay.earlier);
}

static uint64_t written[MAX_TIMES];
static int wake_pipe[2];

static void *write_now_and_then(void *arg)
{
	uint64_t n = number("n", "100");

	(void)arg;
	pin((int)number("from", "0"));
	for (uint64_t i = 0; i < n; i++) {
		sleep_us(1000);
		written[i] = read_clock(CLOCK_MONOTONIC);
		if (write(wake_pipe[1], "", 1) != 1)
			die("write: %s", strerror(errno));
	}
	return NULL;
}

static void cmd_wake(void)
{
	static uint64_t time[MAX_TIMES];
	uint64_t n = number("n", "100");
	pthread_t writer;
	char byte;

	if (!n || n > MAX_TIMES)
		die("n is 1 to %d", MAX_TIMES);
	pin((int)number("to", "1"));
	if (pipe(wake_pipe) || pthread_create(&writer, NULL, write_now_and_then, NULL))
		die("no pipe, or no thread");
	for (uint64_t i = 0; i < n; i++) {
		if (read(wake_pipe[0], &byte, 1) != 1)
			die("read: %s", strerror(errno));
		time[i] = read_clock(CLOCK_MONOTONIC) - written[i];
	}
	pthread_join(writer, NULL);
	qsort(time, n, sizeof(uint64_t), by_value);
	printf("least=%lu median=%lu most=%lu\n", time[0], time[n / 2], time[n - 1]);
}

static void cmd_sleep(void)
{
	uint64_t tsc = read_tsc(), monotonic = read_clock(CLOCK_MONOTONIC);
	uint64_t real = read_clock(CLOCK_REALTIME), boot = read_clock(CLOCK_BOOTTIME);

	sleep_us(number("s", "1") * 1000000);
	printf("tsc=%lu monotonic=%lu real=%lu boot=%lu date=%lu\n", read_tsc() - tsc,
	       read_clock(CLOCK_MONOTONIC) - monotonic, read_clock(CLOCK_REALTIME) - real,
	       read_clock(CLOCK_BOOTTIME) - boot, read_clock(CLOCK_REALTIME) / 1000000000);
}

static const struct {
	const char *name;
	void (*run)(void);
} commands[] = {
	{ "spin", cmd_spin },     { "move", cmd_move }, { "copy", cmd_copy },
	{ "clocks", cmd_clocks }, { "wake", cmd_wake }, { "sleep", cmd_sleep },
};

int main(int argc, char **argv)
{
	if (argc < 2)
		die("usage: probe COMMAND [name=value ...]");
	params = argv + 2;
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(argv[1], commands[i].name)) {
			commands[i].run();
			return 0;
		}
	die("there is no command '%s'", argv[1]);
}
