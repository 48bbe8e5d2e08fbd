/* SPDX-License-Identifier: MIT */
/*
 * Waiting for a condition variable. A thread can be cancelled there, at any moment of its sleep:
 * libc then runs a handler, and leaves all frames without returning to them. Only C has words for
 * that. This file is compiled without exceptions, so that the handler is registered for all of the
 * time rather than found by the place of a call.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <time.h>

/* As Waiter in cond.rs. */
struct waiter {
	uint32_t state;
	void *next, *before;
	sem_t woken;
};

struct wait {
	void *cond;
	pthread_mutex_t *mutex;
	struct waiter waiter;
};

/* In cond.rs: appended, and the mutex unlocked; or what kept that from being done. */
int freqlock_cond_enter(struct wait *wait);
/* Out of the queue, and the mutex locked again: 0, ETIMEDOUT or why that was not possible. */
int freqlock_cond_leave(struct wait *wait, int woken);
/* The same for a thread that is cancelled, which takes no signal with it. */
void freqlock_cond_cancelled(struct wait *wait);

static void cancelled(void *wait)
{
	freqlock_cond_cancelled(wait);
}

/*
 * Until somebody signals, or until a time by CLOCK_MONOTONIC or CLOCK_REALTIME.
 *
 * The sleep is libc's, in a semaphore, for only libc can end it for a cancellation and for nothing
 * else: were asynchronous cancellation switched on around a sleep of our own, the signal that
 * pthread_cancel() sends could come once the thread has returned, and glibc 2.36 then says of the
 * thread, whatever it returned, that it was cancelled.
 */
int freqlock_cond_wait(void *cond, pthread_mutex_t *mutex, clockid_t clock,
		       const struct timespec *at)
{
	struct wait wait = { .cond = cond, .mutex = mutex };
	int result, failed, saved;

	sem_init(&wait.waiter.woken, 0, 0);
	result = freqlock_cond_enter(&wait);
	if (result)
		return result;
	saved = errno;
	pthread_cleanup_push(cancelled, &wait);
	do
		failed = at ? sem_clockwait(&wait.waiter.woken, clock, at) :
			      sem_wait(&wait.waiter.woken);
	while (failed && errno == EINTR);
	pthread_cleanup_pop(0);
	errno = saved;
	return freqlock_cond_leave(&wait, !failed);
}

/* A mutex of the library's, to be locked again. */
static void lock_again(void *mutex)
{
	pthread_mutex_lock(mutex);
}

/*
 * The variable is libc's, as it may be shared between processes, but the mutex is the library's, so
 * that libc cannot unlock it. A signal between unlocking here and sleeping there is lost; so the
 * sleep is a short one, and ends as if by a signal.
 */
int freqlock_cond_wait_mixed(int (*libc_wait)(void *, pthread_mutex_t *, int,
					      const struct timespec *),
			     void *cond, pthread_mutex_t *mutex, int clock,
			     const struct timespec *at)
{
	pthread_mutexattr_t attr;
	struct timespec soon;
	pthread_mutex_t own;
	int result, shortened;

	clock_gettime(clock, &soon);
	soon.tv_nsec += 1000000;
	if (soon.tv_nsec >= 1000000000) {
		soon.tv_nsec -= 1000000000;
		soon.tv_sec++;
	}
	shortened = !at || at->tv_sec > soon.tv_sec ||
		    (at->tv_sec == soon.tv_sec && at->tv_nsec > soon.tv_nsec);
	result = pthread_mutex_unlock(mutex);
	if (result)
		return result;
	/* One that libc keeps for itself, as the variable is. */
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&own, &attr);
	pthread_mutex_lock(&own);
	pthread_cleanup_push(lock_again, mutex);
	result = libc_wait(cond, &own, clock, shortened ? &soon : at);
	pthread_cleanup_pop(0);
	pthread_mutex_unlock(&own);
	lock_again(mutex);
	return shortened && result == ETIMEDOUT ? 0 : result;
}
