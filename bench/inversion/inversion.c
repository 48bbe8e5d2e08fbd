// SPDX-License-Identifier: GPL-2.0-only
/*
 * Priority inversion: a thread of high priority waits for a lock whose holder,
 * of low priority, does not get to run because of busy threads in between.
 *
 * inversion SECONDS DEPTH HOGS STEPS LOW MIDDLE HIGH
 *
 * With DEPTH 1 there is one mutex. With more, each lock's holder of low priority
 * waits for the next lock, and only the last holder can run:
 *
 *   high -> lock 0, held by link 0 -> lock 1, held by link 1 -> ... -> link DEPTH-1
 *
 * The chain is built anew for each wait, from its end, and the last link stays
 * in its critical section, computing, until the thread of high priority is about
 * to wait. Then every link does STEPS of work with its lock held. LOW, MIDDLE and
 * HIGH are nice values; MIDDLE is that of HOGS threads which never sleep.
 *
 * Printed are the waits of the high thread, the critical sections (what the links
 * computed between the beginning of a wait and its end, by their own CPU clocks,
 * so without the time when they were kept from running), the p99 wait as a multiple
 * of the longest, and how many waits there were in a second: a p99 of few is the
 * longest.
 */
#define _GNU_SOURCE
#include "../common.h"
#include "../histogram.h"
#include "../threads.h"

enum {
	MAX_DEPTH = 16,
	/* Between two looks at the world: microseconds. */
	LOOK_STEPS = 1000,
};

struct link {
	pthread_t thread;
	unsigned int index;
	pthread_mutex_t lock;
	/* Futexes: the round that it is asked to take part in, and that it is in. */
	_Atomic uint32_t wanted, holding;
	/* Of this round: what its lock's critical section took of its CPU time. */
	uint64_t section_ns;
};

static struct link links[MAX_DEPTH];
static unsigned int depth;
static uint64_t steps;
static int low, middle, high;

/* The round in which the last link may go on. */
static _Atomic uint32_t released;
static _Atomic bool ended;

/* Of the high thread, and what stood in the way of each. */
static struct histogram waits, sections;

static void await_round(_Atomic uint32_t *word, uint32_t round)
{
	uint32_t now;

	while ((now = atomic_load(word)) != round)
		futex_wait(word, now, 0, WITHIN_PROCESS);
}

static void announce(_Atomic uint32_t *word, uint32_t round)
{
	atomic_store(word, round);
	futex_wake(word, 1, WITHIN_PROCESS);
}

static void *link_main(void *arg)
{
	struct link *self = arg, *next = self + 1;
	bool last = self->index + 1 == depth;
	uint64_t begin;
	uint32_t round;

	set_nice(low);
	for (round = 1;; round++) {
		await_round(&self->wanted, round);
		if (atomic_load(&ended))
			return NULL;
		pthread_mutex_lock(&self->lock);
		announce(&self->holding, round);
		if (last)
			while (atomic_load(&released) != round)
				work(LOOK_STEPS);
		if (!last)
			pthread_mutex_lock(&next->lock);
		begin = cpu_ns();
		work(steps);
		self->section_ns = cpu_ns() - begin;
		if (!last)
			pthread_mutex_unlock(&next->lock);
		pthread_mutex_unlock(&self->lock);
	}
}

static void *hog_main(void *arg)
{
	(void)arg;
	set_nice(middle);
	while (!atomic_load(&ended))
		work(LOOK_STEPS);
	return NULL;
}

static void *high_main(void *arg)
{
	uint64_t begin, end, section_ns;
	uint32_t round = 0;
	unsigned int i;
	bool counts;

	(void)arg;
	set_nice(high);
	while (phase() != OVER) {
		round++;
		for (i = depth; i-- > 0;) {
			announce(&links[i].wanted, round);
			await_round(&links[i].holding, round);
		}
		/* By its beginning, or the longest would be left out at the end. */
		counts = phase() == MEASURING;
		begin = now_ns();
		atomic_store(&released, round);
		pthread_mutex_lock(&links[0].lock);
		end = now_ns();
		for (i = 0, section_ns = 0; i < depth; i++)
			section_ns += links[i].section_ns;
		pthread_mutex_unlock(&links[0].lock);
		if (!counts)
			continue;
		histogram_add(&waits, end - begin);
		histogram_add(&sections, section_ns);
	}
	atomic_store(&ended, true);
	for (i = 0; i < depth; i++)
		announce(&links[i].wanted, round + 1);
	return NULL;
}

static void report(uint64_t elapsed_ns)
{
	double p99 = percentile_ns(&waits, 0.99);

	if (waits.nr == 0)
		wrong("not one wait came to an end: give it more seconds");
	if (sections.longest_ns == 0)
		wrong("a critical section without CPU time");
	print_us("wait_", "mean", mean_ns(&waits));
	print_us("wait_", "p50", percentile_ns(&waits, 0.5));
	print_us("wait_", "p99", p99);
	print_us("wait_", "longest", waits.longest_ns);
	print_us("section_", "p50", percentile_ns(&sections, 0.5));
	print_us("section_", "longest", sections.longest_ns);
	printf("p99_in_sections %.3f x lower\n", p99 / sections.longest_ns);
	printf("waits %.3f 1/s higher\n", (double)waits.nr * NS_PER_S / elapsed_ns);
}

int main(int argc, char **argv)
{
	unsigned int nr_hogs, i;
	pthread_t waiter, *hogs;
	uint64_t seconds, elapsed_ns;

	if (argc != 8) {
		fprintf(stderr, "usage: inversion SECONDS DEPTH HOGS STEPS LOW MIDDLE HIGH\n");
		return 2;
	}
	seconds = number(argv[1], 1, MAX_SECONDS);
	depth = number(argv[2], 1, MAX_DEPTH);
	nr_hogs = number(argv[3], 0, MAX_THREADS);
	steps = number(argv[4], 1, LONG_MAX);
	low = number(argv[5], -20, 19);
	middle = number(argv[6], -20, 19);
	high = number(argv[7], -20, 19);

	for (i = 0; i < depth; i++) {
		links[i].index = i;
		pthread_mutex_init(&links[i].lock, NULL);
		start_thread(&links[i].thread, link_main, &links[i]);
	}
	start_thread(&waiter, high_main, NULL);
	hogs = allocate(nr_hogs, sizeof(*hogs));
	for (i = 0; i < nr_hogs; i++)
		start_thread(&hogs[i], hog_main, NULL);
	elapsed_ns = measure_for(seconds * NS_PER_S);
	join_thread(waiter);
	for (i = 0; i < depth; i++)
		join_thread(links[i].thread);
	for (i = 0; i < nr_hogs; i++)
		join_thread(hogs[i]);
	report(elapsed_ns);
	return 0;
}
