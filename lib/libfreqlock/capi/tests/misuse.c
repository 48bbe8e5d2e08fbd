/* SPDX-License-Identifier: MIT */
/*
 * The header's promises, one by one, and what stands there for wrong use. A thread is cancelled
 * within an epoch. errno stays as it is.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "freqlock.h"

static freqlock_t lock = FREQLOCK_INIT;
static uint32_t word;

static void *not_owner(void *arg)
{
	assert(freqlock_unlock(&lock) == EPERM);
	assert(freqlock_trylock(&lock) == EBUSY);
	return arg;
}

static void *within_an_epoch(void *arg)
{
	assert(!freqlock_epoch_start(1));
	assert(!freqlock_epoch_start(2));
	for (;;)
		pause();
	return arg;
}

static void *set_word(void *arg)
{
	usleep(5000);
	__atomic_store_n(&word, 7, __ATOMIC_RELEASE);
	freqlock_wake(&word);
	return arg;
}

static int is_not_seven(void *arg)
{
	return __atomic_load_n((uint32_t *)arg, __ATOMIC_ACQUIRE) != 7;
}

static pthread_t start(void *(*what)(void *))
{
	pthread_t thread;

	assert(!pthread_create(&thread, NULL, what, NULL));
	return thread;
}

static void locks(void)
{
	freqlock_t *other = calloc(1, sizeof(*other));

	assert(freqlock_unlock(&lock) == EPERM);
	assert(!freqlock_lock(&lock));
	assert(freqlock_lock(&lock) == EDEADLK);
	assert(freqlock_lock_immediately(&lock) == EDEADLK);
	assert(freqlock_lock_reorder(&lock, FREQLOCK_WINDOW_MOST_NS) == EDEADLK);
	assert(freqlock_destroy(&lock) == EBUSY);
	assert(!pthread_join(start(not_owner), NULL));
	assert(!freqlock_trylock(other));
	assert(!freqlock_unlock(&lock));
	assert(!freqlock_unlock(other));
	assert(!freqlock_lock_reorder(other, UINT64_MAX));
	assert(!freqlock_unlock(other));
	memset(other, 0xff, sizeof(*other));
	assert(!freqlock_init(other));
	assert(!freqlock_destroy(other));
	free(other);
}

static void epochs(void)
{
	pthread_t thread;

	assert(freqlock_epoch_window() == FREQLOCK_WINDOW_MOST_NS);
	assert(freqlock_epoch_end(1, 1000) == EINVAL);
	assert(freqlock_epoch_start(UINT32_MAX) == EINVAL);
	assert(!freqlock_epoch_start(1));
	assert(freqlock_epoch_start(1) == EBUSY);
	assert(!freqlock_epoch_start(2));
	assert(freqlock_epoch_window() == 1000000);
	assert(freqlock_epoch_end(1, 0) == ENOTEMPTY);
	assert(freqlock_epoch_end(2, 0) == EINVAL);
	assert(!freqlock_epoch_start(1));
	/* It took longer than nothing. */
	assert(freqlock_epoch_window() == 500000);
	assert(!freqlock_epoch_end(1, UINT64_MAX));
	assert(freqlock_set_percentile(499) == EINVAL);
	assert(freqlock_set_percentile(1000) == EINVAL);
	assert(!freqlock_set_percentile(999));
	thread = start(within_an_epoch);
	usleep(5000);
	assert(!pthread_cancel(thread));
	assert(!pthread_join(thread, NULL));
}

static void waits(void)
{
	freqlock_wait_t site = FREQLOCK_WAIT_INIT;
	pthread_t thread;

	assert(!freqlock_wait_until(NULL, &word, 0, 0));
	assert(freqlock_wait_until(&site, &word, 7, 1000000) == ETIMEDOUT);
	assert(freqlock_wait_while(NULL, is_not_seven, &word, 1000000) == ETIMEDOUT);
	thread = start(set_word);
	assert(!freqlock_wait_until(&site, &word, 7, FREQLOCK_FOREVER));
	assert(!freqlock_wait_while(&site, is_not_seven, &word, FREQLOCK_FOREVER));
	assert(!pthread_join(thread, NULL));
}

int main(void)
{
	assert(freqlock_version() == FREQLOCK_VERSION);
	assert(freqlock_is_big() == 0 || freqlock_is_big() == 1);
	errno = EXDEV;
	locks();
	epochs();
	waits();
	freqlock_hint_hold(&word);
	freqlock_hint_release();
	freqlock_hint_wait(&word, 0);
	freqlock_hint_wait_over();
	assert(errno == EXDEV);
	return 0;
}
