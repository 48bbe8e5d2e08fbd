// SPDX-License-Identifier: GPL-2.0-only
/*
 * Busy loops that share CPUs: how equal their turns are.
 *
 * turns SECONDS CPUS LOOPS[,LOOPS...]
 *
 * LOOPS: COUNT, COUNTxNICE, and with a p behind it the loops are pinned, one after the other
 * to the first, second, ... of the CPUs; the others may run on the first CPUS of those that
 * this program may use. After SECONDS, prints the largest relative difference between what a
 * loop got and what it should have had, in per cent.
 *
 * That is max-min fair by weight under what is possible: no loop can have more than a CPU,
 * those pinned to one not more than that together, and all not more than all. All shares grow
 * in step with the weights until one such limit is met; who is in it stays there (Bertsekas
 * and Gallager, "Data Networks", 1992, section 6.5.2).
 */
#define _GNU_SOURCE
#include "../cpus.h"
#include "../threads.h"

enum { MAX_CPUS = 64, MAX_LOOPS = 256 };

/* sched_prio_to_weight[], kernel/sched/core.c. */
static const double weights[] = {
	88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
	9548,  7620,  6100,  4904,  3906,  3121,  2501,  1991,  1586,  1277,
	1024,  820,   655,   526,   423,   335,   272,   215,   172,   137,
	110,   87,    70,    56,    45,    36,    29,    23,    18,    15,
};

static struct loop {
	pthread_t thread;
	clockid_t clock;
	int nice, cpu; /* pinned to that of @cpus, or -1 */
	uint64_t before, got;
	double ideal; /* CPUs */
	bool fixed;
} loops[MAX_LOOPS];

static long nr_loops, nr_cpus;
static int cpus[MAX_CPUS];

static void *loop_main(void *arg)
{
	struct loop *self = arg;
	cpu_set_t set;
	long i;

	CPU_ZERO(&set);
	for (i = 0; i < nr_cpus; i++)
		if (self->cpu < 0 || self->cpu == i)
			CPU_SET(cpus[i], &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("sched_setaffinity");
	set_nice(self->nice);
	begin_together();
	while (phase() != OVER)
		work(100);
	return NULL;
}

/* How far the loops of a limit may grow: each by @level times its weight, @room in all. */
static double level_of(double room, double weight)
{
	return weight > 0 ? room / weight : 1e9;
}

static bool in_limit(const struct loop *loop, long cpu)
{
	return cpu < 0 || loop->cpu == cpu;
}

/* Share out: see above. */
static void share_out(void)
{
	long left = nr_loops, i, c;

	while (left) {
		double level = 1e9;
		long tight = -2; /* -1: all CPUs, else the one whose pinned loops fill it */

		for (c = -1; c < nr_cpus; c++) {
			double room = c < 0 ? nr_cpus : 1, weight = 0;

			for (i = 0; i < nr_loops; i++) {
				if (!in_limit(&loops[i], c))
					continue;
				if (loops[i].fixed)
					room -= loops[i].ideal;
				else
					weight += weights[loops[i].nice + 20];
			}
			if (level_of(room, weight) < level) {
				level = level_of(room, weight);
				tight = c;
			}
		}
		for (i = 0; i < nr_loops; i++) {
			double weight = weights[loops[i].nice + 20];

			if (!loops[i].fixed && 1 / weight < level) {
				level = 1 / weight;
				tight = -2;
			}
		}
		for (i = 0; i < nr_loops; i++) {
			double weight = weights[loops[i].nice + 20];

			if (loops[i].fixed)
				continue;
			loops[i].ideal = level * weight;
			if (tight == -2 ? weight * level >= 1 - 1e-9 : in_limit(&loops[i], tight)) {
				loops[i].fixed = true;
				left--;
			}
		}
	}
}

static void parse(char *list)
{
	char *text;

	for (text = strtok(list, ","); text; text = strtok(NULL, ",")) {
		size_t length = strlen(text);
		bool pinned = length && text[length - 1] == 'p';
		char *nice = strchr(text, 'x');
		long nr, i;

		if (pinned)
			text[length - 1] = '\0';
		if (nice)
			*nice++ = '\0';
		nr = number(text, 1, MAX_LOOPS - nr_loops);
		for (i = 0; i < nr; i++) {
			loops[nr_loops].nice = nice ? number(nice, -20, 19) : 0;
			loops[nr_loops++].cpu = pinned ? i % nr_cpus : -1;
		}
	}
}

int main(int argc, char **argv)
{
	uint64_t ns, elapsed;
	double worst = 0;
	long i;

	if (argc != 4) {
		fprintf(stderr, "usage: turns SECONDS CPUS LOOPS[,LOOPS...]\n");
		return 2;
	}
	ns = number(argv[1], 1, MAX_SECONDS) * (uint64_t)NS_PER_S;
	nr_cpus = number(argv[2], 1, MAX_CPUS);
	first_cpus(cpus, nr_cpus);
	parse(argv[3]);
	share_out();
	expect_threads(nr_loops + 1);
	for (i = 0; i < nr_loops; i++) {
		start_thread(&loops[i].thread, loop_main, &loops[i]);
		if ((errno = pthread_getcpuclockid(loops[i].thread, &loops[i].clock)))
			fail("pthread_getcpuclockid");
	}
	begin_together();
	sleep_ns(ns / 10);
	for (i = 0; i < nr_loops; i++)
		loops[i].before = clock_ns(loops[i].clock);
	elapsed = now_ns();
	sleep_ns(ns);
	for (i = 0; i < nr_loops; i++)
		loops[i].got = clock_ns(loops[i].clock) - loops[i].before;
	elapsed = now_ns() - elapsed;
	atomic_store(&current_phase, OVER);
	for (i = 0; i < nr_loops; i++) {
		double share = (double)loops[i].got / elapsed / loops[i].ideal - 1;

		join_thread(loops[i].thread);
		if (share < 0)
			share = -share;
		if (share > worst)
			worst = share;
	}
	printf("unfair %.2f %% lower\n", worst * 100);
	return 0;
}
