// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measures what the simulated machine models (machine/README.md), on hardware and
 * in a guest of that machine alike. Prints what it saw, a line each, and fits
 * nothing: `scx_freqlock machine calibrate` does.
 *
 *   about KEY VALUE          what the kernel says of the machine
 *   cpu CPU CORE LLC KHZ     the lowest CPU that shares these with it; cpufreq's highest, or 0
 *   step INSNS CYCLES        of the loop that a chunk consists of
 *   chunk STEPS
 *   ramp CHUNKS              after a second of idle time
 *   decay IDLE_NS NS         the first chunk after so much idle time
 *   turbo CORES NS           a chunk while so many cores run
 *   move DISTANCE INSNS PASSES  passes through 256 KiB after a migration
 *   wake NS                  how late a timer's thread runs, after 5 ms of idle time
 *   syscall NS, switch NS    getppid; from one thread to another on a CPU
 *   absent WHAT WHY
 *
 * CHUNKS and PASSES are COUNT:NS, so many of so many nanoseconds each.
 */
#define _GNU_SOURCE
#include <sys/prctl.h>

#include "../common.h"
#include "../cpus.h"
#include "../threads.h"

enum {
	MAX_CPUS = 128,
	CHUNK_NS = 20000, /* the plugin's quantum, and far above what a clock costs */
	MAX_CHUNKS = 50000,
	RAMP_NS = 200000000,
	RAMP_ROUNDS = 3,
	DECAY_LENGTHS = 40,
	DECAY_ROUNDS = 3,
	SHORTEST_IDLE_NS = 100000,
	MOVE_ROUNDS = 9,
	MOVE_NS = 6000000,
	NODES = 4096,
	NODE_BYTES = 64,
	WAKES = 51,
	WAKE_IDLE_NS = 5000000,
	CALLS = 100000,
	SWITCHES = 20000,
};

static int cpus[MAX_CPUS], cores[MAX_CPUS], llcs[MAX_CPUS];
static long nr_cpus;
static uint64_t steps;
static uint32_t chunks[MAX_CHUNKS];
/* A chunk at the highest speed, and how long that takes to reach. */
static uint64_t top_ns, climb_ns;

/*
 * A step whose instructions and cycles are known: each needs the one before. On
 * x86-64 a multiplication takes 3 cycles on every core since 2008 (uops.info).
 */
#if defined(__x86_64__)
enum { STEP_INSNS = 4, STEP_CYCLES = 4 };
static inline void spin(uint64_t nr)
{
	uint64_t x = nr, one = 1;

	__asm__ volatile("1: imul %1, %1\n\tadd %2, %1\n\tdec %0\n\tjnz 1b"
			 : "+r"(nr), "+r"(x)
			 : "r"(one)
			 : "cc");
}
#define CHASE "1: mov (%1), %1\n\tdec %0\n\tjnz 1b"
#elif defined(__aarch64__)
enum { STEP_INSNS = 4, STEP_CYCLES = 2 };
static inline void spin(uint64_t nr)
{
	uint64_t x = nr, one = 1;

	__asm__ volatile("1: add %1, %1, %2\n\tadd %1, %1, %2\n\tsubs %0, %0, #1\n\tb.ne 1b"
			 : "+r"(nr), "+r"(x)
			 : "r"(one)
			 : "cc");
}
#define CHASE "1: ldr %1, [%1]\n\tsubs %0, %0, #1\n\tb.ne 1b"
#else
#error "the instructions of a step are not known here"
#endif
enum { CHASE_INSNS = 3 };

static uint64_t timed(uint64_t nr)
{
	uint64_t begin = now_ns();

	spin(nr);
	return now_ns() - begin;
}

/* ---- what the kernel says ---- */

/* The first line of a file below /sys or /proc; false if there is none. */
static bool first_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "r");
	bool read = file && fgets(line, (int)size, file);

	if (file)
		fclose(file);
	if (read)
		line[strcspn(line, "\n")] = '\0';
	return read;
}

/* What follows NAME's colon in /proc/cpuinfo. */
static bool cpuinfo(const char *name, char *value, size_t size)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	while (file && !found && getline(&line, &room, file) > 0) {
		char *colon = strchr(line, ':');

		if (colon && !strncmp(line, name, strlen(name))) {
			snprintf(value, size, "%s", colon + 1 + (colon[1] == ' '));
			value[strcspn(value, "\n")] = '\0';
			found = true;
		}
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}

/* The first number of a CPU's file in sysfs, `otherwise` if it is not there. */
static int first_number(int cpu, const char *what, int otherwise)
{
	char path[128], line[256];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/%s", cpu, what);
	return first_line(path, line, sizeof(line)) ? atoi(line) : otherwise;
}

static void look(void)
{
	char flags[8192], line[256];
	cpu_set_t set;
	long i;
	int index;

	if (sched_getaffinity(0, sizeof(set), &set))
		fail("sched_getaffinity");
	nr_cpus = CPU_COUNT(&set) < MAX_CPUS ? CPU_COUNT(&set) : MAX_CPUS;
	first_cpus(cpus, nr_cpus);
	if (cpuinfo("model name", line, sizeof(line)))
		printf("about model %s\n", line);
	printf("about hypervisor %s\n",
	       cpuinfo("flags", flags, sizeof(flags)) && strstr(flags, " hypervisor") ? "yes" :
											"no");
	for (i = 0; i < 2; i++) {
		static const char *const what[] = { "scaling_driver", "scaling_governor" };
		char path[128];

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpufreq/%s", cpus[0],
			 what[i]);
		printf("about %s %s\n", what[i],
		       first_line(path, line, sizeof(line)) ? line : "none");
	}
	for (i = 0; i < nr_cpus; i++) {
		cores[i] = first_number(cpus[i], "topology/thread_siblings_list", cpus[i]);
		llcs[i] = first_number(cpus[i], "topology/package_cpus_list", cpus[0]);
		for (index = 0; index < 8; index++) {
			char path[64];

			snprintf(path, sizeof(path), "cache/index%d/shared_cpu_list", index);
			llcs[i] = first_number(cpus[i], path, llcs[i]);
		}
		printf("cpu %d %d %d %d\n", cpus[i], cores[i], llcs[i],
		       first_number(cpus[i], "cpufreq/cpuinfo_max_freq", 0));
	}
}

/* ---- where and how fast ---- */

static void print_runs(uint64_t nr)
{
	uint64_t i, k;

	for (i = 0; i < nr; i = k) {
		/* Alike within 1/512. */
		for (k = i + 1; k < nr; k++)
			if (labs((long)chunks[k] - (long)chunks[i]) * 512 > chunks[i])
				break;
		printf(" %llu:%u", (unsigned long long)(k - i), chunks[i]);
	}
	printf("\n");
}

/* Chunks for so long; returns how many. */
static uint64_t trace(uint64_t ns)
{
	uint64_t end = now_ns() + ns, nr = 0;

	while (nr < MAX_CHUNKS && now_ns() < end)
		chunks[nr++] = (uint32_t)timed(steps);
	return nr;
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static uint32_t median(uint32_t *values, uint64_t nr)
{
	qsort(values, nr, sizeof(*values), by_size);
	return values[nr / 2];
}

/*
 * A chunk once the CPU is as fast as it gets. One alone says nothing: what interrupts it
 * makes it longer, and in a simulated machine the next one shorter.
 */
static uint32_t settled(uint64_t nr)
{
	static uint32_t late[MAX_CHUNKS];

	memcpy(late, chunks + nr / 2, (nr - nr / 2) * sizeof(*late));
	return median(late, nr - nr / 2);
}

/* As many steps as a chunk takes at the highest speed. */
static void choose_chunk(void)
{
	steps = 10000;
	steps = steps * CHUNK_NS / settled(trace(RAMP_NS));
	printf("step %d %d\nchunk %llu\n", STEP_INSNS, STEP_CYCLES, (unsigned long long)steps);
}

static void ramp(void)
{
	uint64_t nr, i, passed;
	int round;

	for (round = 0; round < RAMP_ROUNDS; round++) {
		sleep_ns(NS_PER_S);
		nr = trace(RAMP_NS);
		top_ns = settled(nr);
		for (i = 0, passed = 0; i < nr && chunks[i] * 100ull > top_ns * 101; i++)
			passed += chunks[i];
		climb_ns = passed > climb_ns ? passed : climb_ns;
		printf("ramp");
		print_runs(nr);
	}
}

/* Runs until the CPU has its highest speed, not for ever. */
static void warm_up(void)
{
	uint64_t end = now_ns() + RAMP_NS;
	int fast = 0;

	while (fast < 3 && now_ns() < end)
		fast = timed(steps) * 100 <= top_ns * 101 ? fast + 1 : 0;
}

static void decay(void)
{
	uint64_t idle = SHORTEST_IDLE_NS;
	int i, round;

	/* From 0.1 ms to 0.8 s, each longer by a quarter. */
	for (i = 0; i < DECAY_LENGTHS; i++, idle += idle / 4 + idle / 128)
		for (round = 0; round < DECAY_ROUNDS; round++) {
			uint64_t before, slept, ns;

			warm_up();
			before = now_ns();
			sleep_ns(idle);
			slept = now_ns() - before;
			ns = 4 * timed(steps / 4);
			printf("decay %llu %llu\n", (unsigned long long)slept,
			       (unsigned long long)ns);
		}
}

/* ---- several cores ---- */

struct runner {
	pthread_t thread;
	int cpu;
	uint64_t ns;
	uint32_t chunk_ns;
};

static void *run_along(void *arg)
{
	struct runner *runner = arg;
	uint32_t *taken = allocate(MAX_CHUNKS, sizeof(*taken));
	uint64_t nr = 0, begin;

	pin(runner->cpu);
	begin_together();
	begin = now_ns();
	while (now_ns() - begin < runner->ns) {
		uint64_t ns = timed(steps);

		/* The first half is for getting fast. */
		if (now_ns() - begin > runner->ns / 2 && nr < MAX_CHUNKS)
			taken[nr++] = (uint32_t)ns;
	}
	runner->chunk_ns = nr ? median(taken, nr) : 0;
	free(taken);
	return NULL;
}

static void turbo(void)
{
	static struct runner runners[MAX_CPUS];
	static uint32_t taken[MAX_CPUS];
	int first[MAX_CPUS], nr_cores = 0, active, i;

	for (i = 0; i < nr_cpus; i++)
		if (cores[i] == cpus[i])
			first[nr_cores++] = cpus[i];
	if (nr_cores < 2) {
		printf("absent turbo there is one core\n");
		return;
	}
	for (active = 1; active <= nr_cores; active++) {
		expect_threads(active);
		for (i = 0; i < active; i++) {
			runners[i].cpu = first[i];
			runners[i].ns = 4 * climb_ns + 20 * CHUNK_NS * 50ull;
			start_thread(&runners[i].thread, run_along, &runners[i]);
		}
		for (i = 0; i < active; i++) {
			join_thread(runners[i].thread);
			taken[i] = runners[i].chunk_ns;
		}
		printf("turbo %d %u\n", active, median(taken, active));
	}
}

/* ---- migrations ---- */

static void *nodes[NODES * NODE_BYTES / sizeof(void *)];

/* A cycle through all of them in an order that no prefetcher knows. */
static void link_nodes(void)
{
	static uint32_t order[NODES];
	uint32_t seed = 1, i, k, other;

	for (i = 0; i < NODES; i++)
		order[i] = i;
	for (i = NODES - 1; i; i--) {
		k = next_random(&seed) % (i + 1);
		other = order[i];
		order[i] = order[k];
		order[k] = other;
	}
	for (i = 0; i < NODES; i++)
		nodes[order[i] * NODE_BYTES / sizeof(void *)] =
			&nodes[order[(i + 1) % NODES] * NODE_BYTES / sizeof(void *)];
}

static uint64_t pass(void)
{
	uint64_t nr = NODES, begin = now_ns();
	void *node = nodes;

	__asm__ volatile(CHASE : "+r"(nr), "+r"(node) : : "cc", "memory");
	return now_ns() - begin;
}

/* Who keeps the other CPU fast, so that a migration costs what caches cost. */
static struct companion {
	pthread_t thread;
	int cpu[2];
	_Atomic int turn, left;
} companion;

static void *keep_fast(void *arg)
{
	int seen = 0, turn;

	(void)arg;
	pin(companion.cpu[1]);
	while ((turn = atomic_load(&companion.turn)) >= 0) {
		if (turn != seen) {
			seen = turn;
			atomic_store(&companion.left, turn);
			pin(companion.cpu[!(turn & 1)]);
		}
		spin(steps / 20 + 1);
	}
	return NULL;
}

static void migrate(const char *distance, int a, int b)
{
	uint64_t nr, end;
	int round;

	companion.cpu[0] = a;
	companion.cpu[1] = b;
	companion.turn = companion.left = 0;
	pin(a);
	start_thread(&companion.thread, keep_fast, NULL);
	for (round = 1; round <= MOVE_ROUNDS; round++) {
		/* Both CPUs get fast, this one's caches warm. */
		end = now_ns() + 2 * climb_ns + MOVE_NS;
		while (now_ns() < end)
			pass();
		atomic_store(&companion.turn, round);
		while (atomic_load(&companion.left) != round)
			spin(1);
		spin(steps / 2);
		pin(companion.cpu[round & 1]);
		end = now_ns() + MOVE_NS;
		for (nr = 0; nr < MAX_CHUNKS && now_ns() < end; nr++)
			chunks[nr] = (uint32_t)pass();
		printf("move %s %d", distance, NODES * CHASE_INSNS);
		print_runs(nr);
	}
	atomic_store(&companion.turn, -1);
	join_thread(companion.thread);
}

static void move(void)
{
	static const char *const names[] = { "core", "llc", "far" };
	static const char *const why[] = { "no two CPUs share a core",
					   "no two cores share a last-level cache",
					   "all CPUs share a last-level cache" };
	int distance, i, other;

	link_nodes();
	for (distance = 0; distance < 3; distance++) {
		for (i = 1, other = -1; i < nr_cpus && other < 0; i++)
			if (distance == (cores[i] == cores[0] ? 0 : llcs[i] == llcs[0] ? 1 : 2))
				other = cpus[i];
		if (other < 0)
			printf("absent %s %s\n", names[distance], why[distance]);
		else
			migrate(names[distance], cpus[0], other);
	}
}

/* ---- what the kernel costs ---- */

static void wake(void)
{
	uint32_t late[WAKES];
	int i;

	for (i = 0; i < WAKES; i++) {
		uint64_t at = now_ns() + WAKE_IDLE_NS;
		struct timespec ts = { at / NS_PER_S, at % NS_PER_S };

		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
			;
		late[i] = (uint32_t)(now_ns() - at);
	}
	printf("wake %u\n", median(late, WAKES));
}

static void calls(void)
{
	uint64_t begin;
	int i;

	warm_up();
	begin = now_ns();
	for (i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	printf("syscall %llu\n", (unsigned long long)(now_ns() - begin) / CALLS);
}

static _Atomic uint32_t ball;

/* Waits until the ball is its own, and gives it to the other one. */
static void play(uint32_t own)
{
	int i;

	for (i = 0; i < SWITCHES; i++) {
		while (atomic_load(&ball) != own)
			futex_wait(&ball, !own, 0, WITHIN_PROCESS);
		atomic_store(&ball, !own);
		futex_wake(&ball, 1, WITHIN_PROCESS);
	}
}

static void *play_second(void *arg)
{
	pin(*(int *)arg);
	play(1);
	return NULL;
}

static void switches(void)
{
	pthread_t thread;
	uint64_t begin;

	warm_up();
	begin = now_ns();
	start_thread(&thread, play_second, &cpus[0]);
	play(0);
	join_thread(thread);
	printf("switch %llu\n", (unsigned long long)(now_ns() - begin) / (2 * SWITCHES));
}

int main(void)
{
	/* Idle times are to be what is asked for. */
	if (prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0))
		fail("prctl");
	look();
	pin(cpus[0]);
	choose_chunk();
	ramp();
	decay();
	turbo();
	move();
	pin(cpus[0]);
	wake();
	calls();
	switches();
	return 0;
}
