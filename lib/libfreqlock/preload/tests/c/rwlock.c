/* SPDX-License-Identifier: MIT */
/* Reader-writer locks and spin locks. */
#include "check.h"

enum { THREADS = 4, ROUNDS = 1500 };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t writers_first = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

static int try_read(void *at)
{
	int result = pthread_rwlock_tryrdlock(at);

	if (!result)
		pthread_rwlock_unlock(at);
	return result;
}

static int try_write(void *at)
{
	int result = pthread_rwlock_trywrlock(at);

	if (!result)
		pthread_rwlock_unlock(at);
	return result;
}

static int read_late(void *at)
{
	struct timespec soon = in_ms(CLOCK_REALTIME, 20);
	int result = pthread_rwlock_timedrdlock(at, &soon);

	if (!result)
		pthread_rwlock_unlock(at);
	return result;
}

static int write_late(void *at)
{
	struct timespec soon = in_ms(CLOCK_MONOTONIC, 20);
	int result = pthread_rwlock_clockwrlock(at, CLOCK_MONOTONIC, &soon);

	if (!result)
		pthread_rwlock_unlock(at);
	return result;
}

static void all(pthread_rwlock_t *at)
{
	SHOW(elsewhere(try_read, at));
	SHOW(elsewhere(try_write, at));
	SHOW(elsewhere(read_late, at));
	SHOW(elsewhere(write_late, at));
}

static void results(const char *name, pthread_rwlock_t *at)
{
	struct timespec past = { 0, 0 }, never = { 0, -1 }, soon = in_ms(CLOCK_REALTIME, 20);

	begin(name);
	all(at);
	SHOW(pthread_rwlock_rdlock(at));
	SHOW(pthread_rwlock_rdlock(at));
	SHOW(pthread_rwlock_trywrlock(at));
	SHOW(pthread_rwlock_timedwrlock(at, &past));
	SHOW(pthread_rwlock_timedwrlock(at, &soon));
	SHOW(pthread_rwlock_timedwrlock(at, &never));
	all(at);
	SHOW(pthread_rwlock_unlock(at));
	SHOW(elsewhere(try_write, at));
	SHOW(pthread_rwlock_unlock(at));
	SHOW(pthread_rwlock_wrlock(at));
	SHOW(pthread_rwlock_wrlock(at));
	SHOW(pthread_rwlock_rdlock(at));
	SHOW(pthread_rwlock_tryrdlock(at));
	SHOW(pthread_rwlock_timedrdlock(at, &past));
	SHOW(pthread_rwlock_timedrdlock(at, &never));
	SHOW(pthread_rwlock_clockrdlock(at, CLOCK_PROCESS_CPUTIME_ID, &soon));
	all(at);
	SHOW(pthread_rwlock_unlock(at));
	all(at);
}

static long sum, readers;
static pthread_spinlock_t spin;

static void *read_or_write(void *at)
{
	struct timespec late = in_ms(CLOCK_REALTIME, 60000);

	for (int i = 0; i < ROUNDS; i++) {
		if (i % 8) {
			MUST(!(i % 2 ? pthread_rwlock_rdlock(at) :
				       pthread_rwlock_timedrdlock(at, &late)));
			__atomic_add_fetch(&readers, 1, __ATOMIC_RELAXED);
			if (i % 256 == 1)
				usleep(50);
			__atomic_sub_fetch(&readers, 1, __ATOMIC_RELAXED);
		} else {
			MUST(!(i % 16 ? pthread_rwlock_wrlock(at) :
					pthread_rwlock_timedwrlock(at, &late)));
			MUST(!__atomic_load_n(&readers, __ATOMIC_RELAXED));
			sum++;
			if (i % 256 == 0)
				usleep(50);
			MUST(!__atomic_load_n(&readers, __ATOMIC_RELAXED));
		}
		MUST(!pthread_rwlock_unlock(at));
	}
	return NULL;
}

static void exclusion(const char *name, void *(*what)(void *), void *at)
{
	pthread_t thread[THREADS];

	begin(name);
	sum = 0;
	for (int i = 0; i < THREADS; i++)
		thread[i] = start(what, at);
	for (int i = 0; i < THREADS; i++)
		finish(thread[i]);
	printf("%ld\n", sum);
}

static void *write_once(void *at)
{
	MUST(!pthread_rwlock_wrlock(at));
	MUST(!pthread_rwlock_unlock(at));
	return NULL;
}

/* By default a reader may read again while a writer waits; with that attribute new ones wait. */
static void preference(pthread_rwlock_t *at)
{
	pthread_t writer;

	begin("preference");
	MUST(!pthread_rwlock_rdlock(at));
	writer = start(write_once, at);
	if (at == &writers_first)
		while (elsewhere(try_read, at) != EBUSY)
			sleep_ms(1);
	else
		sleep_ms(30);
	SHOW(elsewhere(try_read, at));
	SHOW(elsewhere(read_late, at));
	MUST(!pthread_rwlock_unlock(at));
	finish(writer);
	all(at);
}

/* A writer that does not wait for longer lets readers in. */
static void writer_gives_up(pthread_rwlock_t *at)
{
	begin("writer gives up");
	MUST(!pthread_rwlock_rdlock(at));
	SHOW(elsewhere(write_late, at));
	SHOW(elsewhere(read_late, at));
	MUST(!pthread_rwlock_unlock(at));
	all(at);
}

static void *count(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		if (i % 2)
			MUST(!pthread_spin_lock(&spin));
		else
			while (pthread_spin_trylock(&spin))
				usleep(10);
		sum++;
		/* As if the holder had lost its CPU. */
		if (i % 512 == 0)
			usleep(200);
		MUST(!pthread_spin_unlock(&spin));
	}
	return arg;
}

static int try_spin(void *arg)
{
	(void)arg;
	return pthread_spin_trylock(&spin);
}

static void spins(void)
{
	begin("spin locks");
	SHOW(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
	SHOW(pthread_spin_lock(&spin));
	SHOW(pthread_spin_trylock(&spin));
	SHOW(elsewhere(try_spin, NULL));
	SHOW(pthread_spin_unlock(&spin));
	SHOW(pthread_spin_trylock(&spin));
	SHOW(pthread_spin_unlock(&spin));
	exclusion("spin exclusion", count, NULL);
	SHOW(pthread_spin_destroy(&spin));
}

int main(void)
{
	pthread_rwlock_t *own = malloc(sizeof(*own));

	memset(own, 0xff, sizeof(*own));
	results("static", &lock);
	SHOW(pthread_rwlock_init(own, NULL));
	results("initialised", own);
	results("writers first", &writers_first);
	exclusion("exclusion", read_or_write, &lock);
	exclusion("exclusion, writers first", read_or_write, &writers_first);
	preference(&lock);
	preference(&writers_first);
	writer_gives_up(&lock);
	writer_gives_up(&writers_first);
	SHOW(pthread_rwlock_destroy(own));
	spins();
	return 0;
}
