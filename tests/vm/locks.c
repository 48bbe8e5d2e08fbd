// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loads of locks for the VM tests: threads that hold and wait. Each command
 * prints what it saw as one line of name=value pairs and judges nothing.
 *
 *   locks inversion n=100 hold-us=2000 hogs=4 cpu=-1 kind=normal
 *   locks chain n=50 depth=4 hold-us=2000 hogs=4 near=19
 *   locks condvar n=200 | semaphore n=200 | barrier n=200
 *   locks big n=20 cpu=0 from=1 hold-us=20000
 *   locks hinted n=20 cpu=0 hold-us=5000 owner=0
 *   locks realtime n=50 hold-us=20000 hogs=8
 *   locks stale n=4 hold-us=1000 pause-us=300000
 *   locks share ms=1000 short-us=100 long-us=1000 pause-us=1 long-pause-us=1 nice=0 cpu=-1
 */
#include <stdatomic.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include "threads.h"
#include "intf.h"
#include "hint.h"

enum { MAX_CHAIN = 16 };

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
static sem_t go[MAX_CHAIN + 1], work, is_held;
static long hold_us;
static int depth;

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

/*
 * The first holds lock 0 and works; each further one holds its own and waits for
 * the one before. All are of the lowest priority, but the last, of which near= says.
 */
static void *holder(void *arg)
{
	long i = (long)arg;

	set_nice(i == depth - 1 ? number("near", 19) : 19);
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

/* ---- what waits and holds nothing ---- */

static sem_t ping, pong;
static pthread_barrier_t barrier;

static void *echo(void *arg)
{
	for (long i = 0; i < (long)arg; i++) {
		wait_for(&ping);
		sem_post(&pong);
	}
	return NULL;
}

static void cmd_semaphore(void)
{
	long n = number("n", 200);
	pthread_t other;

	sem_init(&ping, 0, 0);
	sem_init(&pong, 0, 0);
	other = start(echo, (void *)n);
	for (long i = 0; i < n; i++) {
		sem_post(&ping);
		wait_for(&pong);
	}
	pthread_join(other, NULL);
	printf("rounds=%ld\n", n);
}

static void *meets(void *arg)
{
	for (long i = 0; i < (long)arg; i++)
		pthread_barrier_wait(&barrier);
	return NULL;
}

static void cmd_barrier(void)
{
	long n = number("n", 200);
	pthread_t other;

	pthread_barrier_init(&barrier, NULL, 2);
	other = start(meets, (void *)n);
	meets((void *)n);
	pthread_join(other, NULL);
	printf("rounds=%ld\n", n);
}

/* A mutex of its own, which nobody else wants: the other changes a number without it. */
struct side {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	volatile long round;
};

static struct side sides[2] = {
	{ PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 },
	{ PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 },
};

static void tell(struct side *side, long round)
{
	side->round = round;
	pthread_cond_signal(&side->cond);
}

/* Woken late or not at all, since the other holds no mutex: so it looks again. */
static void hear(struct side *side, long round)
{
	struct timespec until;

	pthread_mutex_lock(&side->mutex);
	while (side->round < round) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 2000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_sec++;
			until.tv_nsec -= 1000000000;
		}
		pthread_cond_timedwait(&side->cond, &side->mutex, &until);
	}
	pthread_mutex_unlock(&side->mutex);
}

static void *listener(void *arg)
{
	for (long i = 1; i <= (long)arg; i++) {
		hear(&sides[0], i);
		tell(&sides[1], i);
	}
	return NULL;
}

static void cmd_condvar(void)
{
	long n = number("n", 200);
	pthread_t other = start(listener, (void *)n);

	for (long i = 1; i <= n; i++) {
		tell(&sides[0], i);
		hear(&sides[1], i);
	}
	pthread_join(other, NULL);
	printf("rounds=%ld\n", n);
}

/* ---- big and little CPUs ---- */

static void *small_holder(void *arg)
{
	int *ended_on = arg;
	cpu_set_t all;

	if (sched_getaffinity(0, sizeof(all), &all))
		die("sched_getaffinity: %s", strerror(errno));
	for (;;) {
		wait_for(&go[0]);
		if (stop)
			return NULL;
		pin(number("from", 1));
		sched_setaffinity(0, sizeof(all), &all);
		pthread_mutex_lock(&lock[0]);
		sem_post(&is_held);
		burn_us(hold_us);
		*ended_on = sched_getcpu();
		pthread_mutex_unlock(&lock[0]);
	}
}

/* Where a hold ends that began on one CPU and is waited for from another. */
static void cmd_big(void)
{
	long n = number("n", 20), moved = 0;
	int cpu = number("cpu", 0), ended_on = -1;
	pthread_t it;

	hold_us = number("hold-us", 20000);
	init_lock(&lock[0]);
	it = start(small_holder, &ended_on);
	pin(cpu);
	for (long i = 0; i < n; i++) {
		sem_post(&go[0]);
		wait_for(&is_held);
		pthread_mutex_lock(&lock[0]);
		moved += ended_on == cpu;
		pthread_mutex_unlock(&lock[0]);
	}
	stop = true;
	sem_post(&go[0]);
	pthread_join(it, NULL);
	printf("holds=%ld moved=%ld\n", n, moved);
}

/* ---- a lock that nobody sees, but for what its threads say ---- */

static _Atomic int spinlock;
static _Thread_local volatile struct fl_hint hint = { .version = FL_HINT_VERSION };

static void show_hint(void)
{
	if (syscall(SYS_futex, &hint, FUTEX_WAIT_PRIVATE, FL_HINT_SHOW, NULL) != -1 ||
	    errno != EAGAIN)
		die("the hint was not refused as it should be: %s", strerror(errno));
}

static void *spin_holder(void *arg)
{
	set_nice(19);
	pin(*(int *)arg);
	show_hint();
	for (;;) {
		wait_for(&go[0]);
		if (stop)
			return NULL;
		hint.holds = (uint64_t)&spinlock;
		atomic_store(&spinlock, gettid());
		sem_post(&is_held);
		burn_us(hold_us);
		atomic_store(&spinlock, 0);
		hint.holds = 0;
	}
}

/*
 * One of the highest priority waits for a lock of one of the lowest, on one CPU, without
 * sleeping, and with work in between, so that its loop looks like any other.
 */
static void cmd_hinted(void)
{
	int cpu = number("cpu", 0), owner;
	long n = number("n", 20), tell = number("owner", 0);
	volatile uint64_t sum = 0;
	pthread_t it;

	hold_us = number("hold-us", 5000);
	set_nice(-20);
	it = start(spin_holder, &cpu);
	pin(cpu);
	show_hint();
	for (long i = 0; i < n; i++) {
		uint64_t begin;

		sem_post(&go[0]);
		wait_for(&is_held);
		begin = clock_ns(CLOCK_MONOTONIC);
		while ((owner = atomic_load(&spinlock))) {
			hint.owner = tell ? owner : 0;
			hint.waits_for = (uint64_t)&spinlock;
			for (int j = 0; j < 1000; j++)
				sum = sum * 31 + j;
		}
		hint.waits_for = 0;
		note_wait(clock_ns(CLOCK_MONOTONIC) - begin);
	}
	stop = true;
	sem_post(&go[0]);
	pthread_join(it, NULL);
	print_waits();
	printf("\n");
}

/* ---- a real-time task waits ---- */

static atomic_bool is_up;

static void *busy_holder(void *arg)
{
	(void)arg;
	pin(1);
	set_nice(19);
	while (!stop) {
		pthread_mutex_lock(&lock[0]);
		is_up = true;
		burn_us(hold_us);
		pthread_mutex_unlock(&lock[0]);
		sleep_us(2000);
	}
	return NULL;
}

/*
 * A SCHED_FIFO thread on one CPU wants the lock of a thread of the lowest priority that
 * shares another with hogs.
 */
static void cmd_realtime(void)
{
	struct sched_param fifo = { .sched_priority = 50 };
	int hogs = number("hogs", 8), zero = 0;
	long n = number("n", 50);
	pthread_t it;

	hold_us = number("hold-us", 20000);
	hog_cpu = 1;
	init_lock(&lock[0]);
	it = start(busy_holder, NULL);
	while (!is_up)
		sched_yield();
	for (int i = 0; i < hogs; i++)
		start(hog, &zero);
	pin(0);
	if (sched_setscheduler(0, SCHED_FIFO, &fifo))
		die("sched_setscheduler: %s", strerror(errno));
	while (nr_waits < n) {
		uint64_t begin = clock_ns(CLOCK_MONOTONIC), waited;

		pthread_mutex_lock(&lock[0]);
		waited = clock_ns(CLOCK_MONOTONIC) - begin;
		pthread_mutex_unlock(&lock[0]);
		/* It was free. */
		if (waited > 50000)
			note_wait(waited);
		sleep_us(20000);
	}
	stop = true;
	pthread_join(it, NULL);
	print_waits();
	printf("\n");
}

/* ---- holds far apart, each by who had the lock last ---- */

static pthread_barrier_t turn;

static void *stale(void *arg)
{
	long n = number("n", 4), pause_us = number("pause-us", 300000);

	for (long i = 0; i < n; i++) {
		bool first = i % 2 == (long)arg;

		if (first)
			pthread_mutex_lock(&lock[0]);
		pthread_barrier_wait(&turn);
		if (first) {
			/* The other waits. */
			while (lock[0].__data.__lock != 2)
				sched_yield();
			burn_us(hold_us);
		} else {
			pthread_mutex_lock(&lock[0]);
		}
		pthread_mutex_unlock(&lock[0]);
		pthread_barrier_wait(&turn);
		sleep_us(pause_us);
	}
	return NULL;
}

static void cmd_stale(void)
{
	pthread_t other;

	hold_us = number("hold-us", 1000);
	init_lock(&lock[0]);
	pthread_barrier_init(&turn, NULL, 2);
	other = start(stale, (void *)1);
	stale((void *)0);
	pthread_join(other, NULL);
	printf("holds=%ld\n", number("n", 4));
}

/* ---- who has a lock for how long ---- */

struct sharer {
	long hold_us, pause_us, nice;
	uint64_t held, sections;
};

static volatile bool measuring;

static void *sharer(void *arg)
{
	struct sharer *self = arg;

	pin(number("cpu", -1));
	set_nice(self->nice);
	while (!stop) {
		uint64_t begin;
		bool counts;

		pthread_mutex_lock(&lock[0]);
		counts = measuring;
		begin = clock_ns(CLOCK_MONOTONIC);
		burn_us(self->hold_us);
		if (counts) {
			self->held += clock_ns(CLOCK_MONOTONIC) - begin;
			self->sections++;
		}
		pthread_mutex_unlock(&lock[0]);
		burn_us(self->pause_us);
	}
	return NULL;
}

/* Two threads want a lock all the time, one for longer than the other. */
static void cmd_share(void)
{
	long ms = number("ms", 1000);
	struct sharer brief = { .hold_us = number("short-us", 100),
				.pause_us = number("pause-us", 1) };
	struct sharer greedy = { .hold_us = number("long-us", 1000),
				 .pause_us = number("long-pause-us", 1),
				 .nice = number("nice", 0) };
	pthread_t a, b;

	init_lock(&lock[0]);
	a = start(sharer, &brief);
	b = start(sharer, &greedy);
	sleep_us(100000);
	measuring = true;
	sleep_us(ms * 1000);
	measuring = false;
	stop = true;
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("long_permille=%lu held_permille=%lu short=%lu long=%lu\n",
	       greedy.held * 1000 / (brief.held + greedy.held),
	       (brief.held + greedy.held) / (ms * 1000), brief.sections, greedy.sections);
}

static const struct command commands[] = {
	{ "inversion", cmd_inversion }, { "chain", cmd_chain },       { "condvar", cmd_condvar },
	{ "semaphore", cmd_semaphore }, { "barrier", cmd_barrier },   { "big", cmd_big },
	{ "hinted", cmd_hinted },       { "realtime", cmd_realtime }, { "stale", cmd_stale },
	{ "share", cmd_share },
};

int main(int argc, char **argv)
{
	sem_init(&is_held, 0, 0);
	return run_command(commands, sizeof(commands) / sizeof(*commands), argc, argv);
}
