/* SPDX-License-Identifier: MIT */
/* Condition variables: results, no signal is lost or taken twice, time limits, destruction,
 * cancellation. */
#include "check.h"
#include <sys/mman.h>

enum { WAITERS = 6, TOKENS = 600, CANCELS = 600 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long tokens, taken, waiting, woken;
static int over;

static void results(void)
{
	pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
	struct timespec past = { 0, 0 }, before = { -1, 0 }, never = { 0, 1000000000 };
	struct timespec soon = in_ms(CLOCK_REALTIME, 30), soon_too = in_ms(CLOCK_MONOTONIC, 60);
	pthread_condattr_t attr;
	pthread_cond_t own;

	begin("results");
	SHOW(pthread_cond_signal(&cond));
	SHOW(pthread_cond_broadcast(&cond));
	MUST(!pthread_mutex_lock(&mutex));
	SHOW(pthread_cond_timedwait(&cond, &mutex, &past));
	SHOW(pthread_cond_timedwait(&cond, &mutex, &before));
	SHOW(pthread_cond_timedwait(&cond, &mutex, &never));
	SHOW(pthread_cond_timedwait(&cond, &mutex, &soon));
	MUST(now_ns(CLOCK_REALTIME) >= soon.tv_sec * 1000000000LL + soon.tv_nsec);
	SHOW(pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &soon_too));
	MUST(now_ns(CLOCK_MONOTONIC) >= soon_too.tv_sec * 1000000000LL + soon_too.tv_nsec);
	SHOW(pthread_cond_clockwait(&cond, &mutex, CLOCK_PROCESS_CPUTIME_ID, &soon));
	SHOW(pthread_mutex_trylock(&mutex));
	MUST(!pthread_mutex_unlock(&mutex));
	/* Not locked by the thread: it must not wait. */
	SHOW(pthread_cond_timedwait(&cond, &checking, &soon));
	memset(&own, 0xff, sizeof(own));
	MUST(!pthread_condattr_init(&attr));
	SHOW(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
	SHOW(pthread_cond_init(&own, &attr));
	soon = in_ms(CLOCK_MONOTONIC, 20);
	MUST(!pthread_mutex_lock(&checking));
	SHOW(pthread_cond_timedwait(&own, &checking, &soon));
	MUST(now_ns(CLOCK_MONOTONIC) >= soon.tv_sec * 1000000000LL + soon.tv_nsec);
	SHOW(pthread_mutex_unlock(&checking));
	SHOW(pthread_cond_destroy(&own));
	SHOW(pthread_cond_init(&own, NULL));
	SHOW(pthread_cond_destroy(&own));
}

static void *take(void *timed)
{
	struct timespec soon;
	int result;

	MUST(!pthread_mutex_lock(&mutex));
	while (!over) {
		while (!tokens && !over) {
			soon = in_ms(CLOCK_REALTIME, 1);
			result = timed ? pthread_cond_timedwait(&cond, &mutex, &soon) :
					 pthread_cond_wait(&cond, &mutex);
			MUST(!result || (timed && result == ETIMEDOUT));
		}
		if (tokens) {
			tokens--;
			taken++;
		}
	}
	MUST(!pthread_mutex_unlock(&mutex));
	return NULL;
}

/* One signal a token: if one were lost, a token would stay. Some take them with time limits that
 * come meanwhile. */
static void no_signal_is_lost(const char *name, int timed)
{
	pthread_t thread[WAITERS];
	long left = 1;

	begin(name);
	over = 0;
	tokens = taken = 0;
	for (int i = 0; i < WAITERS; i++)
		thread[i] = start(take, i < timed ? "timed" : NULL);
	for (int i = 0; i < TOKENS; i++) {
		MUST(!pthread_mutex_lock(&mutex));
		tokens++;
		if (i % 2)
			MUST(!pthread_cond_signal(&cond));
		MUST(!pthread_mutex_unlock(&mutex));
		if (i % 2 == 0)
			MUST(!pthread_cond_signal(&cond));
		if (i % 50 == 0)
			usleep(1200);
	}
	for (int tries = 0; tries < 5000 && left; tries++) {
		sleep_ms(1);
		MUST(!pthread_mutex_lock(&mutex));
		left = tokens;
		MUST(!pthread_mutex_unlock(&mutex));
	}
	printf("%ld left\n", left);
	MUST(!pthread_mutex_lock(&mutex));
	over = 1;
	MUST(!pthread_cond_broadcast(&cond));
	MUST(!pthread_mutex_unlock(&mutex));
	for (int i = 0; i < WAITERS; i++)
		finish(thread[i]);
	printf("%ld taken\n", taken);
}

struct gate {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	int is_open;
};

static void *pass(void *arg)
{
	struct gate *gate = arg;
	struct timespec late = in_ms(CLOCK_REALTIME, 10000);

	MUST(!pthread_mutex_lock(&gate->mutex));
	__atomic_add_fetch(&waiting, 1, __ATOMIC_RELAXED);
	while (!gate->is_open)
		MUST(!pthread_cond_timedwait(&gate->cond, &gate->mutex, &late));
	MUST(!pthread_mutex_unlock(&gate->mutex));
	return NULL;
}

/* Everybody is woken, and whoever is touches the variable no more: its memory goes at once. */
static void broadcast_and_destroy(void)
{
	pthread_t thread[WAITERS];

	begin("broadcast and destroy");
	for (int round = 0; round < 30; round++) {
		struct gate *gate = mmap(NULL, sizeof(*gate), PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		MUST(gate != MAP_FAILED);
		waiting = 0;
		for (int i = 0; i < WAITERS; i++)
			thread[i] = start(pass, gate);
		while (__atomic_load_n(&waiting, __ATOMIC_RELAXED) < WAITERS)
			usleep(50);
		MUST(!pthread_mutex_lock(&gate->mutex));
		gate->is_open = 1;
		MUST(!pthread_cond_broadcast(&gate->cond));
		MUST(!pthread_cond_destroy(&gate->cond));
		memset(&gate->cond, 0xff, sizeof(gate->cond));
		MUST(!pthread_mutex_unlock(&gate->mutex));
		for (int i = 0; i < WAITERS; i++)
			finish(thread[i]);
		MUST(!munmap(gate, sizeof(*gate)));
	}
}

static void *wait_first(void *number)
{
	MUST(!pthread_mutex_lock(&mutex));
	waiting++;
	MUST(!pthread_cond_wait(&cond, &mutex));
	/* In what order they wake, each in a digit. */
	woken = woken * 10 + (long)number;
	MUST(!pthread_mutex_unlock(&mutex));
	return NULL;
}

static void first_waits_first_wakes(void)
{
	pthread_t thread[3];
	long seen = 0;

	begin("order");
	waiting = woken = 0;
	for (long i = 0; i < 3; i++) {
		thread[i] = start(wait_first, (void *)(i + 1));
		for (seen = 0; seen <= i; usleep(100)) {
			pthread_mutex_lock(&mutex);
			seen = waiting;
			pthread_mutex_unlock(&mutex);
		}
	}
	for (int i = 0; i < 3; i++) {
		MUST(!pthread_cond_signal(&cond));
		finish(thread[i]);
	}
	printf("%ld\n", woken);
}

static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static int cleaned;

static void clean(void *arg)
{
	(void)arg;
	/* It has it again. */
	MUST(pthread_mutex_lock(&checking) == EDEADLK);
	cleaned++;
	MUST(!pthread_mutex_unlock(&checking));
}

static void *wait_for_end(void *timed)
{
	struct timespec late = in_ms(CLOCK_REALTIME, 20000);
	int type;

	MUST(!pthread_mutex_lock(&checking));
	pthread_cleanup_push(clean, NULL);
	__atomic_add_fetch(&waiting, 1, __ATOMIC_RELAXED);
	for (;;) {
		if (timed)
			MUST(!pthread_cond_timedwait(&cond, &checking, &late));
		else
			MUST(!pthread_cond_wait(&cond, &checking));
		MUST(!pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type));
		MUST(type == PTHREAD_CANCEL_DEFERRED);
		if (tokens) {
			tokens--;
			break;
		}
	}
	pthread_cleanup_pop(0);
	MUST(!pthread_mutex_unlock(&checking));
	return "signalled";
}

/* Of two that wait one is cancelled, and one signal is sent: the one that was not cancelled gets
 * it. */
static void cancellation(void)
{
	long cancelled = 0, signalled = 0;
	pthread_t thread[2];
	void *result[2];

	begin("cancellation");
	cleaned = 0;
	for (int round = 0; round < CANCELS; round++) {
		waiting = tokens = 0;
		thread[0] = start(wait_for_end, NULL);
		thread[1] = start(wait_for_end, "timed");
		while (__atomic_load_n(&waiting, __ATOMIC_RELAXED) < 2)
			usleep(20);
		MUST(!pthread_mutex_lock(&checking));
		tokens = 1;
		MUST(!pthread_mutex_unlock(&checking));
		if (round % 2)
			MUST(!pthread_cond_signal(&cond));
		MUST(!pthread_cancel(thread[round / 2 % 2]));
		if (round % 2 == 0)
			MUST(!pthread_cond_signal(&cond));
		result[0] = finish(thread[round / 2 % 2]);
		/* If the first one got the signal before it was cancelled, the other one still
		 * waits. */
		if (result[0] != PTHREAD_CANCELED)
			MUST(!pthread_cancel(thread[!(round / 2 % 2)]));
		result[1] = finish(thread[!(round / 2 % 2)]);
		for (int i = 0; i < 2; i++) {
			cancelled += result[i] == PTHREAD_CANCELED;
			signalled += result[i] != PTHREAD_CANCELED;
		}
	}
	printf("%ld cancelled, %d cleaned, %ld signalled\n", cancelled, cleaned, signalled);
	SHOW(pthread_mutex_trylock(&checking));
	SHOW(pthread_mutex_unlock(&checking));
	SHOW(pthread_cond_destroy(&cond));
}

int main(void)
{
	errno = EXDEV;
	results();
	MUST(errno == EXDEV);
	no_signal_is_lost("signals", 0);
	no_signal_is_lost("signals and time limits", WAITERS);
	no_signal_is_lost("some with time limits", WAITERS / 2);
	broadcast_and_destroy();
	first_waits_first_wakes();
	cancellation();
	return 0;
}
