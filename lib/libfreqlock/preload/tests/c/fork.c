/* SPDX-License-Identifier: MIT */
/* Forks while other threads hold locks and wait for them, with handlers and without. */
#include "check.h"
#include <signal.h>
#include <sys/wait.h>

enum { THREADS = 4, FORKS = 30 };

static pthread_mutex_t allocator = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int over;
static long sum;

static void lock_all(void)
{
	MUST(!pthread_mutex_lock(&allocator));
}

static void unlock_all(void)
{
	MUST(!pthread_mutex_unlock(&allocator));
}

/* Before the preloaded library has begun, as an allocator does. */
static void register_early(void)
{
	MUST(!pthread_atfork(lock_all, unlock_all, unlock_all));
}

__attribute__((section(".preinit_array"), used)) static void (*before_all)(void) = register_early;

static void *use(void *arg)
{
	struct timespec soon;

	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		MUST(!pthread_mutex_lock(&allocator));
		sum++;
		MUST(!pthread_mutex_unlock(&allocator));
		MUST(!pthread_mutex_lock(&busy));
		soon = in_ms(CLOCK_REALTIME, 1);
		if (arg)
			pthread_cond_timedwait(&cond, &busy, &soon);
		MUST(!pthread_mutex_unlock(&busy));
		if (arg)
			pthread_cond_signal(&cond);
	}
	return NULL;
}

static void *count(void *arg)
{
	for (int i = 0; i < 100; i++) {
		MUST(!pthread_mutex_lock(&allocator));
		sum++;
		MUST(!pthread_rwlock_rdlock(&table));
		MUST(!pthread_rwlock_unlock(&table));
		MUST(!pthread_mutex_unlock(&allocator));
	}
	return arg;
}

/* With threads of its own, and a child of its own. */
static void in_child(int depth)
{
	pthread_t thread[2];

	alarm(100);
	sum = 0;
	for (int i = 0; i < 2; i++)
		thread[i] = start(count, NULL);
	for (int i = 0; i < 2; i++)
		finish(thread[i]);
	MUST(sum == 200);
	if (depth) {
		pid_t pid = fork();
		int status;

		if (!pid) {
			in_child(depth - 1);
			_exit(0);
		}
		MUST(waitpid(pid, &status, 0) == pid && !status);
	}
}

static void handlers(void)
{
	pthread_t thread[THREADS];
	int status, failed = 0;

	begin("handlers");
	for (long i = 0; i < THREADS; i++)
		thread[i] = start(use, i ? "waits" : NULL);
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();

		if (!pid) {
			in_child(i % 3);
			_exit(0);
		}
		MUST(waitpid(pid, &status, 0) == pid);
		failed += status != 0;
		usleep(300);
	}
	over = 1;
	for (int i = 0; i < THREADS; i++)
		finish(thread[i]);
	printf("%d failed\n", failed);
}

static void *pass(void *mutex)
{
	MUST(!pthread_mutex_lock(mutex));
	MUST(!pthread_mutex_unlock(mutex));
	return NULL;
}

/* Others wait for what the thread holds that forks; nobody does in the child. */
static void held(void)
{
	pthread_t thread[THREADS];
	int status;
	pid_t pid;

	begin("held");
	MUST(!pthread_mutex_lock(&busy));
	for (int i = 0; i < THREADS; i++)
		thread[i] = start(pass, &busy);
	sleep_ms(20);
	pid = fork();
	if (!pid) {
		alarm(100);
		MUST(pthread_mutex_trylock(&busy) == EBUSY);
		MUST(!pthread_mutex_unlock(&busy));
		finish(start(pass, &busy));
		MUST(!pthread_mutex_trylock(&busy));
		MUST(!pthread_mutex_unlock(&busy));
		MUST(!pthread_mutex_destroy(&busy));
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid);
	printf("status %d\n", status);
	MUST(!pthread_mutex_unlock(&busy));
	for (int i = 0; i < THREADS; i++)
		finish(thread[i]);
}

int main(void)
{
	handlers();
	held();
	return 0;
}
