// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loads for CPUs that the kernel treats apart: without ticks (nohz_full), and isolated.
 * Each command prints what it saw as one line of name=value pairs; the tests judge.
 *
 *   apart alone cpu=3 ms=2000
 *   apart second cpu=3 n=20
 *   apart alternate cpu=3 n=3 ms=5000
 *   apart loops n=8 ms=1000 from=3 wide=1
 */
#define _GNU_SOURCE
#include "tasks.h"

/* Local timer interrupts of a CPU until now; all CPUs are online. */
static long ticks_of(int cpu)
{
	FILE *file = fopen("/proc/interrupts", "r");
	char line[4096], *at;
	long ticks = -1;

	if (!file)
		die("/proc/interrupts: %s", strerror(errno));
	while (fgets(line, sizeof(line), file)) {
		at = strstr(line, "LOC:");
		if (!at)
			continue;
		at += 4;
		for (int i = 0; i <= cpu; i++)
			ticks = strtol(at, &at, 10);
	}
	fclose(file);
	return ticks;
}

/* One busy loop that has a CPU for itself. */
static void cmd_alone(void)
{
	int cpu = number("cpu", 0);
	pid_t pid = spawn_hog(0, cpu);
	long before;

	if (!wait_for_bell())
		die("the loop does not begin");
	sleep_us(100000);
	before = ticks_of(cpu);
	sleep_us(number("ms", 2000) * 1000);
	printf("ticks=%ld\n", ticks_of(cpu) - before);
	stop_hogs(&pid, 1);
}

static uint64_t now_us(void)
{
	return clock_ns(CLOCK_MONOTONIC) / 1000;
}

static void longest(volatile uint64_t *most, uint64_t us)
{
	if (us > *most)
		*most = us;
}

/*
 * Comes to the CPU of a loop in several ways: it is bound there while it runs elsewhere, wakes up
 * there by a timer, and runs on there beside the loop.
 */
static void guest(int i)
{
	volatile uint64_t *came = &shared->task[i].seen[0];
	volatile uint64_t *woke = &shared->task[i].seen[1], *paused = &shared->task[i].seen[2];
	int cpu = number("cpu", 0);
	uint64_t since, next;

	for (int round = 0; round < number("n", 20); round++) {
		pin(0, 0);
		/* Long enough for the loop to be alone again. */
		sleep_us(30000);
		since = now_us();
		pin(0, cpu);
		longest(came, now_us() - since);
		sleep_us(30000);
		since = now_us();
		sleep_us(5000);
		longest(woke, now_us() - since - 5000);
		for (next = since = now_us(); next - since < 30000;) {
			uint64_t at = now_us();

			longest(paused, at - next);
			next = at;
		}
	}
}

static void cmd_second(void)
{
	int cpu = number("cpu", 0);
	pid_t loop = spawn_hog(0, cpu), other;
	long before;

	if (!wait_for_bell())
		die("the loop does not begin");
	other = spawn(guest, 1);
	reap(other);
	/* It is alone again. */
	sleep_us(100000);
	before = ticks_of(cpu);
	sleep_us(1000000);
	printf("came_us=%lu woke_us=%lu paused_us=%lu again=%ld\n", shared->task[1].seen[0],
	       shared->task[1].seen[1], shared->task[1].seen[2], ticks_of(cpu) - before);
	stop_hogs(&loop, 1);
}

/* Runs and sleeps in turn; a round is both. */
static void dozer(int i)
{
	while (!shared->stop) {
		burn_us(3000 + 1000 * i);
		sleep_us(2000);
		shared->task[i].checks++;
	}
}

static void cmd_alternate(void)
{
	int n = number("n", 2), cpu = number("cpu", 0);
	pid_t pid[MAX_TASKS];

	for (int i = 0; i < n; i++) {
		pid[i] = spawn(dozer, i);
		pin(pid[i], cpu);
	}
	sleep_us(number("ms", 5000) * 1000);
	shared->stop = true;
	for (int i = 0; i < n; i++) {
		reap(pid[i]);
		printf("%srounds%d=%ld", i ? " " : "", i, shared->task[i].checks);
	}
	printf("\n");
}

/* Every other one sleeps now and then, so that it is placed anew. */
static void roamer(int i)
{
	struct task_note *note = &shared->task[i];

	while (!shared->stop) {
		for (volatile int spin = 0; spin < 20000; spin++)
			;
		note->seen[sched_getcpu()]++;
		if (i % 2 && note->checks++ % 4 == 0)
			sleep_us(500);
	}
}

/*
 * Loops, and how often they were seen on the CPUs from one on and on others. They begin where
 * this may run, and with wide=1 may use any then.
 */
static void cmd_loops(void)
{
	int n = number("n", 8), from = number("from", 0);
	long there = 0, elsewhere = 0;
	pid_t pid[MAX_TASKS];
	cpu_set_t wide;

	CPU_ZERO(&wide);
	for (long cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++)
		CPU_SET(cpu, &wide);
	for (int i = 0; i < n; i++) {
		pid[i] = spawn(roamer, i);
		if (number("wide", 0))
			set_affinity(pid[i], &wide);
	}
	sleep_us(number("ms", 1000) * 1000);
	shared->stop = true;
	for (int i = 0; i < n; i++) {
		reap(pid[i]);
		for (int cpu = 0; cpu < MAX_CPUS; cpu++)
			*(cpu >= from ? &there : &elsewhere) += shared->task[i].seen[cpu];
	}
	printf("there=%ld elsewhere=%ld\n", there, elsewhere);
}

static const struct command commands[] = {
	{ "alone", cmd_alone },
	{ "second", cmd_second },
	{ "alternate", cmd_alternate },
	{ "loops", cmd_loops },
	{},
};

int main(int argc, char **argv)
{
	return run_command("apart", commands, argc, argv);
}
