// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks that are changed while they run or wait: their affinity, their CPU, their name.
 * Each command prints what it saw as one line of name=value pairs; the tests judge.
 *
 *   moved affinity n=8 ms=3000
 *   moved requeue n=50 cpu=0 to=1
 *   moved displace n=50 cpu=0 us=3000
 *   moved change what=user n=50 us=10000 cpu=0
 */
#define _GNU_SOURCE
#include "tasks.h"

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

/*
 * A busy loop that calls itself otherwise again and again, without sleep: its name, or
 * its real user, for which the kernel has no hook.
 */
static void cmd_change(void)
{
	const char *what = param("what", "name");
	bool user = !strcmp(what, "user");
	long n = number("n", 50), us = number("us", 10000);

	pin(0, number("cpu", 0));
	for (long i = 0; i < n; i++) {
		if (user ? setresuid(i % 2 ? 0 : 65534, 0, 0) :
			   prctl(PR_SET_NAME, i % 2 ? "moved" : "changed"))
			die("cannot change the %s: %s", what, strerror(errno));
		burn_us(us);
	}
	printf("changes=%ld\n", n);
}

static const struct command commands[] = {
	{ "affinity", cmd_affinity },
	{ "requeue", cmd_requeue },
	{ "displace", cmd_displace },
	{ "change", cmd_change },
	{},
};

int main(int argc, char **argv)
{
	return run_command("moved", commands, argc, argv);
}
