/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What scx_freqlock sees of the library: the holder of a lock that a thread sleeps for, by
 * the words of mutexes that bpf/policy/lock.h reads, and hints as bpf/hint.h has them.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include "freqlock.h"
#include "policy/lock.h"
#include "hint.h"

_Static_assert(sizeof(freqlock_t) <= sizeof(pthread_mutex_t), "it takes a mutex's place");

static freqlock_t lock = FREQLOCK_INIT;

static void *wait_for_it(void *arg)
{
	assert(!freqlock_lock_immediately(&lock));
	assert(!freqlock_unlock(&lock));
	return arg;
}

static struct mutex_words words(void)
{
	struct mutex_words m;

	memcpy(&m, (void *)&lock, sizeof(m));
	return m;
}

int main(void)
{
	pthread_t waiter;
	struct mutex_words m;

	assert(!freqlock_lock(&lock));
	assert(!pthread_create(&waiter, NULL, wait_for_it, NULL));
	/* Until it sleeps. */
	do {
		usleep(1000);
		m = words();
	} while (m.lock != MUTEX_CONTENDED);
	assert(mutex_owner(&m, MUTEX_CONTENDED) == gettid());
	assert(!freqlock_unlock(&lock));
	assert(!pthread_join(waiter, NULL));
	m = words();
	assert(!m.lock && !m.owner);
	return 0;
}
