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
 *   load affinity n=8 ms=3000
 *   load requeue n=50 cpu=0 to=1
 *   load wakes n=200 hogs=2 cpu=0 us=1000
 *   load displace n=50 cpu=0 us=3000
 *   load hold n=2 cpu=-1 nice=0		(until it is killed)
 *   load change what=user n=50 us=10000 cpu=0
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "timing.h"

enum {
	MAX_CPUS = 1024,
	MAX_TASKS = 256,
	/* Longest wait for something that a working scheduler does at once. */
	PATIENCE_MS = 20000,
};

/* What a task tells about itself; each has a page of its own in shared memory. */
struct task_note {
	volatile int cpu;  /* where it ran last, -1 before it ran */
	volatile int goal; /* requeue: where it is expected */
	volatile long checks;
	volatile long wrong;
	volatile uint64_t seen[MAX_CPUS]; /* loops done on each CPU */
};

static struct shared {
	volatile bool stop;
	volatile bool count; /* hogs: count loops only while this is set */
	struct task_note task[MAX_TASKS];
} *shared;

static cpu_set_t all_cpus;

static void set_affinity(pid_t pid, const cpu_set_t *set)
{
	if (sched_setaffinity(pid, sizeof(*set), set))
		die("sched_setaffinity(%d): %s", pid, strerror(errno));
}

static void pin(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	set_affinity(pid, &set);
}

/* Move to a CPU and be free to leave it again. */
static void go_to(int cpu)
{
	if (cpu < 0)
		return;
	pin(0, cpu);
	set_affinity(0, &all_cpus);
}

/* A child that cannot outlive the test. */
static pid_t spawn(void (*body)(int), int i)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		body(i);
		_exit(0);
	}
	return pid;
}

static void reap(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("waitpid: %s", strerror(errno));
	if (status)
		die("task %d ended with status 0x%x", pid, status);
}

/* One byte through a pipe is how a task tells its parent that it got somewhere. */
static int bell[2];

static void ring(void)
{
	/* Full is loud enough. */
	if (write(bell[1], "", 1) != 1 && errno != EAGAIN)
		_exit(3);
}

static bool wait_for_bell(void)
{
	struct pollfd fd = { .fd = bell[0], .events = POLLIN };
	char byte;

	if (poll(&fd, 1, PATIENCE_MS) != 1)
		return false;
	return read(bell[0], &byte, 1) == 1;
}

static int by_count(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* Where the events happened, and how many on the busiest one and two CPUs. */
static void print_spread(const uint64_t *events)
{
	uint64_t sorted[MAX_CPUS];
	uint64_t total = 0;
	int cpus = 0;

	memcpy(sorted, events, sizeof(sorted));
	for (int i = 0; i < MAX_CPUS; i++) {
		total += sorted[i];
		cpus += sorted[i] > 0;
	}
	qsort(sorted, MAX_CPUS, sizeof(*sorted), by_count);
	printf("events=%lu cpus=%d top1=%lu top2=%lu", total, cpus, sorted[0],
	       sorted[0] + sorted[1]);
	for (int i = 0; i < MAX_CPUS; i++)
		if (CPU_ISSET(i, &all_cpus))
			printf(" on%d=%lu", i, events[i]);
	printf("\n");
}

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

/* Loops until told to stop; rings whenever it comes to another CPU. */
static void hog(int i)
{
	struct task_note *note = &shared->task[i];

	while (!shared->stop) {
		int cpu = sched_getcpu();

		if (shared->count)
			note->seen[cpu]++;
		if (note->cpu != cpu) {
			note->cpu = cpu;
			ring();
		}
		for (volatile int spin = 0; spin < 2000; spin++)
			;
	}
}

static pid_t spawn_hog(int i, int cpu)
{
	pid_t pid;

	shared->task[i].cpu = -1;
	pid = spawn(hog, i);
	if (cpu >= 0)
		pin(pid, cpu);
	return pid;
}

static void stop_hogs(const pid_t *pid, int n)
{
	shared->stop = true;
	for (int i = 0; i < n; i++)
		reap(pid[i]);
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

/* Changes its own affinity all the time and looks whether it was obeyed. */
static void wanderer(int i)
{
	struct task_note *note = &shared->task[i];
	unsigned int seed = 1000 + i;

	while (!shared->stop) {
		cpu_set_t set;

		CPU_ZERO(&set);
		for (int cpu = 0; cpu < MAX_CPUS; cpu++)
			if (CPU_ISSET(cpu, &all_cpus) && rand_r(&seed) % 3 == 0)
				CPU_SET(cpu, &set);
		if (!CPU_COUNT(&set))
			continue;
		set_affinity(0, &set);
		for (int step = 0; step < 4; step++) {
			note->wrong += !CPU_ISSET(sched_getcpu(), &set);
			note->checks++;
			switch (rand_r(&seed) % 4) {
			case 0:
				burn_us(200);
				break;
			case 1:
				sched_yield();
				break;
			case 2:
				sleep_us(100);
				break;
			default: {
				pid_t pid = fork();

				if (pid < 0)
					_exit(3);
				if (!pid)
					_exit(!CPU_ISSET(sched_getcpu(), &set));
				int status = 0;

				waitpid(pid, &status, 0);
				note->wrong += status != 0;
			}
			}
		}
	}
}

static void cmd_affinity(void)
{
	int n = number("n", 8);
	long checks = 0, wrong = 0, least = -1;
	pid_t pid[MAX_TASKS];

	for (int i = 0; i < n; i++)
		pid[i] = spawn(wanderer, i);
	sleep_us(number("ms", 3000) * 1000);
	shared->stop = true;
	for (int i = 0; i < n; i++) {
		reap(pid[i]);
		checks += shared->task[i].checks;
		wrong += shared->task[i].wrong;
		if (least < 0 || shared->task[i].checks < least)
			least = shared->task[i].checks;
	}
	printf("tasks=%d checks=%ld wrong=%ld least=%ld\n", n, checks, wrong, least);
}

/* Rings whenever it has come to its goal. */
static void traveller(int i)
{
	struct task_note *note = &shared->task[i];

	while (!shared->stop)
		if (note->goal >= 0 && sched_getcpu() == note->goal) {
			note->goal = -1;
			ring();
		}
}

/* A task that mostly waits in a busy CPU's queue has its affinity changed there. */
static void cmd_requeue(void)
{
	int home = number("cpu", 0), away = number("to", 1);
	int n = number("n", 50), moved = 0;
	enum { HOGS = 3 };
	struct task_note *note = &shared->task[HOGS];
	pid_t pid[HOGS + 1];

	for (int i = 0; i < HOGS; i++)
		pid[i] = spawn_hog(i, home);
	note->goal = -1;
	pid[HOGS] = spawn(traveller, HOGS);
	for (int i = 0; i < n; i++) {
		int goal = i % 2 ? away : home;

		pin(pid[HOGS], goal);
		note->goal = goal;
		if (!wait_for_bell())
			break;
		moved++;
	}
	printf("changes=%d moved=%d\n", n, moved);
	stop_hogs(pid, HOGS + 1);
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

/* Comes back to its goal whenever it is given one, free to go on elsewhere. */
static void returner(int i)
{
	struct task_note *note = &shared->task[i];

	while (!shared->stop) {
		if (note->goal >= 0) {
			go_to(note->goal);
			note->goal = -1;
			/* The CPU that it left is idle by then. */
			burn_us(1000);
			ring();
		}
		note->cpu = sched_getcpu();
	}
}

/* A free busy loop is preempted, again and again, by one that has to run on its CPU. */
static void cmd_displace(void)
{
	int cpu = number("cpu", 0), n = number("n", 50);
	long us = number("us", 3000);
	uint64_t events[MAX_CPUS] = {};
	pid_t pid;

	pin(0, cpu);
	shared->task[0].goal = -1;
	pid = spawn(returner, 0);
	for (int i = 0; i < n; i++) {
		shared->task[0].goal = cpu;
		if (!wait_for_bell())
			die("the busy loop does not come to CPU %d", cpu);
		burn_us(us);
		events[shared->task[0].cpu]++;
	}
	print_spread(events);
	stop_hogs(&pid, 1);
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

/*
 * A busy loop that calls itself otherwise again and again, without sleep: its name, or
 * its real user, of whom no hook of the kernel tells.
 */
static void cmd_change(void)
{
	const char *what = param("what", "name");
	bool user = !strcmp(what, "user");
	long n = number("n", 50), us = number("us", 10000);

	pin(0, number("cpu", 0));
	for (long i = 0; i < n; i++) {
		if (user ? setresuid(i % 2 ? 0 : 65534, 0, 0) :
			   prctl(PR_SET_NAME, i % 2 ? "load" : "changed"))
			die("cannot change the %s: %s", what, strerror(errno));
		burn_us(us);
	}
	printf("changes=%ld\n", n);
}

static const struct {
	const char *name;
	void (*run)(void);
} commands[] = {
	{ "fork", cmd_fork },         { "pingpong", cmd_pingpong }, { "hogs", cmd_hogs },
	{ "relay", cmd_relay },       { "release", cmd_release },   { "affinity", cmd_affinity },
	{ "requeue", cmd_requeue },   { "wakes", cmd_wakes },       { "hold", cmd_hold },
	{ "displace", cmd_displace }, { "change", cmd_change },
};

int main(int argc, char **argv)
{
	if (argc < 2)
		die("usage: load COMMAND [name=value ...]");
	params = argv + 2;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	if (pipe(bell) || fcntl(bell[1], F_SETFL, O_NONBLOCK))
		die("pipe: %s", strerror(errno));
	if (sched_getaffinity(0, sizeof(all_cpus), &all_cpus))
		die("sched_getaffinity: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(argv[1], commands[i].name)) {
			commands[i].run();
			return 0;
		}
	die("no load is called '%s'", argv[1]);
}
