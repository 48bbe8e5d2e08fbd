// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs' usual ways to use mutexes and condition variables, with many threads, for a
 * library to replace these.
 *
 * contended MS THREADS CASE UNIT
 *
 * UNIT is the steps of a piece of work. CASE:
 *
 *   mutex	one mutex for a piece of work, and four pieces between two of those: the
 *		microbenchmark of FlexGuard (SOSP 2025)
 *   barrier	all threads work for a random time and meet at a barrier of a mutex and a
 *		condition variable, as in PARSEC's streamcluster
 *   fill	writers queue up with a condition variable each; the first one writes what all
 *		of them want without the mutex, and wakes them: LevelDB's fillrandom
 *   queue	half of the threads put pieces of work into a queue of 64, the others take
 *		and do them: two condition variables
 *
 * Printed is how many pieces of that kind were done a second.
 */
#define _GNU_SOURCE
#include "../threads.h"

enum { QUEUE_ROOM = 64, BATCH = 16 };

struct worker {
	pthread_t thread;
	void *(*run)(struct worker *self);
	uint32_t random;
	uint64_t nr_done; /* while it is measured */
	uint64_t nr_sections;
	/* fill: */
	struct worker *next;
	pthread_cond_t written;
	bool is_done;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_cond_t has_room = PTHREAD_COND_INITIALIZER;
static uint64_t unit;
static unsigned int nr_threads;
/* Guarded by the mutex. */
static unsigned int nr_arrived, nr_queued, round_now;
static struct worker *first, **last = &first;
static bool is_over;
static volatile uint64_t nr_guarded;

static void count(struct worker *self)
{
	self->nr_done += phase() == MEASURING;
}

static void *run_mutex(struct worker *self)
{
	uint64_t guarded;

	while (phase() != OVER) {
		pthread_mutex_lock(&mutex);
		guarded = nr_guarded;
		work(unit);
		nr_guarded = guarded + 1;
		pthread_mutex_unlock(&mutex);
		self->nr_sections++;
		count(self);
		work(4 * unit);
	}
	return NULL;
}

/* False: it is over. All see that in the same round. */
static bool meet(void)
{
	unsigned int round;
	bool over;

	pthread_mutex_lock(&mutex);
	round = round_now;
	if (++nr_arrived == nr_threads) {
		nr_arrived = 0;
		round_now++;
		is_over = phase() == OVER;
		pthread_cond_broadcast(&changed);
	} else {
		while (round == round_now)
			pthread_cond_wait(&changed, &mutex);
	}
	over = is_over;
	pthread_mutex_unlock(&mutex);
	return !over;
}

static void *run_barrier(struct worker *self)
{
	do {
		work(unit + next_random(&self->random) % unit);
		count(self);
	} while (meet());
	return NULL;
}

/* The first in the queue: what it and those behind it want is written at once. */
static void write_batch(void)
{
	struct worker *writer = first;
	int nr;

	for (nr = 1; nr < BATCH && writer->next; nr++)
		writer = writer->next;
	pthread_mutex_unlock(&mutex);
	work(nr * unit);
	pthread_mutex_lock(&mutex);
	while (nr--) {
		writer = first;
		first = writer->next;
		if (!first)
			last = &first;
		writer->is_done = true;
		pthread_cond_signal(&writer->written);
	}
	if (first)
		pthread_cond_signal(&first->written);
}

static void *run_fill(struct worker *self)
{
	while (phase() != OVER) {
		work(unit);
		pthread_mutex_lock(&mutex);
		self->next = NULL;
		self->is_done = false;
		*last = self;
		last = &self->next;
		while (!self->is_done && first != self)
			pthread_cond_wait(&self->written, &mutex);
		if (!self->is_done)
			write_batch();
		pthread_mutex_unlock(&mutex);
		count(self);
	}
	return NULL;
}

static void *run_put(struct worker *self)
{
	bool over = false;

	while (!over) {
		work(unit);
		pthread_mutex_lock(&mutex);
		while (nr_queued == QUEUE_ROOM && !is_over)
			pthread_cond_wait(&has_room, &mutex);
		nr_queued += nr_queued < QUEUE_ROOM;
		over = is_over |= phase() == OVER;
		pthread_cond_signal(&changed);
		if (over) {
			pthread_cond_broadcast(&changed);
			pthread_cond_broadcast(&has_room);
		}
		pthread_mutex_unlock(&mutex);
		count(self);
	}
	return NULL;
}

static void *run_take(struct worker *self)
{
	bool over = false;

	(void)self;
	while (!over) {
		pthread_mutex_lock(&mutex);
		while (!nr_queued && !is_over)
			pthread_cond_wait(&changed, &mutex);
		nr_queued -= nr_queued > 0;
		over = is_over;
		pthread_cond_signal(&has_room);
		pthread_mutex_unlock(&mutex);
		work(unit);
	}
	return NULL;
}

/* Threads of even and of odd numbers. */
static const struct {
	const char *name;
	void *(*run[2])(struct worker *self);
} cases[] = {
	{ "mutex", { run_mutex, run_mutex } },
	{ "barrier", { run_barrier, run_barrier } },
	{ "fill", { run_fill, run_fill } },
	{ "queue", { run_put, run_take } },
};

static void *worker_main(void *arg)
{
	struct worker *self = arg;

	begin_together();
	return self->run(self);
}

int main(int argc, char **argv)
{
	const unsigned int nr_cases = sizeof(cases) / sizeof(*cases);
	uint64_t length_ns, elapsed_ns, nr_done = 0, nr_sections = 0;
	struct worker *workers;
	unsigned int i, kind;

	if (argc != 5) {
		fprintf(stderr, "usage: contended MS THREADS CASE UNIT\n");
		return 2;
	}
	length_ns = number(argv[1], 1, MAX_SECONDS * 1000) * 1000000ull;
	nr_threads = number(argv[2], 2, MAX_THREADS);
	for (kind = 0; kind < nr_cases && strcmp(argv[3], cases[kind].name); kind++)
		;
	if (kind == nr_cases) {
		fprintf(stderr, "contended: no case is called %s\n", argv[3]);
		return 2;
	}
	unit = number(argv[4], 1, LONG_MAX / 1000);
	workers = allocate(nr_threads, sizeof(*workers));
	expect_threads(nr_threads + 1);
	for (i = 0; i < nr_threads; i++) {
		pthread_cond_init(&workers[i].written, NULL);
		workers[i].random = i + 1;
		workers[i].run = cases[kind].run[i % 2];
		start_thread(&workers[i].thread, worker_main, &workers[i]);
	}
	begin_together();
	elapsed_ns = measure_for(length_ns);
	for (i = 0; i < nr_threads; i++) {
		join_thread(workers[i].thread);
		nr_done += workers[i].nr_done;
		nr_sections += workers[i].nr_sections;
	}
	if (nr_guarded != nr_sections)
		wrong("two threads were in a critical section at once");
	if (!nr_done)
		wrong("nothing was done: give it more time");
	printf("throughput %.1f 1/s higher\n", (double)nr_done * NS_PER_S / elapsed_ns);
	return 0;
}
