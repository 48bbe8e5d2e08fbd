/* SPDX-License-Identifier: MIT */
/* Mutexes: results of each type, who is kept apart, deadlines, wrong use. */
#include "check.h"
#include <signal.h>

enum { THREADS = 4, ROUNDS = 1500 };

static pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;

/* Used before any constructor of the preloaded library. */
static int early[3];

static void lock_early(void)
{
	early[0] = pthread_mutex_lock(&recursive);
	early[1] = pthread_mutex_lock(&recursive);
	early[2] = pthread_mutex_unlock(&recursive) | pthread_mutex_unlock(&recursive);
}

__attribute__((section(".preinit_array"), used)) static void (*before_all)(void) = lock_early;

static int try_lock(void *mutex)
{
	int result = pthread_mutex_trylock(mutex);

	if (!result)
		pthread_mutex_unlock(mutex);
	return result;
}

static int unlock(void *mutex)
{
	return pthread_mutex_unlock(mutex);
}

static void types(const char *name, pthread_mutex_t *mutex, int relocks)
{
	struct timespec past = { 0, 0 }, soon = in_ms(CLOCK_REALTIME, 20);
	struct timespec soon_too = in_ms(CLOCK_MONOTONIC, 40), never = { 0, 1000000000 };

	begin(name);
	SHOW(pthread_mutex_lock(mutex));
	SHOW(elsewhere(try_lock, mutex));
	SHOW(pthread_mutex_destroy(mutex));
	SHOW(pthread_mutex_trylock(mutex));
	SHOW(pthread_mutex_timedlock(mutex, &soon));
	SHOW(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &soon_too));
	SHOW(pthread_mutex_timedlock(mutex, &past));
	SHOW(pthread_mutex_timedlock(mutex, &never));
	SHOW(pthread_mutex_clocklock(mutex, CLOCK_PROCESS_CPUTIME_ID, &soon));
	if (relocks)
		SHOW(pthread_mutex_lock(mutex));
	/* Once more than is locked would be without results for a normal one. */
	SHOW(pthread_mutex_unlock(mutex));
	for (int i = 0; relocks && i < 6; i++)
		SHOW(pthread_mutex_unlock(mutex));
	SHOW(elsewhere(try_lock, mutex));
	SHOW(pthread_mutex_timedlock(mutex, &past));
	SHOW(pthread_mutex_unlock(mutex));
	SHOW(pthread_mutex_lock(mutex));
	SHOW(elsewhere(unlock, mutex));
	SHOW(elsewhere(try_lock, mutex));
	if (relocks) {
		SHOW(pthread_mutex_unlock(mutex));
		SHOW(elsewhere(unlock, mutex));
	}
	SHOW(pthread_mutex_destroy(mutex));
}

static void initialised(int type)
{
	pthread_mutex_t mutex;
	pthread_mutexattr_t attr;

	memset(&mutex, 0xff, sizeof(mutex));
	MUST(!pthread_mutexattr_init(&attr));
	MUST(!pthread_mutexattr_settype(&attr, type));
	SHOW(pthread_mutex_init(&mutex, &attr));
	types("initialised", &mutex, type != PTHREAD_MUTEX_NORMAL);
	/* Destroyed, then made anew. */
	SHOW(pthread_mutex_lock(&mutex));
	SHOW(pthread_mutex_init(&mutex, NULL));
	SHOW(pthread_mutex_lock(&mutex));
	SHOW(pthread_mutex_unlock(&mutex));
}

struct counter {
	pthread_mutex_t mutex;
	long sum;
	int inside;
};

static void *count(void *arg)
{
	struct counter *counter = arg;
	struct timespec late = in_ms(CLOCK_REALTIME, 60000),
			late_too = in_ms(CLOCK_MONOTONIC, 60000);

	for (int i = 0; i < ROUNDS; i++) {
		switch (i % 4) {
		case 0:
			MUST(!pthread_mutex_lock(&counter->mutex));
			break;
		case 1:
			MUST(!pthread_mutex_timedlock(&counter->mutex, &late));
			break;
		case 2:
			MUST(!pthread_mutex_clocklock(&counter->mutex, CLOCK_MONOTONIC, &late_too));
			break;
		default:
			while (pthread_mutex_trylock(&counter->mutex))
				usleep(10);
		}
		MUST(!counter->inside++);
		counter->sum++;
		/* Waiters get to sleep, now and then. */
		if (i % 256 == 0)
			usleep(100);
		MUST(counter->inside-- == 1);
		MUST(!pthread_mutex_unlock(&counter->mutex));
	}
	return NULL;
}

static void exclusion(void)
{
	struct counter counter = { PTHREAD_MUTEX_INITIALIZER, 0, 0 };
	pthread_t thread[THREADS];

	begin("exclusion");
	for (int i = 0; i < THREADS; i++)
		thread[i] = start(count, &counter);
	for (int i = 0; i < THREADS; i++)
		finish(thread[i]);
	printf("%ld\n", counter.sum);
	SHOW(pthread_mutex_destroy(&counter.mutex));
}

static void *give_up(void *mutex)
{
	struct timespec soon = in_ms(CLOCK_MONOTONIC, 30);
	long long began = now_ns(CLOCK_MONOTONIC);
	int result = pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &soon);

	MUST(now_ns(CLOCK_MONOTONIC) - began > 29000000);
	return (void *)(long)result;
}

static void *pass(void *mutex)
{
	MUST(!pthread_mutex_lock(mutex));
	MUST(!pthread_mutex_unlock(mutex));
	return NULL;
}

/* Of those who wait, each second one has a deadline, and leaves from wherever it waits. */
static void deadlines(void)
{
	pthread_t thread[8];

	begin("deadlines");
	for (int round = 0; round < 3; round++) {
		MUST(!pthread_mutex_lock(&normal));
		for (int i = 0; i < 8; i++) {
			thread[i] = start((i + round) % 2 ? give_up : pass, &normal);
			usleep(500);
		}
		for (int i = !(round % 2); i < 8; i += 2)
			printf("%s ", name_of((int)(long)finish(thread[i])));
		MUST(!pthread_mutex_unlock(&normal));
		for (int i = round % 2; i < 8; i += 2)
			finish(thread[i]);
		printf("\n");
		SHOW(elsewhere(try_lock, &normal));
	}
}

static void *exit_with(void *mutex)
{
	pthread_mutex_lock(mutex);
	return NULL;
}

static void left_locked(void)
{
	begin("left locked by a thread that has ended");
	finish(start(exit_with, &adaptive));
	SHOW(elsewhere(try_lock, &adaptive));
	SHOW(pthread_mutex_unlock(&adaptive));
	SHOW(elsewhere(try_lock, &adaptive));
}

static pthread_mutex_t in_handler = PTHREAD_MUTEX_INITIALIZER;
static volatile int handled, busy;

static void handler(int signal)
{
	int result = pthread_mutex_trylock(&in_handler);

	(void)signal;
	if (!result)
		pthread_mutex_unlock(&in_handler);
	busy += result == EBUSY;
	handled++;
}

/* A handler tries to lock, wherever in a lock or an unlock the thread is. */
static void signals(void)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec often = { { 0, 50000 }, { 0, 50000 } };
	timer_t timer;

	begin("signals");
	sigaction(SIGUSR1, &action, NULL);
	MUST(!pthread_mutex_lock(&in_handler));
	raise(SIGUSR1);
	printf("busy %d\n", busy);
	MUST(!pthread_mutex_unlock(&in_handler));
	MUST(!timer_create(CLOCK_MONOTONIC, &event, &timer));
	MUST(!timer_settime(timer, 0, &often, NULL));
	while (handled < 200) {
		MUST(!pthread_mutex_lock(&normal));
		MUST(!pthread_mutex_lock(&in_handler));
		MUST(!pthread_mutex_unlock(&in_handler));
		MUST(!pthread_mutex_unlock(&normal));
	}
	timer_delete(timer);
	SHOW(elsewhere(try_lock, &in_handler));
}

int main(void)
{
	printf("early: %d %d %d\n", early[0], early[1], early[2]);
	errno = EXDEV;
	types("normal", &normal, 0);
	types("recursive", &recursive, 1);
	types("error-checking", &checking, 1);
	types("adaptive", &adaptive, 0);
	MUST(errno == EXDEV);
	/* Destroyed above. */
	SHOW(pthread_mutex_lock(&normal));
	SHOW(pthread_mutex_init(&normal, NULL));
	SHOW(pthread_mutex_init(&adaptive, NULL));
	initialised(PTHREAD_MUTEX_NORMAL);
	initialised(PTHREAD_MUTEX_RECURSIVE);
	initialised(PTHREAD_MUTEX_ERRORCHECK);
	exclusion();
	deadlines();
	left_locked();
	signals();
	return 0;
}
