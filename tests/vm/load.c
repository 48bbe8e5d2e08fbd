// SPDX-License-Identifier: GPL-2.0-only
/*
 * The small loads that the VM tests put on a scheduler. Each command makes a
 * known pattern of forks, wake-ups or busy loops, watches on which CPUs its
 * tasks really run, and prints what it saw as one line of name=value pairs.
 * It judges nothing: the tests do, by counts and places, not by time.
 *
 *   load fork n=200 child-us=50 before-us=0 parent-us=0 gap-us=0 pipe=0 cpu=-1
 *   load pingpong n=500 work-us=20
 *   load relay n=100 cpu=-1 work-us=5000 away-us=0
 *   load hogs ms=2000 cpu=-1 nice=0,5,-5
 *   load release n=8 cpu=-1
 *   load wakes n=200 hogs=2 cpu=0 us=1000
 *   load hold n=2 cpu=-1 nice=0		(until it is killed)
 */
#define _GNU_SOURCE
#include "tasks.h"

/* Children one after the other; with parent-us the parent keeps running meanwhile. */
static void cmd_fork(void)
{
	long n = number("n", 200), child_us = number("child-us", 50);
	long parent_us = number("parent-us", 0);
	long gap_us = number("gap-us", 0), before_us = number("before-us", 0);
	bool by_pipe = number("pipe", 0);
	int cpu = number("cpu", -1);
	long local = 0, remote = 0, meanwhile = 0;
	uint64_t events[MAX_CPUS] = {};

	for (long i = 0; i < n; i++) {
		struct task_note *note = &shared->task[0];
		int here, after, fds[2];
		pid_t pid;

		/* Lets the CPU of the child before become idle. */
		if (gap_us)
			sleep_us(gap_us);
		go_to(cpu);
		burn_us(before_us);
		if (by_pipe && pipe(fds))
			die("pipe: %s", strerror(errno));
		note->cpu = -1;
		here = sched_getcpu();
		pid = fork();
		if (pid < 0)
			die("fork: %s", strerror(errno));
		if (!pid) {
			note->cpu = sched_getcpu();
			burn_us(child_us);
			_exit(by_pipe && write(fds[1], "", 1) != 1);
		}
		/* The parent itself may have been moved on its way through fork. */
		after = sched_getcpu();
		if (parent_us) {
			uint64_t end = clock_ns(CLOCK_MONOTONIC) + parent_us * 1000ull;

			while (note->cpu < 0 && clock_ns(CLOCK_MONOTONIC) < end)
				;
			meanwhile += note->cpu >= 0 && note->cpu != after;
		}
		if (by_pipe) {
			char byte;

			if (read(fds[0], &byte, 1) != 1)
				die("the child said nothing");
			events[sched_getcpu()]++;
			close(fds[0]);
			close(fds[1]);
		}
		reap(pid);
		events[note->cpu]++;
		if (note->cpu == here || note->cpu == after)
			local++;
		else
			remote++;
	}
	printf("forks=%ld local=%ld remote=%ld meanwhile=%ld ", n, local, remote, meanwhile);
	print_spread(events);
}

/* Two tasks that wake each other through pipes, never both at work. */
static int ball[2][2];

static void player(int side)
{
	long n = number("n", 500), work_us = number("work-us", 20);
	struct task_note *note = &shared->task[side];
	char byte = 0;

	for (long i = 0; i < n; i++) {
		if (side == 0 && write(ball[0][1], &byte, 1) != 1)
			_exit(3);
		if (read(ball[!side][0], &byte, 1) != 1)
			_exit(3);
		note->seen[sched_getcpu()]++;
		burn_us(work_us);
		if (side == 1 && write(ball[1][1], &byte, 1) != 1)
			_exit(3);
	}
}

static void cmd_pingpong(void)
{
	uint64_t events[MAX_CPUS] = {};
	pid_t pid[2];

	if (pipe(ball[0]) || pipe(ball[1]))
		die("pipe: %s", strerror(errno));
	for (int side = 0; side < 2; side++)
		pid[side] = spawn(player, side);
	for (int side = 0; side < 2; side++)
		reap(pid[side]);
	for (int i = 0; i < MAX_CPUS; i++)
		events[i] = shared->task[0].seen[i] + shared->task[1].seen[i];
	print_spread(events);
}

static void relayed(int i)
{
	long n = number("n", 100), work_us = number("work-us", 5000);
	struct task_note *note = &shared->task[i];
	char byte;

	while (n--) {
		if (read(ball[0][0], &byte, 1) != 1)
			_exit(3);
		note->cpu = sched_getcpu();
		burn_us(work_us);
		if (write(ball[1][1], &byte, 1) != 1)
			_exit(3);
	}
}

/*
 * Wakes another task to work, and either waits for it or, with away-us, sleeps
 * only that long, wants its CPU back then, and waits after that.
 */
static void cmd_relay(void)
{
	long n = number("n", 100), away_us = number("away-us", 0), local = 0;
	int cpu = number("cpu", -1);
	char byte = 0;
	pid_t pid;

	if (pipe(ball[0]) || pipe(ball[1]))
		die("pipe: %s", strerror(errno));
	pid = spawn(relayed, 0);
	for (long i = 0; i < n; i++) {
		int here;

		go_to(cpu);
		here = sched_getcpu();
		if (write(ball[0][1], &byte, 1) != 1)
			die("pipe: %s", strerror(errno));
		if (away_us)
			sleep_us(away_us);
		if (read(ball[1][0], &byte, 1) != 1)
			die("pipe: %s", strerror(errno));
		local += shared->task[0].cpu == here;
	}
	reap(pid);
	printf("wakes=%ld local=%ld\n", n, local);
}

/* Number of CPUs that did at least 5% of the work. */
static int cpus_at_work(int n)
{
	uint64_t total = 0, on_cpu[MAX_CPUS] = {};
	int cpus = 0;

	for (int i = 0; i < n; i++)
		for (int cpu = 0; cpu < MAX_CPUS; cpu++) {
			on_cpu[cpu] += shared->task[i].seen[cpu];
			total += shared->task[i].seen[cpu];
		}
	for (int cpu = 0; cpu < MAX_CPUS; cpu++)
		cpus += on_cpu[cpu] * 20 > total;
	return cpus;
}

static uint64_t cpu_time_ns(pid_t pid)
{
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock))
		die("no CPU clock for %d", pid);
	return clock_ns(clock);
}

/* Busy loops of the nice values given, for some time: who gets how much, and where. */
static void cmd_hogs(void)
{
	char *list = strdup(param("nice", "0,0,0,0"));
	int cpu = number("cpu", -1), n = 0;
	uint64_t before[MAX_TASKS];
	pid_t pid[MAX_TASKS];

	if (setpriority(PRIO_PROCESS, 0, -20))
		die("setpriority: %s", strerror(errno));
	for (char *nice = strtok(list, ","); nice && n < MAX_TASKS; nice = strtok(NULL, ",")) {
		pid[n] = spawn_hog(n, cpu);
		if (setpriority(PRIO_PROCESS, pid[n], strtol(nice, NULL, 0)))
			die("setpriority: %s", strerror(errno));
		n++;
	}
	for (int i = 0; i < n; i++)
		before[i] = cpu_time_ns(pid[i]);
	shared->count = true;
	sleep_us(number("ms", 2000) * 1000);
	shared->count = false;
	printf("cpus=%d hogs=%d us=", cpus_at_work(n), n);
	for (int i = 0; i < n; i++)
		printf("%s%lu", i ? "," : "", (cpu_time_ns(pid[i]) - before[i]) / 1000);
	printf("\n");
	stop_hogs(pid, n);
}

/* CPUs on which the hogs are now. */
static int cpus_of_hogs(int n)
{
	bool seen[MAX_CPUS] = {};
	int cpus = 0;

	for (int i = 0; i < n; i++) {
		int cpu = shared->task[i].cpu;

		if (cpu >= 0 && !seen[cpu]) {
			seen[cpu] = true;
			cpus++;
		}
	}
	return cpus;
}

/*
 * Busy loops, as many as there are CPUs or more, that must come to be on all of
 * them: from where they were forked, or from the one CPU that they were pinned to.
 */
static void cmd_release(void)
{
	int n = number("n", 8), cpu = number("cpu", -1);
	pid_t pid[MAX_TASKS];
	bool rang = true;
	int cpus;

	for (int i = 0; i < n; i++)
		pid[i] = spawn_hog(i, cpu);
	for (int i = 0; i < n && cpu >= 0; i++)
		while (rang && shared->task[i].cpu != cpu)
			rang = wait_for_bell();
	for (int i = 0; i < n && cpu >= 0; i++)
		set_affinity(pid[i], &all_cpus);
	do {
		cpus = cpus_of_hogs(n);
	} while (cpus < CPU_COUNT(&all_cpus) && rang && (rang = wait_for_bell()));
	printf("hogs=%d cpus=%d\n", n, cpus);
	stop_hogs(pid, n);
}

/* A task that sleeps and wakes on a CPU full of busy loops. */
static void cmd_wakes(void)
{
	int cpu = number("cpu", 0), hogs = number("hogs", 2);
	long n = number("n", 200), us = number("us", 1000), woken = 0;
	pid_t pid[MAX_TASKS];

	for (int i = 0; i < hogs; i++)
		pid[i] = spawn_hog(i, cpu);
	pin(0, cpu);
	for (long i = 0; i < n; i++) {
		sleep_us(us);
		woken += sched_getcpu() == cpu;
	}
	printf("sleeps=%ld woken=%ld\n", n, woken);
	stop_hogs(pid, hogs);
}

/* Busy loops in the background, for other loads to meet. */
static void cmd_hold(void)
{
	int n = number("n", 2), cpu = number("cpu", -1), nice = number("nice", 0);

	for (int i = 0; i < n; i++) {
		pid_t pid = spawn_hog(i, cpu);

		while (shared->task[i].cpu < 0)
			if (!wait_for_bell())
				die("a busy loop does not run");
		if (setpriority(PRIO_PROCESS, pid, nice))
			die("setpriority: %s", strerror(errno));
	}
	printf("holding=%d\n", n);
	fflush(stdout);
	pause();
}

static const struct command commands[] = {
	{ "fork", cmd_fork },       { "pingpong", cmd_pingpong },
	{ "hogs", cmd_hogs },       { "relay", cmd_relay },
	{ "release", cmd_release }, { "wakes", cmd_wakes },
	{ "hold", cmd_hold },       {},
};

int main(int argc, char **argv)
{
	return run_command("load", commands, argc, argv);
}
