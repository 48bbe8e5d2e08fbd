// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads, one a CPU or more, that repeat pieces of work with critical sections whose
 * latency is to have a bound: benchmarks 1 to 6 of Liu et al., "Asymmetry-aware Scalable
 * Locking", PPoPP 2022, with work in place of cache lines, of which simulated machines
 * have none. The locks are mutexes of libc, for a library to replace.
 *
 * epochs MS THREADS SLO_US CASE VALUE UNIT
 *
 * UNIT is the steps of work of one part. An epoch has four critical sections of 1, 2, 3 and 4
 * parts with two locks in turn; one part of work is between epochs. SLO_US is the bound for
 * libfreqlock; `none`: work is not reported to it as epochs. CASE and VALUE:
 *
 *   plain 0		all alike (benchmarks 1 and 4; 6 with two threads a CPU)
 *   variable N		in fifths of the time: 1, N times as long, 1, 1 to N by chance, 1 (2)
 *   mixed N		N% of epochs have 100 parts of work without a lock beside (3)
 *   pause N		one section of 1 part, and N hundredths of a part between two (5)
 *
 * Printed are epochs a second and their p99, also of little and of big CPUs.
 */
#define _GNU_SOURCE
#include "../cpus.h"
#include "../histogram.h"
#include "../threads.h"
#include "freqlock.h"

#pragma weak freqlock_epoch_start
#pragma weak freqlock_epoch_end

enum { EPOCH = 1 };
enum kind { PLAIN, VARIABLE, MIXED, PAUSE };

struct worker {
	pthread_t thread;
	int cpu;
	uint32_t random;
	uint64_t nr_sections[2];
	struct histogram epochs;
};

static const char *const kinds[] = { "plain", "variable", "mixed", "pause" };

static pthread_mutex_t locks[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
/* Nothing but the locks keeps these right. */
static volatile uint64_t nr_guarded[2];
static uint64_t unit, value, slo_ns, begin_ns, length_ns;
static bool has_epochs;
static enum kind kind;

static void section(struct worker *self, int lock, uint64_t parts)
{
	uint64_t guarded;

	pthread_mutex_lock(&locks[lock]);
	guarded = nr_guarded[lock];
	work(parts * unit);
	nr_guarded[lock] = guarded + 1;
	pthread_mutex_unlock(&locks[lock]);
	self->nr_sections[lock]++;
}

/* How many times as long epochs are now. */
static uint64_t factor_at(uint64_t now, uint32_t *random)
{
	uint64_t fifth = (now - begin_ns) * 5 / length_ns;

	if (kind == VARIABLE && fifth == 1)
		return value;
	if (kind == VARIABLE && fifth == 3)
		return 1 + next_random(random) % value;
	return 1;
}

static void epoch(struct worker *self, uint64_t now)
{
	uint64_t factor = factor_at(now, &self->random);

	if (kind == PAUSE) {
		section(self, 0, 1);
		return;
	}
	for (int i = 0; i < 4; i++)
		section(self, i % 2, (i + 1) * factor);
	if (kind == MIXED && next_random(&self->random) % 100 < value)
		work(100 * unit);
}

static void *worker_main(void *arg)
{
	struct worker *self = arg;
	uint64_t begin;
	bool counts;

	pin(self->cpu);
	begin_together();
	while (phase() != OVER) {
		counts = phase() == MEASURING;
		begin = now_ns();
		if (has_epochs && freqlock_epoch_start(EPOCH))
			wrong("an epoch does not begin");
		epoch(self, begin);
		if (has_epochs && freqlock_epoch_end(EPOCH, slo_ns))
			wrong("an epoch does not end");
		if (counts)
			histogram_add(&self->epochs, now_ns() - begin);
		work(kind == PAUSE ? unit * value / 100 : unit);
	}
	return NULL;
}

static long capacity_of(int cpu)
{
	char path[64];
	long capacity;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpu_capacity", cpu);
	file = fopen(path, "r");
	if (!file)
		return 1;
	if (fscanf(file, "%ld", &capacity) != 1)
		wrong("a cpu_capacity is no number");
	fclose(file);
	return capacity;
}

static enum kind kind_of(const char *name)
{
	for (int i = 0; i <= PAUSE; i++)
		if (!strcmp(kinds[i], name))
			return i;
	fprintf(stderr, "epochs: no case is called %s\n", name);
	exit(2);
}

static void print_p99(const char *of, const struct histogram *epochs)
{
	if (epochs->nr)
		print_us(of, "p99", percentile_ns(epochs, 0.99));
}

int main(int argc, char **argv)
{
	struct histogram *all = allocate(3, sizeof(*all)), *big = all + 1, *little = all + 2;
	struct worker *workers;
	long most = 0, nr_cpus;
	uint64_t elapsed_ns, nr_sections[2] = {};
	unsigned int nr, i;
	int *cpus;

	if (argc != 7) {
		fprintf(stderr, "usage: epochs MS THREADS SLO_US|none CASE VALUE UNIT\n");
		return 2;
	}
	length_ns = number(argv[1], 1, MAX_SECONDS * 1000) * 1000000ull;
	nr = number(argv[2], 1, MAX_THREADS);
	has_epochs = strcmp(argv[3], "none") && freqlock_epoch_start;
	if (has_epochs)
		slo_ns = number(argv[3], 0, LONG_MAX / NS_PER_US) * NS_PER_US;
	kind = kind_of(argv[4]);
	value = number(argv[5], kind == VARIABLE, 1000000);
	unit = number(argv[6], 1, LONG_MAX / 1000000);

	nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpus = allocate(nr_cpus, sizeof(*cpus));
	first_cpus(cpus, nr_cpus);
	for (i = 0; i < nr_cpus; i++)
		if (capacity_of(cpus[i]) > most)
			most = capacity_of(cpus[i]);
	workers = allocate(nr, sizeof(*workers));
	expect_threads(nr + 1);
	begin_ns = now_ns();
	for (i = 0; i < nr; i++) {
		workers[i].cpu = cpus[i % nr_cpus];
		workers[i].random = i + 1;
		start_thread(&workers[i].thread, worker_main, &workers[i]);
	}
	begin_together();
	begin_ns = now_ns() + length_ns / 10;
	elapsed_ns = measure_for(length_ns);
	for (i = 0; i < nr; i++) {
		join_thread(workers[i].thread);
		nr_sections[0] += workers[i].nr_sections[0];
		nr_sections[1] += workers[i].nr_sections[1];
		histogram_merge(all, &workers[i].epochs);
		histogram_merge(2 * capacity_of(workers[i].cpu) > most ? big : little,
				&workers[i].epochs);
	}
	if (nr_guarded[0] != nr_sections[0] || nr_guarded[1] != nr_sections[1])
		wrong("two threads were in a critical section at once");
	if (!all->nr)
		wrong("not one epoch came to an end: give it more time");
	printf("throughput %.1f 1/s higher\n", (double)all->nr * NS_PER_S / elapsed_ns);
	print_p99("", all);
	print_p99("little_", little);
	print_p99("big_", big);
	return 0;
}
