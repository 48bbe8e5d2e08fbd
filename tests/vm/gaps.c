// SPDX-License-Identifier: GPL-2.0-only
/*
 * Busy loops that look at the clock all the time, and so know for how long each
 * of them did not run. Prints one line of name=value pairs; the tests judge.
 *
 *   gaps mix mix=20x0,20xidle,1xbatch ms=4000 cpu=1 fifo-us=0
 *	COUNTxNICE, COUNTxidle or COUNTxbatch (both nice 0), all pinned to one CPU, /US after
 *	it if they ask for slices of so many us, /self if they ask for another one all the
 *	time, from 0 to 2^64 - 1 ns, or /other if another CPU does that for them:
 *	the longest gap of each kind in us, the CPU time of each kind in us, and that of the
 *	loops that have least and most of all;
 *	fifo-us: a SCHED_FIFO task takes the CPU for a moment, so many us apart
 *	jump-s: CLOCK_REALTIME goes forth and back by so much, each ms
 *	wakee: beside a loop, the task of "late" below is on that CPU
 *   gaps rt hogs=1 ms=500 policy=fifo own=0
 *	free busy loops, and a task of policy fifo, rr, deadline or normal that takes the CPU
 *	of the first of them for so long: the longest gap of any of them, in us, in that
 *	time and in as long a time before; the same of how late a sleeper woke, and
 *	how often one did on the CPU that was taken; own: the policy of loops and sleeper
 *   gaps late loops=2x0 more=0 cpu=-1 us=2000 work-us=270 ms=1500 jump-s=0 own=0
 *	so many loops of a kind on each CPU, and more in all, and a task, pinned to that CPU
 *	or to none, that is due us after us to work for work-us: how late it begins, in us,
 *	at most and in the mean; own: the policy of that task
 *   gaps free loops=2x0 cpu=1 to=2 from=3 rounds=120 step-ns=500
 *	so many loops pinned to a CPU, and a task of little weight that waits behind them. In
 *	each round a third CPU lets it go to another one while the task there is about to
 *	sleep, step-ns later each time: for how long it waited then, in us, at most
 *   gaps both own=0 cpu=1 from=3 rounds=20 us=20000
 *	a normal task that works for us, and one of policy own, which both last ran on a CPU
 *	that is idle now, are woken by another one in the same moment: how late the second begins,
 *	in us, at most
 *   gaps naps own-us=100000 work-us=100000 nap-us=1000 cpu=1 ms=4000
 *	a loop, and a task that asks for slices of own-us (0: does not), works for work-us and
 *	sleeps for nap-us, pinned to one CPU: the CPU time of both, in us
 *   gaps forks loops=1x0 work-us=10000 ms=3000
 *	so many loops of a kind on each CPU, and a chain of processes each of which works
 *	for work-us, forks the next one and ends: the CPU time of the chain, and that of all
 *	loops, in us
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "attributes.h"
#include "share.h"
#include "timing.h"
#include "loops.h"

/* The policy that was asked for, for a task of the load. */
static void set_own(int tid)
{
	int policy = number("own", SCHED_OTHER);

	if (policy != SCHED_OTHER)
		set_policy(tid, policy, 0);
}

static void *fifo_sleeper(void *arg)
{
	pin(0, number("cpu", 1));
	while (!stop)
		sleep_us(number("fifo-us", 0));
	return arg;
}

static void *asker(void *arg)
{
	uint32_t seed = 2;

	pin(0, number("cpu", 1) + 1);
	while (!stop)
		for (int i = 0; i < nr_loops; i++)
			if (loops[i].asked && !ask_slice_ns(loops[i].tid, any_slice(&seed)))
				die("sched_setattr: %s", strerror(errno));
	return arg;
}

/* How late one woke up, ns. */
static volatile uint64_t latest, mean_late;

static volatile bool jumps_end;

static void *jumper(void *arg)
{
	time_t by = number("jump-s", 0);

	/* As often back as forth: others go by that clock after this. */
	for (long i = 0; !jumps_end || i % 2; i++) {
		struct timespec at;

		if (clock_gettime(CLOCK_REALTIME, &at))
			die("clock_gettime: %s", strerror(errno));
		at.tv_sec += by;
		if (clock_settime(CLOCK_REALTIME, &at))
			die("clock_settime: %s", strerror(errno));
		by = -by;
		sleep_us(1000);
	}
	return arg;
}

static void start_thread(pthread_t *thread, void *(*body)(void *), void *arg)
{
	if (pthread_create(thread, NULL, body, arg))
		die("no thread");
}

static void end_jumps(pthread_t thread)
{
	jumps_end = true;
	pthread_join(thread, NULL);
}

static void *periodic(void *arg);

static void cmd_mix(void)
{
	char *list = strdup(param("mix", "20x0,20xidle"));
	int cpu = number("cpu", 1), nr_kinds = 0;
	uint64_t before[MAX_KINDS], had[MAX_LOOPS], least = UINT64_MAX, most = 0;
	long wakee = number("wakee", -1);
	bool asked = false;
	pthread_t thread, waker, jumps;

	/* Nobody else is to wait behind those that this one is about to make. */
	set_policy(0, SCHED_FIFO | SCHED_RESET_ON_FORK, PRIORITY + 1);
	/* Nor is the wakee, while this one reads thousands of clocks. */
	if (wakee >= 0)
		pin(0, 0);
	for (char *kind = strtok(list, ","); kind && nr_kinds < MAX_KINDS;
	     kind = strtok(NULL, ",")) {
		long n;
		const char *what = parse_kind(kind, &n), *slice = strchr(kind, '/');

		while (n--) {
			struct loop *l = begin_loop(nr_kinds);

			pin(l->tid, cpu);
			set_kind(l->tid, what);
			l->asks = slice && !strcmp(slice, "/self");
			l->asked = slice && !strcmp(slice, "/other");
			asked |= l->asked;
		}
		nr_kinds++;
	}
	if (asked)
		start_thread(&thread, asker, NULL);
	/* Of no kind: what it gets is not counted. */
	if (wakee >= 0)
		pin(begin_loop(MAX_KINDS)->tid, wakee);
	/* The turn that began before they were of their kind is over after that. */
	sleep_us(20000);
	for (int i = 0; i < nr_kinds; i++)
		before[i] = cpu_time(i);
	if (number("fifo-us", 0)) {
		/* Threads inherit the policy here, but not this flag of it. */
		set_policy(0, SCHED_FIFO, PRIORITY + 1);
		start_thread(&thread, fifo_sleeper, NULL);
	}
	if (number("jump-s", 0))
		start_thread(&jumps, jumper, NULL);
	for (int i = 0; i < nr_loops; i++)
		had[i] = thread_cpu_time(loops[i].tid);
	begin_gaps();
	if (wakee >= 0)
		start_thread(&waker, periodic, NULL);
	sleep_us(number("ms", 4000) * 1000);
	/* Before this thread, which is real-time, may take its CPU to read thousands of clocks. */
	if (wakee >= 0)
		pthread_join(waker, NULL);
	printf("loops=%d gap=", nr_loops);
	for (int i = 0; i < nr_kinds; i++)
		printf("%s%lu", i ? "," : "", longest_gap(i) / 1000);
	printf(" us=");
	for (int i = 0; i < nr_kinds; i++)
		printf("%s%lu", i ? "," : "", (cpu_time(i) - before[i]) / 1000);
	for (int i = 0; i < nr_loops; i++) {
		uint64_t got = thread_cpu_time(loops[i].tid) - had[i];

		if (loops[i].kind == MAX_KINDS)
			continue;
		least = got < least ? got : least;
		most = got > most ? got : most;
	}
	printf(" least=%lu most=%lu", least / 1000, most / 1000);
	if (wakee >= 0)
		printf(" late=%lu mean=%lu", latest / 1000, mean_late / 1000);
	printf("\n");
	if (number("jump-s", 0))
		end_jumps(jumps);
}

static volatile int taken = -1;
static volatile long on_taken;

/* Sleeps and looks how late it wakes up, and where. */
static void *sleeper(void *arg)
{
	set_own(0);
	while (!stop) {
		uint64_t before = now(), late;

		sleep_us(2000);
		late = now() - before - 2000000;
		if (late > latest)
			latest = late;
		on_taken += sched_getcpu() == taken;
	}
	return arg;
}

static void take_cpu(const char *policy, long ms)
{
	struct attributes deadline = {
		.size = sizeof(deadline),
		.policy = SCHED_DEADLINE,
		/* A share that one CPU has to give; the task runs for one such period. */
		.runtime = ms * 1000000ull,
		.deadline = ms * 2000000ull,
		.period = ms * 2000000ull,
	};
	uint64_t end;

	if (!strcmp(policy, "deadline")) {
		if (syscall(SYS_sched_setattr, 0, &deadline, 0))
			die("sched_setattr: %s", strerror(errno));
	} else {
		if (strcmp(policy, "normal"))
			set_policy(0, strcmp(policy, "rr") ? SCHED_FIFO : SCHED_RR, PRIORITY);
		pin(0, loops[0].cpu);
		/* Who was there until now is not meant. */
		taken = sched_getcpu();
	}
	end = now() + ms * 1000000ull;
	while (now() < end)
		if (taken < 0)
			taken = sched_getcpu();
	taken = -1;
}

static void *taker(void *arg)
{
	take_cpu(param("policy", "fifo"), *(long *)arg);
	return arg;
}

static void cmd_rt(void)
{
	long ms = number("ms", 500), hogs = number("hogs", 1);
	uint64_t gap, late;
	pthread_t thread;

	looks_where = true;
	set_policy(0, SCHED_FIFO | SCHED_RESET_ON_FORK, PRIORITY + 1);
	for (int i = 0; i < hogs; i++)
		set_own(begin_loop(0)->tid);
	if (pthread_create(&thread, NULL, sleeper, NULL))
		die("no thread");
	sleep_us(200000);
	latest = 0;
	begin_gaps();
	sleep_us(ms * 1000);
	gap = longest_gap(0);
	late = latest;
	latest = 0;
	begin_gaps();
	if (pthread_create(&thread, NULL, taker, &ms) || pthread_join(thread, NULL))
		die("no thread");
	printf("gap=%lu late=%lu on-taken=%ld before=%lu late-before=%lu\n", longest_gap(0) / 1000,
	       latest / 1000, on_taken, gap / 1000, late / 1000);
}

static void *periodic(void *arg)
{
	long us = number("us", 2000), work_us = number("work-us", 270);
	uint64_t due = now(), end = due + number("ms", 1500) * 1000000ull, late, sum = 0;
	long nr = 0, cpu = number("wakee", number("cpu", -1));

	set_own(0);
	if (cpu >= 0)
		pin(0, cpu);
	while (due < end) {
		struct timespec at;

		due += us * 1000ull;
		at = (struct timespec){ due / 1000000000, due % 1000000000 };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		late = now() - due;
		if (late > latest)
			latest = late;
		sum += late;
		nr++;
		burn_us(work_us);
	}
	mean_late = sum / nr;
	return arg;
}

/* Free loops, and who measures comes before them. */
static void begin_loops(const char *preset)
{
	long n;
	const char *what = parse_kind(param("loops", preset), &n);

	n = n * sysconf(_SC_NPROCESSORS_ONLN) + number("more", 0);
	set_policy(0, SCHED_FIFO | SCHED_RESET_ON_FORK, PRIORITY + 1);
	while (n--)
		set_kind(begin_loop(0)->tid, what);
}

static void cmd_forks(void)
{
	long work_us = number("work-us", 10000);
	volatile uint64_t *shared;
	uint64_t before;

	/* What the chain has worked, and whether it is to go on. */
	shared = share(2 * sizeof(*shared));
	begin_loops("1x0");
	before = cpu_time(0);
	if (!fork()) {
		while (!shared[1]) {
			burn_us(work_us);
			shared[0] += work_us;
			if (fork())
				_exit(0);
		}
		_exit(0);
	}
	sleep_us(number("ms", 3000) * 1000);
	shared[1] = 1;
	printf("chain=%lu loops=%lu\n", shared[0], (cpu_time(0) - before) / 1000);
}

static volatile int napper_tid;

static void *napper(void *arg)
{
	long work_us = number("work-us", 100000), nap_us = number("nap-us", 1000);

	pin(0, number("cpu", 1));
	set_kind(0, "0");
	if (number("own-us", 0))
		ask_slice(0, number("own-us", 0));
	napper_tid = syscall(SYS_gettid);
	while (!stop) {
		burn_us(work_us);
		sleep_us(nap_us);
	}
	return arg;
}

static void cmd_naps(void)
{
	uint64_t before, napped;
	pthread_t thread;
	int tid;

	set_policy(0, SCHED_FIFO | SCHED_RESET_ON_FORK, PRIORITY + 1);
	tid = begin_loop(0)->tid;
	pin(tid, number("cpu", 1));
	set_kind(tid, "0");
	if (pthread_create(&thread, NULL, napper, NULL))
		die("no thread");
	while (!napper_tid)
		sleep_us(1000);
	before = cpu_time(0);
	napped = thread_cpu_time(napper_tid);
	sleep_us(number("ms", 4000) * 1000);
	printf("loop=%lu naps=%lu\n", (cpu_time(0) - before) / 1000,
	       (thread_cpu_time(napper_tid) - napped) / 1000);
}

static void cmd_late(void)
{
	pthread_t thread, jumps;

	begin_loops("2x0");
	if (number("jump-s", 0))
		start_thread(&jumps, jumper, NULL);
	start_thread(&thread, periodic, NULL);
	pthread_join(thread, NULL);
	printf("late=%lu mean=%lu\n", latest / 1000, mean_late / 1000);
	if (number("jump-s", 0))
		end_jumps(jumps);
}

/* Flags between the threads of cmd_free(). */
static volatile int light_tid;
static volatile uint32_t woken; /* rounds begun; a futex */
static volatile uint64_t free_at, leaves_at, ran_at;

/* Waits for the loops' CPU, until it may go elsewhere. */
static void *light(void *arg)
{
	uint32_t round = 0;

	set_kind(0, "19");
	set_policy(0, SCHED_BATCH, 0);
	light_tid = syscall(SYS_gettid);
	while (!stop) {
		syscall(SYS_futex, &woken, FUTEX_WAIT_PRIVATE, round, NULL, NULL, 0);
		if (woken == round)
			continue;
		ran_at = now();
		round = woken;
		/* Long bursts at little weight: late deadlines. */
		burn_us(300);
	}
	return arg;
}

/* Works on the CPU that is to go idle, until then. */
static void *leaver(void *arg)
{
	uint32_t round = 0;

	pin(0, number("to", 2));
	while (!stop) {
		syscall(SYS_futex, &woken, FUTEX_WAIT_PRIVATE, round, NULL, NULL, 0);
		round = woken;
		while (now() < leaves_at)
			;
	}
	return arg;
}

static void cmd_free(void)
{
	long cpu = number("cpu", 1), to = number("to", 2), n, step = number("step-ns", 500);
	long rounds = number("rounds", 120);
	const char *what = parse_kind(param("loops", "2x0"), &n);
	uint64_t longest = 0;
	pthread_t threads[2];
	cpu_set_t both;

	CPU_ZERO(&both);
	CPU_SET(cpu, &both);
	CPU_SET(to, &both);
	pin(0, number("from", 3));
	while (n--) {
		int tid = begin_loop(0)->tid;

		set_kind(tid, what);
		pin(tid, cpu);
	}
	if (pthread_create(&threads[0], NULL, light, NULL) ||
	    pthread_create(&threads[1], NULL, leaver, NULL))
		die("no thread");
	/* Where its turn came before it was let go, the round does not count. */
	for (long i = 0, tries = 0; i < rounds; i++, tries++) {
		if (tries > 3 * rounds)
			die("it hardly ever waits");
		sleep_us(20000);
		pin(light_tid, cpu);
		ran_at = 0;
		free_at = now() + 200000;
		leaves_at = free_at - (rounds - i) * step;
		woken++;
		syscall(SYS_futex, &woken, FUTEX_WAKE_PRIVATE, 2, NULL, NULL, 0);
		while (now() < free_at)
			;
		if (ran_at) {
			i--;
			continue;
		}
		if (sched_setaffinity(light_tid, sizeof(both), &both))
			die("sched_setaffinity: %s", strerror(errno));
		sleep_us(20000);
		if (!ran_at || ran_at - free_at > longest)
			longest = (ran_at ?: now()) - free_at;
	}
	printf("longest=%lu\n", longest / 1000);
}

/* Of the two that are woken together: what they wait on, and since when the second runs. */
static volatile uint32_t both_rounds;
static volatile uint64_t first_works, second_began;
static volatile int both_tids[2];

static void *one_of_both(void *arg)
{
	bool second = arg;
	uint32_t round = 0;

	if (second)
		set_own(0);
	both_tids[second] = gettid();
	while (!stop) {
		syscall(SYS_futex, &both_rounds, FUTEX_WAIT_PRIVATE, round, NULL, NULL, 0);
		round = both_rounds;
		if (second)
			second_began = now();
		else
			burn_us(first_works);
	}
	return arg;
}

/* The first began to wait before, and is woken before. */
static void wake_both(void)
{
	both_rounds++;
	syscall(SYS_futex, &both_rounds, FUTEX_WAKE_PRIVATE, 2, NULL, NULL, 0);
}

static void cmd_both(void)
{
	long cpu = number("cpu", 1), us = number("us", 20000);
	uint64_t longest = 0;
	pthread_t thread;
	cpu_set_t all;

	if (sched_getaffinity(0, sizeof(all), &all))
		die("sched_getaffinity: %s", strerror(errno));
	for (long i = 0; i < 2; i++) {
		start_thread(&thread, one_of_both, (void *)i);
		while (!both_tids[i])
			sleep_us(1000);
	}
	pin(0, number("from", 3));
	for (long i = number("rounds", 20); i; i--) {
		uint64_t woken_at;

		for (int j = 0; j < 2; j++)
			pin(both_tids[j], cpu);
		first_works = 0;
		wake_both();
		sleep_us(5000);
		for (int j = 0; j < 2; j++)
			if (sched_setaffinity(both_tids[j], sizeof(all), &all))
				die("sched_setaffinity: %s", strerror(errno));
		first_works = us;
		second_began = 0;
		sleep_us(5000);
		woken_at = now();
		wake_both();
		sleep_us(us + 5000);
		if (!second_began || second_began - woken_at > longest)
			longest = (second_began ?: now()) - woken_at;
	}
	printf("late=%lu\n", longest / 1000);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		die("usage: gaps mix|rt|late|both|forks|free [name=value ...]");
	params = argv + 2;
	loops = calloc(MAX_LOOPS, sizeof(*loops));
	if (!loops)
		die("out of memory");
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
		die("prctl: %s", strerror(errno));
	if (!strcmp(argv[1], "mix"))
		cmd_mix();
	else if (!strcmp(argv[1], "rt"))
		cmd_rt();
	else if (!strcmp(argv[1], "late"))
		cmd_late();
	else if (!strcmp(argv[1], "naps"))
		cmd_naps();
	else if (!strcmp(argv[1], "forks"))
		cmd_forks();
	else if (!strcmp(argv[1], "free"))
		cmd_free();
	else if (!strcmp(argv[1], "both"))
		cmd_both();
	else
		die("no load is called '%s'", argv[1]);
	fflush(stdout);
	stop = true;
	_exit(0);
}
