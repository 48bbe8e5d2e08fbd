/* SPDX-License-Identifier: MIT */
/* Each function of friendlypool.h returns what it says there. */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#include "friendlypool.h"

static friendlypool_t *pool;
static atomic_long count;
static atomic_int seen[1000];

static void add(void *arg)
{
	count += (long)arg;
}

static void see(size_t index, void *arg)
{
	((atomic_int *)arg)[index]++;
}

static void within(size_t index, void *arg)
{
	(void)index;
	assert(!friendlypool_parallel_for(pool, 0, 1000, 7, see, arg));
}

static void wait_in_task(void *arg)
{
	assert(friendlypool_wait(pool) == EDEADLK);
	assert(!friendlypool_submit(pool, add, arg));
}

static void free_in_task(void *arg)
{
	friendlypool_free(arg);
	count++;
}

static void child(void)
{
	friendlypool_t *anew;

	assert(friendlypool_submit(pool, add, NULL) == ECHILD);
	assert(friendlypool_wait(pool) == ECHILD);
	assert(friendlypool_parallel_for(pool, 0, 1, 0, see, seen) == ECHILD);
	friendlypool_free(pool);
	assert(!friendlypool_new(&anew, 2, 1));
	friendlypool_free(anew);
	_exit(0);
}

int main(void)
{
	friendlypool_t *other;
	int status;

	assert(friendlypool_version() == FRIENDLYPOOL_VERSION);
	assert(friendlypool_new(NULL, 0, 1) == EINVAL);
	assert(friendlypool_new(&pool, 5000, 1) == EINVAL);
	assert(friendlypool_new(&pool, 0, 0) == EINVAL);
	assert(!friendlypool_new(&pool, 3, 1));
	assert(friendlypool_submit(NULL, add, NULL) == EINVAL);
	assert(friendlypool_submit(pool, NULL, NULL) == EINVAL);
	assert(friendlypool_parallel_for(pool, 0, 1, 0, NULL, NULL) == EINVAL);
	assert(friendlypool_wait(NULL) == EINVAL);
	assert(friendlypool_active_workers(NULL) == 0);

	assert(!friendlypool_wait(pool));
	for (int i = 0; i < 1000; i++)
		assert(!friendlypool_submit(pool, add, (void *)2l));
	assert(!friendlypool_submit(pool, wait_in_task, (void *)5l));
	assert(!friendlypool_wait(pool));
	assert(count == 2005);

	assert(!friendlypool_parallel_for(pool, 0, 10, 0, within, seen));
	for (int i = 0; i < 1000; i++)
		assert(seen[i] == 10);
	assert(!friendlypool_parallel_for(pool, 5, 5, 0, see, seen));
	assert(!friendlypool_parallel_for(pool, 6, 5, 0, see, seen));
	assert(!friendlypool_parallel_for(pool, 999, 1000, 0, see, seen));
	assert(seen[999] == 11 && seen[998] == 10);

	assert(friendlypool_active_workers(pool) >= 1 && friendlypool_active_workers(pool) <= 3);
	assert(friendlypool_available_parallelism() >= 1);
	assert((long)friendlypool_available_parallelism() <= sysconf(_SC_NPROCESSORS_ONLN));
#ifdef _OPENMP
	assert(!friendlypool_size_openmp());
	assert(omp_get_max_threads() <= omp_get_num_procs());
#else
	assert(friendlypool_size_openmp() == ENOSYS);
#endif

	if (!fork())
		child();
	assert(wait(&status) > 0 && !status);

	assert(!friendlypool_new(&other, 2, 1));
	count = 0;
	assert(!friendlypool_submit(other, free_in_task, other));
	for (int i = 0; i < 100; i++)
		assert(!friendlypool_submit(pool, add, (void *)1l));
	friendlypool_free(pool);
	friendlypool_free(NULL);
	while (count < 101)
		usleep(100);
	puts("ok");
}
