/* SPDX-License-Identifier: MIT */
/*
 * What stays libc's: between processes, robust, with priorities. And mixtures: a variable that
 * processes may share with a mutex that they do not, and the other way round.
 */
#include "check.h"
#include <sys/mman.h>
#include <sys/wait.h>

enum { ROUNDS = 300, PROCESSES = 3 };

struct shared {
	pthread_mutex_t mutex;
	pthread_rwlock_t lock;
	pthread_cond_t cond;
	pthread_spinlock_t spin;
	long by_mutex, by_lock, by_spin, turn;
};

static void work(struct shared *shared, long number)
{
	for (int i = 0; i < ROUNDS; i++) {
		MUST(!pthread_mutex_lock(&shared->mutex));
		while (shared->turn % PROCESSES != number)
			MUST(!pthread_cond_wait(&shared->cond, &shared->mutex));
		shared->turn++;
		shared->by_mutex++;
		MUST(!pthread_cond_broadcast(&shared->cond));
		MUST(!pthread_mutex_unlock(&shared->mutex));
		MUST(!pthread_rwlock_wrlock(&shared->lock));
		shared->by_lock++;
		MUST(!pthread_rwlock_unlock(&shared->lock));
		MUST(!pthread_rwlock_rdlock(&shared->lock));
		MUST(!pthread_rwlock_unlock(&shared->lock));
		MUST(!pthread_spin_lock(&shared->spin));
		shared->by_spin++;
		MUST(!pthread_spin_unlock(&shared->spin));
	}
}

static void between_processes(void)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t mutex;
	pthread_rwlockattr_t lock;
	pthread_condattr_t cond;
	int status;

	begin("between processes");
	MUST(shared != MAP_FAILED);
	MUST(!pthread_mutexattr_init(&mutex) && !pthread_rwlockattr_init(&lock) &&
	     !pthread_condattr_init(&cond));
	MUST(!pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED));
	MUST(!pthread_rwlockattr_setpshared(&lock, PTHREAD_PROCESS_SHARED));
	MUST(!pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED));
	MUST(!pthread_mutex_init(&shared->mutex, &mutex) &&
	     !pthread_rwlock_init(&shared->lock, &lock) &&
	     !pthread_cond_init(&shared->cond, &cond) &&
	     !pthread_spin_init(&shared->spin, PTHREAD_PROCESS_SHARED));
	for (long i = 0; i < PROCESSES; i++) {
		if (!fork()) {
			alarm(100);
			work(shared, i);
			_exit(0);
		}
	}
	for (int i = 0; i < PROCESSES; i++) {
		MUST(wait(&status) > 0);
		printf("status %d\n", status);
	}
	printf("%ld %ld %ld\n", shared->by_mutex, shared->by_lock, shared->by_spin);
	SHOW(pthread_mutex_destroy(&shared->mutex));
	SHOW(pthread_rwlock_destroy(&shared->lock));
	SHOW(pthread_cond_destroy(&shared->cond));
	SHOW(pthread_spin_destroy(&shared->spin));
}

static void *exit_with(void *mutex)
{
	MUST(!pthread_mutex_lock(mutex));
	return NULL;
}

static void robust(void)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t mutex;

	begin("robust");
	MUST(!pthread_mutexattr_init(&attr));
	MUST(!pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
	SHOW(pthread_mutex_init(&mutex, &attr));
	finish(start(exit_with, &mutex));
	SHOW(pthread_mutex_lock(&mutex));
	SHOW(pthread_mutex_consistent(&mutex));
	SHOW(pthread_mutex_unlock(&mutex));
	finish(start(exit_with, &mutex));
	SHOW(pthread_mutex_trylock(&mutex));
	SHOW(pthread_mutex_unlock(&mutex));
	SHOW(pthread_mutex_lock(&mutex));
	SHOW(pthread_mutex_destroy(&mutex));
}

struct turns {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	long turn;
};

static void *take_turns(void *arg)
{
	struct turns *turns = arg;

	for (int i = 0; i < 20; i++) {
		MUST(!pthread_mutex_lock(&turns->mutex));
		while (turns->turn % 2 == 0)
			MUST(!pthread_cond_wait(&turns->cond, &turns->mutex));
		turns->turn++;
		MUST(!pthread_cond_signal(&turns->cond));
		MUST(!pthread_mutex_unlock(&turns->mutex));
	}
	return NULL;
}

static void unlock(void *mutex)
{
	MUST(!pthread_mutex_unlock(mutex));
}

static void *wait_for_ever(void *arg)
{
	struct turns *turns = arg;

	MUST(!pthread_mutex_lock(&turns->mutex));
	pthread_cleanup_push(unlock, &turns->mutex);
	for (;;)
		MUST(!pthread_cond_wait(&turns->cond, &turns->mutex));
	pthread_cleanup_pop(0);
	return NULL;
}

static void mixed(const char *name, int shared, int inherits)
{
	struct timespec soon = in_ms(CLOCK_REALTIME, 30), past = { 0, 0 };
	struct turns turns = { .turn = 0 };
	pthread_mutexattr_t mutex;
	pthread_condattr_t cond;
	pthread_t thread;

	begin(name);
	MUST(!pthread_mutexattr_init(&mutex) && !pthread_condattr_init(&cond));
	MUST(!shared || !pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED));
	MUST(!inherits || !pthread_mutexattr_setprotocol(&mutex, PTHREAD_PRIO_INHERIT));
	MUST(!pthread_mutex_init(&turns.mutex, &mutex) && !pthread_cond_init(&turns.cond, &cond));
	MUST(!pthread_mutex_lock(&turns.mutex));
	SHOW(pthread_cond_timedwait(&turns.cond, &turns.mutex, &past));
	while (now_ns(CLOCK_REALTIME) < soon.tv_sec * 1000000000LL + soon.tv_nsec)
		pthread_cond_timedwait(&turns.cond, &turns.mutex, &soon);
	thread = start(take_turns, &turns);
	for (int i = 0; i < 20; i++) {
		while (turns.turn % 2)
			MUST(!pthread_cond_wait(&turns.cond, &turns.mutex));
		turns.turn++;
		MUST(!pthread_cond_signal(&turns.cond));
	}
	MUST(!pthread_mutex_unlock(&turns.mutex));
	finish(thread);
	printf("%ld\n", turns.turn);
	thread = start(wait_for_ever, &turns);
	sleep_ms(10);
	MUST(!pthread_cancel(thread));
	MUST(finish(thread) == PTHREAD_CANCELED);
	SHOW(pthread_mutex_lock(&turns.mutex));
	SHOW(pthread_mutex_unlock(&turns.mutex));
	SHOW(pthread_cond_destroy(&turns.cond));
	SHOW(pthread_mutex_destroy(&turns.mutex));
}

int main(void)
{
	between_processes();
	robust();
	mixed("shared variable, own mutex", 1, 0);
	mixed("own variable, mutex with priorities", 0, 1);
	mixed("both libc's", 1, 1);
	return 0;
}
