// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loads of locks for the VM tests: threads that hold, wait, lie and die. Each
 * command prints what it saw as one line of name=value pairs and judges nothing.
 *
 *   locks inversion n=100 hold-us=2000 hogs=4 cpu=-1 kind=normal
 *   locks chain n=50 depth=4 hold-us=2000 hogs=4
 *   locks lie ms=3000 threads=4
 *   locks killed-waiter n=20 | killed-holder n=20
 *   locks claim ms=2000 hogs=2 cpu=0
 *   locks many n=1000
 *   locks condvar n=200 | semaphore n=200 | barrier n=200
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "params.h"

enum { MAX_THREADS = 16384, MAX_CHAIN = 16 };

static long number(const char *name, long preset)
{
	const char *text = param(name, NULL);

	return text ? strtol(text, NULL, 0) : preset;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		die("clock_gettime: %s", strerror(errno));
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Use the CPU for this long, by the thread's own clock. */
static void burn_us(long us)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + us * 1000ull;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static void sleep_us(long us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&ts, NULL);
}

static void set_nice(int nice)
{
	if (setpriority(PRIO_PROCESS, gettid(), nice))
		die("setpriority: %s", strerror(errno));
}

static void pin(int cpu)
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

/* ---- waits, sorted ---- */

static uint64_t waits[100000];
static int nr_waits;

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void note_wait(uint64_t ns)
{
	if (nr_waits < (int)(sizeof(waits) / sizeof(*waits)))
		waits[nr_waits++] = ns;
}

static void print_waits(void)
{
	uint64_t total = 0;

	qsort(waits, nr_waits, sizeof(*waits), by_size);
	for (int i = 0; i < nr_waits; i++)
		total += waits[i];
	if (!nr_waits)
		die("nobody waited");
	printf("waits=%d mean_us=%lu p50_us=%lu p99_us=%lu max_us=%lu", nr_waits,
	       total / nr_waits / 1000, waits[nr_waits / 2] / 1000,
	       waits[nr_waits * 99 / 100] / 1000, waits[nr_waits - 1] / 1000);
}

/* ---- inversion and chains ---- */

static pthread_mutex_t lock[MAX_CHAIN];
static sem_t go[MAX_CHAIN + 1], work;
static long hold_us;
static int depth, hog_cpu;

static int kind_of(const char *name)
{
	if (!strcmp(name, "normal"))
		return PTHREAD_MUTEX_NORMAL;
	if (!strcmp(name, "recursive"))
		return PTHREAD_MUTEX_RECURSIVE;
	if (!strcmp(name, "errorcheck"))
		return PTHREAD_MUTEX_ERRORCHECK;
	if (!strcmp(name, "adaptive"))
		return PTHREAD_MUTEX_ADAPTIVE_NP;
	return -1;
}

static void init_lock(pthread_mutex_t *mutex)
{
	const char *kind = param("kind", "normal");
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	if (!strcmp(kind, "robust"))
		pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	else if (!strcmp(kind, "pi"))
		pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	else if (!strcmp(kind, "shared"))
		pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	else if (kind_of(kind) >= 0)
		pthread_mutexattr_settype(&attr, kind_of(kind));
	else
		die("no mutex is of the kind '%s'", kind);
	pthread_mutex_init(mutex, &attr);
}

static void *hog(void *arg)
{
	pin(hog_cpu);
	set_nice(*(int *)arg);
	while (!stop)
		;
	return NULL;
}

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

/*
 * The first holds lock 0 and works; each further one holds its own and waits for
 * the one before. All are of the lowest priority.
 */
static void *holder(void *arg)
{
	long i = (long)arg;

	set_nice(19);
	for (;;) {
		wait_for(&go[i]);
		if (stop)
			return NULL;
		pthread_mutex_lock(&lock[i]);
		sem_post(&go[i + 1]);
		if (i == 0) {
			wait_for(&work);
			burn_us(hold_us);
		} else {
			pthread_mutex_lock(&lock[i - 1]);
			pthread_mutex_unlock(&lock[i - 1]);
		}
		pthread_mutex_unlock(&lock[i]);
	}
}

/* One of the highest priority waits for the last lock, while hogs are busy. */
static void invert(void)
{
	int hogs = number("hogs", 4), zero = 0;
	long n = number("n", 100);
	pthread_t thread[MAX_CHAIN];

	hold_us = number("hold-us", 2000);
	hog_cpu = number("cpu", -1);
	set_nice(-20);
	for (long i = 0; i < depth; i++) {
		init_lock(&lock[i]);
		thread[i] = start(holder, (void *)i);
	}
	for (int i = 0; i < hogs; i++)
		start(hog, &zero);
	for (long i = 0; i < n; i++) {
		uint64_t begin;

		sem_post(&go[0]);
		wait_for(&go[depth]);
		sem_post(&work);
		begin = clock_ns(CLOCK_MONOTONIC);
		pthread_mutex_lock(&lock[depth - 1]);
		note_wait(clock_ns(CLOCK_MONOTONIC) - begin);
		pthread_mutex_unlock(&lock[depth - 1]);
		sleep_us(1000);
	}
	stop = true;
	for (int i = 0; i < depth; i++)
		sem_post(&go[i]);
	for (int i = 0; i < depth; i++)
		pthread_join(thread[i], NULL);
	print_waits();
	printf("\n");
}

static void cmd_inversion(void)
{
	depth = 1;
	invert();
}

static void cmd_chain(void)
{
	depth = number("depth", 4);
	if (depth < 1 || depth > MAX_CHAIN)
		die("depth is not in 1..%d", MAX_CHAIN);
	invert();
}

static const struct {
	const char *name;
	void (*run)(void);
} commands[] = {
	{ "inversion", cmd_inversion },
	{ "chain", cmd_chain },
};

int main(int argc, char **argv)
{
	if (argc < 2)
		die("usage: locks COMMAND [name=value ...]");
	params = argv + 2;
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(argv[1], commands[i].name)) {
			commands[i].run();
			return 0;
		}
	die("no load is called '%s'", argv[1]);
}
