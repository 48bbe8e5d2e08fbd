// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where knowing who holds a lock gains nothing and may cost something.
 *
 * losers SECONDS THREADS
 *
 * Three cases, each for SECONDS, with all threads alike:
 *
 *   barriers  rounds per second of threads that work a little and meet at a
 *             barrier, as streamcluster does: all wait for the last one, and
 *             nobody holds anything
 *   jobs      short jobs per second of a thread pool: its idle threads wait at a
 *             condition variable, and the thread that hands out jobs at another
 *   holds     critical sections per second, each shorter than a microsecond, of
 *             fewer locks than threads
 */
#define _GNU_SOURCE
#include "../common.h"
#include "../threads.h"

enum {
	ROUND_STEPS = 30000, /* 40 us at 3 GHz */
	JOB_STEPS = 15000,
	HOLD_STEPS = 300,
	PAUSE_STEPS = 1500,
	QUEUE_PER_THREAD = 2,
	MAX_LOCKS = 64,
};

struct worker {
	pthread_t thread;
	uint32_t random;
	uint64_t nr_done; /* from first to last, settling included */
	uint64_t nr_measured;
};

static struct worker *workers;
static unsigned int nr_threads;
static uint64_t seconds;

static void count(struct worker *self)
{
	self->nr_done++;
	self->nr_measured += phase() == MEASURING;
}

/* ---- barriers ---- */

static pthread_barrier_t barrier;
/* Decided by one thread between two barriers, so that all end in one round. */
static bool last_round;

static void *barriers_main(void *arg)
{
	struct worker *self = arg;
	bool last;

	begin_together();
	do {
		/* Not alike: somebody is always late. */
		work(ROUND_STEPS + next_random(&self->random) % ROUND_STEPS);
		if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
			last_round = phase() == OVER;
		count(self);
		pthread_barrier_wait(&barrier);
		last = last_round;
	} while (!last);
	return NULL;
}

static uint64_t barriers_check(void)
{
	unsigned int i;

	for (i = 1; i < nr_threads; i++)
		if (workers[i].nr_done != workers[0].nr_done)
			wrong("threads passed a barrier unequally often");
	return workers[0].nr_measured;
}

/* ---- a thread pool ---- */

static pthread_mutex_t pool = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, drained = PTHREAD_COND_INITIALIZER;
static unsigned int nr_queued;
static uint64_t nr_handed_out;
static bool closed;

static void *hand_out_main(void *arg)
{
	(void)arg;
	begin_together();
	pthread_mutex_lock(&pool);
	while (phase() != OVER) {
		while (nr_queued == QUEUE_PER_THREAD * nr_threads)
			pthread_cond_wait(&drained, &pool);
		nr_queued++;
		nr_handed_out++;
		pthread_cond_signal(&filled);
	}
	closed = true;
	pthread_cond_broadcast(&filled);
	pthread_mutex_unlock(&pool);
	return NULL;
}

static void *jobs_main(void *arg)
{
	struct worker *self = arg;

	begin_together();
	pthread_mutex_lock(&pool);
	for (;;) {
		while (!nr_queued && !closed)
			pthread_cond_wait(&filled, &pool);
		if (!nr_queued)
			break;
		nr_queued--;
		/* Half of it is to be done before the next are handed out. */
		if (nr_queued == QUEUE_PER_THREAD * nr_threads / 2)
			pthread_cond_signal(&drained);
		pthread_mutex_unlock(&pool);
		work(JOB_STEPS);
		count(self);
		pthread_mutex_lock(&pool);
	}
	pthread_mutex_unlock(&pool);
	return NULL;
}

static uint64_t sum_measured(void)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < nr_threads; i++)
		sum += workers[i].nr_measured;
	return sum;
}

static uint64_t sum_done(void)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < nr_threads; i++)
		sum += workers[i].nr_done;
	return sum;
}

static uint64_t jobs_check(void)
{
	if (sum_done() != nr_handed_out)
		wrong("jobs were lost or done twice");
	return sum_measured();
}

/* ---- many short holds ---- */

/* A cache line each; nothing but the mutex keeps the number right. */
static struct {
	pthread_mutex_t mutex;
	volatile uint64_t nr_guarded;
} __attribute__((aligned(64))) locks[MAX_LOCKS];
static unsigned int nr_locks;

static void *holds_main(void *arg)
{
	struct worker *self = arg;
	uint64_t guarded;
	unsigned int i;

	begin_together();
	while (phase() != OVER) {
		i = next_random(&self->random) % nr_locks;
		pthread_mutex_lock(&locks[i].mutex);
		guarded = locks[i].nr_guarded;
		work(HOLD_STEPS);
		locks[i].nr_guarded = guarded + 1;
		pthread_mutex_unlock(&locks[i].mutex);
		count(self);
		work(PAUSE_STEPS);
	}
	return NULL;
}

static uint64_t holds_check(void)
{
	uint64_t guarded = 0;
	unsigned int i;

	for (i = 0; i < nr_locks; i++)
		guarded += locks[i].nr_guarded;
	if (sum_done() != guarded)
		wrong("two threads held one lock at once");
	return sum_measured();
}

static const struct loser {
	const char *name;
	void *(*worker)(void *);
	void *(*feeder)(void *); /* one thread more, where there is one */
	uint64_t (*check)(void); /* what was done while measuring */
} losers[] = {
	{ "barriers", barriers_main, NULL, barriers_check },
	{ "jobs", jobs_main, hand_out_main, jobs_check },
	{ "holds", holds_main, NULL, holds_check },
};

static void run(const struct loser *loser)
{
	uint64_t elapsed_ns, nr;
	pthread_t feeder;
	unsigned int i;

	expect_threads(nr_threads + 1 + !!loser->feeder);
	for (i = 0; i < nr_threads; i++) {
		workers[i] = (struct worker){ .random = i + 1 };
		start_thread(&workers[i].thread, loser->worker, &workers[i]);
	}
	if (loser->feeder)
		start_thread(&feeder, loser->feeder, NULL);
	begin_together();
	elapsed_ns = measure_for(seconds * NS_PER_S);
	if (loser->feeder)
		join_thread(feeder);
	for (i = 0; i < nr_threads; i++)
		join_thread(workers[i].thread);
	nr = loser->check();
	if (nr == 0)
		wrong("nothing was done: give it more seconds");
	printf("%s %.1f 1/s higher\n", loser->name, (double)nr * NS_PER_S / elapsed_ns);
}

int main(int argc, char **argv)
{
	unsigned int i;

	if (argc != 3) {
		fprintf(stderr, "usage: losers SECONDS THREADS\n");
		return 2;
	}
	seconds = number(argv[1], 1, MAX_SECONDS);
	nr_threads = number(argv[2], 2, MAX_THREADS);
	workers = allocate(nr_threads, sizeof(*workers));
	pthread_barrier_init(&barrier, NULL, nr_threads);
	nr_locks = nr_threads / 2 < MAX_LOCKS ? nr_threads / 2 : MAX_LOCKS;
	for (i = 0; i < nr_locks; i++)
		pthread_mutex_init(&locks[i].mutex, NULL);
	for (i = 0; i < sizeof(losers) / sizeof(losers[0]); i++)
		run(&losers[i]);
	return 0;
}
