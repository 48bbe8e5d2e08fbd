// SPDX-License-Identifier: GPL-2.0-only
/*
 * The situations that the scheduler makes promises for, one command each:
 *
 *   measure hogs SECONDS CPU NICE[:COUNT] ...
 *       Busy tasks at these nice values, on one CPU or, with CPU -1, on any.
 *       Prints NICE and the CPU time in ms of each within the same SECONDS.
 *   measure spread HOGS ROUNDS
 *       A parent starts HOGS busy tasks at once. Prints for each round the ms
 *       from the first fork until each online CPU has run one, or -1 if that
 *       has not come to pass after PATIENCE_S; and the ms until the last fork
 *       was begun.
 *   measure children COUNT BUSY_US
 *       COUNT children one after the other, each waited for; the parent goes
 *       on for BUSY_US after each fork. Prints how many began on its CPU.
 *   measure mix SECONDS
 *       Sleepers, pipes and busy tasks, twice as many as there are CPUs, and
 *       one task that changes everybody's affinity all the time. Prints how
 *       often it did.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../common.h"
#include "../cpus.h"

enum {
	MAX_CPUS = 1024,
	MAX_TASKS = 4096,
	PATIENCE_S = 10,
	WORK_STEPS = 2000, /* between two looks at the world: microseconds */
};

/* What the parent and its children both see. */
static struct shared {
	_Atomic uint32_t ready; /* futex: children that have run, or CPUs reached */
	_Atomic uint32_t go;    /* futex: children may begin */
	_Atomic bool stop;
	_Atomic bool reached[MAX_CPUS];
	_Atomic uint64_t reached_ns; /* when the last CPU was */
	_Atomic int child_cpu;
} *shared;

static pid_t tasks[MAX_TASKS];
static unsigned int nr_tasks;

static void add_ready(void)
{
	atomic_fetch_add(&shared->ready, 1);
	futex_wake(&shared->ready, INT_MAX, BETWEEN_PROCESSES);
}

static void await_ready(uint32_t wanted)
{
	uint32_t ready;

	while ((ready = atomic_load(&shared->ready)) < wanted)
		if (!futex_wait(&shared->ready, ready, PATIENCE_S * (uint64_t)NS_PER_S,
				BETWEEN_PROCESSES)) {
			fprintf(stderr, "measure: only %u of %u tasks have run after %d s\n", ready,
				wanted, PATIENCE_S);
			exit(1);
		}
}

static void sleep_us(uint64_t us)
{
	sleep_ns(us * NS_PER_US);
}

/* Forks a child that ends with its parent; 0 in the child. */
static pid_t start(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		fail("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		return 0;
	}
	if (nr_tasks == MAX_TASKS) {
		fprintf(stderr, "measure: more than %d tasks\n", MAX_TASKS);
		exit(2);
	}
	tasks[nr_tasks++] = pid;
	return pid;
}

static void end_all(void)
{
	unsigned int i;

	for (i = 0; i < nr_tasks; i++)
		kill(tasks[i], SIGKILL);
	for (i = 0; i < nr_tasks; i++)
		waitpid(tasks[i], NULL, 0);
	nr_tasks = 0;
}

/* ---- hogs ---- */

static double cpu_ms(pid_t pid)
{
	clockid_t clock;

	if ((errno = clock_getcpuclockid(pid, &clock)))
		fail("CPU clock of a hog");
	return clock_ns(clock) / 1e6;
}

static void hog(int cpu, int nice)
{
	if (cpu >= 0)
		pin(cpu);
	set_nice(nice);
	add_ready();
	while (!atomic_load(&shared->go))
		futex_wait(&shared->go, 0, 0, BETWEEN_PROCESSES);
	for (;;)
		work(WORK_STEPS);
}

static void hogs(int argc, char **argv)
{
	static double before[MAX_TASKS], after[MAX_TASKS];
	static int nice[MAX_TASKS];
	long seconds = number(argv[0], 1, MAX_SECONDS), cpu = number(argv[1], -1, MAX_CPUS - 1),
	     count;
	unsigned int i;
	char *colon;

	for (; argc > 2; argc--, argv++) {
		colon = strchr(argv[2], ':');
		count = colon ? number(colon + 1, 1, MAX_TASKS) : 1;
		if (colon)
			*colon = '\0';
		while (count--) {
			int value = number(argv[2], -20, 19);

			if (!start())
				hog(cpu, value);
			nice[nr_tasks - 1] = value;
		}
	}
	await_ready(nr_tasks);
	atomic_store(&shared->go, 1);
	futex_wake(&shared->go, INT_MAX, BETWEEN_PROCESSES);
	/* The first moments, while they find their places, do not count. */
	sleep_us(500000);
	for (i = 0; i < nr_tasks; i++)
		before[i] = cpu_ms(tasks[i]);
	sleep_us(seconds * 1000000);
	for (i = 0; i < nr_tasks; i++)
		after[i] = cpu_ms(tasks[i]);
	for (i = 0; i < nr_tasks; i++)
		printf("%d %.3f\n", nice[i], after[i] - before[i]);
	end_all();
}

/* ---- spread ---- */

static void spreading_hog(uint32_t nr_cpus)
{
	for (;;) {
		int cpu = sched_getcpu();

		if (cpu >= 0 && cpu < MAX_CPUS && !atomic_exchange(&shared->reached[cpu], true)) {
			if (atomic_fetch_add(&shared->ready, 1) + 1 == nr_cpus) {
				atomic_store(&shared->reached_ns, now_ns());
				futex_wake(&shared->ready, INT_MAX, BETWEEN_PROCESSES);
			}
		}
		work(WORK_STEPS / 10);
	}
}

static void spread_once(long nr, uint32_t nr_cpus)
{
	uint64_t begin, last_fork;
	uint32_t ready;
	bool all = true;

	memset(shared, 0, sizeof(*shared));
	begin = last_fork = now_ns();
	while (nr--) {
		last_fork = now_ns();
		if (!start())
			spreading_hog(nr_cpus);
	}
	while ((ready = atomic_load(&shared->ready)) < nr_cpus && all)
		all = futex_wait(&shared->ready, ready, PATIENCE_S * (uint64_t)NS_PER_S,
				 BETWEEN_PROCESSES);
	while (all && !atomic_load(&shared->reached_ns))
		sched_yield();
	end_all();
	printf("%.3f %.3f\n", all ? (atomic_load(&shared->reached_ns) - begin) / 1e6 : -1,
	       (last_fork - begin) / 1e6);
}

static void spread(int argc, char **argv)
{
	long nr = number(argv[0], 1, MAX_TASKS), rounds = number(argv[1], 1, 10000);
	uint32_t nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);

	(void)argc;
	if (nr < nr_cpus) {
		fprintf(stderr, "measure: %ld hogs cannot reach %u CPUs\n", nr, nr_cpus);
		exit(2);
	}
	while (rounds--) {
		spread_once(nr, nr_cpus);
		/* The CPUs go idle, as they were before the first round. */
		sleep_us(50000);
	}
}

/* ---- children ---- */

static void children(int argc, char **argv)
{
	long count = number(argv[0], 1, 1000000), busy_ns = number(argv[1], 0, 1000000) * NS_PER_US;
	long i, stayed = 0;

	(void)argc;
	for (i = 0; i < count; i++) {
		int cpu = sched_getcpu();
		uint64_t end;
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (!pid) {
			atomic_store(&shared->child_cpu, sched_getcpu());
			_exit(0);
		}
		end = now_ns() + busy_ns;
		while (busy_ns && now_ns() < end)
			work(10);
		if (waitpid(pid, NULL, 0) != pid)
			fail("waitpid");
		stayed += atomic_load(&shared->child_cpu) == cpu;
	}
	printf("children %ld on_parent_cpu %ld\n", count, stayed);
}

/* ---- mix ---- */

/* Busy for 0 to 8 ms of CPU time, asleep for 0 to 4 ms. */
static void mix_hog(uint32_t seed)
{
	while (!atomic_load(&shared->stop)) {
		work(next_random(&seed) % 8000 * 1000);
		sleep_us(next_random(&seed) % 4000);
	}
	_exit(0);
}

/* Wakes up often and does little. */
static void mix_sleeper(uint32_t seed)
{
	while (!atomic_load(&shared->stop)) {
		sleep_us(200 + next_random(&seed) % 2000);
		work(next_random(&seed) % 200 * 1000);
	}
	_exit(0);
}

/* Half of a pair that hands one byte to and fro; ends when the other is gone. */
static void mix_player(int in, int out, bool serves, uint32_t seed)
{
	char ball = 0;

	signal(SIGPIPE, SIG_IGN);
	if (serves && write(out, &ball, 1) != 1)
		_exit(1);
	while (!atomic_load(&shared->stop) && read(in, &ball, 1) == 1) {
		work(next_random(&seed) % 100 * 1000);
		if (write(out, &ball, 1) != 1)
			break;
	}
	_exit(0);
}

static void mix_pair(uint32_t seed)
{
	int there[2], back[2];

	if (pipe(there) || pipe(back))
		fail("pipe");
	if (!start()) {
		close(there[0]);
		close(back[1]);
		mix_player(back[0], there[1], true, seed);
	}
	if (!start()) {
		close(there[1]);
		close(back[0]);
		mix_player(there[0], back[1], false, seed + 1);
	}
	close(there[0]);
	close(there[1]);
	close(back[0]);
	close(back[1]);
}

/* Gives tasks random sets of CPUs, half of the time all of them. */
static unsigned long churn(uint64_t until, const cpu_set_t *all)
{
	unsigned long changes = 0;
	uint32_t seed = 1;

	while (now_ns() < until) {
		pid_t pid = tasks[next_random(&seed) % nr_tasks];
		cpu_set_t set = *all;
		int cpu;

		if (next_random(&seed) & 1)
			for (cpu = 0; cpu < MAX_CPUS; cpu++)
				if (next_random(&seed) & 1)
					CPU_CLR(cpu, &set);
		if (CPU_COUNT(&set) && !sched_setaffinity(pid, sizeof(set), &set))
			changes++;
		sleep_us(next_random(&seed) % 4000);
	}
	return changes;
}

static void mix(int argc, char **argv)
{
	long seconds = number(argv[0], 1, MAX_SECONDS);
	cpu_set_t all;
	int cpus, i;

	(void)argc;
	if (sched_getaffinity(0, sizeof(all), &all))
		fail("sched_getaffinity");
	cpus = CPU_COUNT(&all);
	for (i = 0; i < cpus; i++) {
		uint32_t seed = 4 * i + 1;

		/* In each four CPUs: two hogs, two sleepers, two pairs. */
		if (i % 2) {
			mix_pair(seed);
			continue;
		}
		if (!start())
			mix_hog(seed);
		if (!start())
			mix_sleeper(seed + 1);
	}
	printf("affinity_changes %lu\n", churn(now_ns() + seconds * (uint64_t)NS_PER_S, &all));
	atomic_store(&shared->stop, true);
	end_all();
}

static const struct command {
	const char *name;
	int min_args;
	void (*run)(int argc, char **argv);
} commands[] = {
	{ "hogs", 3, hogs },
	{ "spread", 2, spread },
	{ "children", 2, children },
	{ "mix", 1, mix },
};

int main(int argc, char **argv)
{
	unsigned int i;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		fail("mmap");
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (argc > 1 && !strcmp(argv[1], commands[i].name) &&
		    argc - 2 >= commands[i].min_args) {
			commands[i].run(argc - 2, argv + 2);
			return fflush(stdout) ? 1 : 0;
		}
	fprintf(stderr, "usage: measure hogs SECONDS CPU NICE[:COUNT] ... | spread HOGS ROUNDS |\n"
			"       children COUNT BUSY_US | mix SECONDS\n");
	return 2;
}
