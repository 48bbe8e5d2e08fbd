// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loads of a user who means no good, or of whom one would think so:
 *
 *   affinity ms=N       forged waits for a lock whose "holder" has its affinity
 *                       changed all the time, so that waits and changes race
 *   starve ms=N hogs=N low=N policy=idle|nice|mixed
 *                       hogs on CPU 1, and others of little weight that come later;
 *                       prints the longest time that one of them did not run
 *   change ms=N         a loop on CPU 1 whose class and affinity change all the time
 *   confine ms=N        a loop beside another on CPU 1, confined to that CPU by one thread
 *                       and freed by another, as often as they can; needs four CPUs
 */
#include "threads.h"
#include "share.h"
#include <linux/futex.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { MSEC = 1000000 };

static uint64_t now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Thread @tid, 0 the caller, may use the CPUs from @first to @last. */
static void allow(int tid, int first, int last)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	while (first <= last)
		CPU_SET(first++, &set);
	if (sched_setaffinity(tid, sizeof(set), &set))
		die("sched_setaffinity: %s", strerror(errno));
}

/* ---- affinity ---- */

/* As glibc's mutex stands in memory. */
struct mutex_words {
	uint32_t lock, count;
	int32_t owner;
	uint32_t users, kind, pad[11];
};

static int nr_cpus;
static volatile int holder, sleeper;
static struct mutex_words words[4];

static void *burn_on(void *cpu)
{
	pin((long)cpu);
	for (;;)
		;
	return NULL;
}

static void *hold(void *unused)
{
	set_nice(19);
	holder = gettid();
	for (;;)
		;
	return unused;
}

static void *sleep_on(void *unused)
{
	sleeper = gettid();
	for (;;)
		pause();
	return unused;
}

static void *toggle(void *unused)
{
	unsigned int r = 1, i;

	allow(0, nr_cpus - 1, nr_cpus - 1);
	while (!holder)
		;
	for (;;) {
		allow(holder, 0, nr_cpus - 1);
		r = r * 1103515245 + 12345;
		for (i = 0; i < (r >> 16) % 400; i++)
			__asm__ volatile("");
		allow(holder, 0, 0);
		for (i = 0; i < (r >> 8) % 100; i++)
			__asm__ volatile("");
	}
	return unused;
}

/* Two names in turn: a new owner begins a new hold, with a new budget. */
static void *forge(void *arg)
{
	struct mutex_words *w = &words[(long)arg % 4];
	struct timespec t = { .tv_nsec = 50000 };
	unsigned int k;

	pin(1 + (long)arg % (nr_cpus - 2));
	while (!holder || !sleeper)
		;
	for (k = 0;; k++) {
		*w = (struct mutex_words){ .lock = 2,
					   .owner = k & 1 ? holder : sleeper,
					   .users = 1 };
		syscall(SYS_futex, &w->lock, FUTEX_WAIT_PRIVATE, 2, &t, NULL, 0);
	}
	return NULL;
}

static void affinity(void)
{
	uint64_t end = now() + number("ms", 2000) * MSEC;

	nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	start(hold, NULL);
	start(sleep_on, NULL);
	start(toggle, NULL);
	for (long i = 0; i < nr_cpus - 1; i++)
		start(burn_on, (void *)i);
	for (long i = 0; i < (nr_cpus - 2) * 3; i++)
		start(forge, (void *)i);
	while (now() < end)
		sleep_us(10000);
	puts("raced=1");
	fflush(stdout);
	_exit(0);
}

/* ---- starve ---- */

/* Of each hog, by itself: when it was seen last, and its longest absence. */
struct seen {
	uint64_t last, worst;
} __attribute__((aligned(64)));

static void burn(struct seen *seen)
{
	for (;;) {
		uint64_t t = now(), gap = t - seen->last;

		if (gap > seen->worst)
			seen->worst = gap;
		seen->last = t;
	}
}

static void be_low(const char *policy, int i)
{
	static const int nices[] = { 0, 5, -5, 19, 10, -20, 1 };
	struct sched_param param = { 0 };

	if (!strcmp(policy, "nice")) {
		set_nice(19);
		return;
	}
	if (!strcmp(policy, "idle") || i % 8 == 7) {
		if (sched_setscheduler(0, SCHED_IDLE, &param))
			die("SCHED_IDLE: %s", strerror(errno));
		return;
	}
	set_nice(nices[i % 8]);
	if (i % 3 == 1 && sched_setscheduler(0, SCHED_BATCH, &param))
		die("SCHED_BATCH: %s", strerror(errno));
}

static void starve(void)
{
	int hogs = number("hogs", 20), low = number("low", 20);
	const char *policy = param("policy", "idle");
	uint64_t worst = 0, end, ms = number("ms", 10000);
	struct seen *seen;
	int i, never = 0;

	setpgid(0, 0);
	seen = share((hogs + low) * sizeof(*seen));
	for (i = 0; i < hogs + low; i++) {
		pid_t child;

		seen[i].last = now();
		child = fork();
		if (child < 0)
			die("fork: %s", strerror(errno));
		if (child)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* Their niceness first: on the crowded CPU that would take its turn. */
		if (i >= hogs)
			be_low(policy, i);
		pin(1);
		burn(&seen[i]);
	}
	end = now() + ms * MSEC;
	while (now() < end)
		sleep_us(20000);
	end = now();
	for (i = 0; i < hogs + low; i++) {
		uint64_t gap = end - seen[i].last;

		if (gap > seen[i].worst)
			seen[i].worst = gap;
		if (seen[i].worst > worst)
			worst = seen[i].worst;
		never += seen[i].worst >= ms * MSEC;
	}
	printf("worst_ms=%lu never=%d\n", worst / MSEC, never);
	fflush(stdout);
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
}

/* ---- change ---- */

static void *loop(void *tid)
{
	pin(1);
	*(volatile int *)tid = gettid();
	while (!stop)
		burn_us(100);
	return NULL;
}

/* Neither sleeps: what is learned of bursts is nothing of theirs. */
static void change(void)
{
	uint64_t end = now() + number("ms", 500) * MSEC, next;
	struct sched_param none = {};
	volatile int tid = 0;
	unsigned long changes;
	pthread_t thread;

	pin(2);
	thread = start(loop, (void *)&tid);
	while (!tid)
		;
	for (changes = 0; now() < end; changes++) {
		if (changes % 2)
			allow(tid, 1, changes / 2 % 3 + 1);
		else if (sched_setscheduler(tid, changes % 4 ? SCHED_BATCH : SCHED_OTHER, &none))
			die("sched_setscheduler: %s", strerror(errno));
		next = now() + MSEC / 2;
		while (now() < next)
			;
	}
	stop = true;
	pthread_join(thread, NULL);
	printf("changes=%lu\n", changes);
}

/* ---- confine ---- */

static volatile int confined;
static unsigned long changes[2];

static void *change_to(void *free_to_go)
{
	int all = free_to_go != NULL;

	pin(2 + all);
	while (!stop) {
		allow(confined, all ? 0 : 1, all ? nr_cpus - 1 : 1);
		changes[all]++;
	}
	return NULL;
}

static void confine(void)
{
	volatile int other = 0;
	pthread_t threads[4];
	int i;

	nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	threads[0] = start(loop, (void *)&other);
	threads[1] = start(loop, (void *)&confined);
	while (!confined || !other)
		sleep_us(1000);
	threads[2] = start(change_to, NULL);
	threads[3] = start(change_to, (void *)1);
	sleep_us(number("ms", 500) * 1000);
	stop = true;
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("confined=%lu freed=%lu\n", changes[0], changes[1]);
}

int main(int argc, char **argv)
{
	static const struct command commands[] = {
		{ "affinity", affinity },
		{ "starve", starve },
		{ "change", change },
		{ "confine", confine },
	};

	return run_command(commands, sizeof(commands) / sizeof(*commands), argc, argv);
}
