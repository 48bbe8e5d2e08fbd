/* SPDX-License-Identifier: MIT */
/*
 * friendlypool: a work-stealing thread pool that leaves its neighbours their CPUs. As many of its
 * workers are active as there are CPUs to count on; the others park. friendlypool/README.md says
 * more.
 *
 * Functions return 0, or one of the error numbers that stand with them; errno stays as it is. In
 * the child of a fork a pool has no workers, and all but friendlypool_free() say ECHILD. Tasks
 * are called in workers; they must return, and not unwind or jump out.
 */
#ifndef FRIENDLYPOOL_H
#define FRIENDLYPOOL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of what follows. A program may compare it with friendlypool_version(). */
#define FRIENDLYPOOL_VERSION 1u

uint32_t friendlypool_version(void);

typedef struct friendlypool friendlypool_t;

/*
 * Makes a pool of so many workers, 1 to 4096; 0: as many as the thread's affinity has CPUs.
 * `overcommit`: active workers for each CPU to count on, above 0; usually 1. EINVAL; EAGAIN: the
 * system has no more threads.
 */
int friendlypool_new(friendlypool_t **pool, size_t workers, double overcommit);

/*
 * Waits until all tasks ended, and frees the pool; NULL is none. A task that frees its own pool
 * does not wait.
 */
void friendlypool_free(friendlypool_t *pool);

/* Queues task(arg). EINVAL: no pool or no task. */
int friendlypool_submit(friendlypool_t *pool, void (*task)(void *arg), void *arg);

/*
 * Waits until all tasks ended that were submitted before, and those submitted meanwhile. EDEADLK:
 * it is called by a worker of this pool, whose own task could not end.
 */
int friendlypool_wait(friendlypool_t *pool);

/*
 * Calls body(index, arg) for each index from `begin` to `end` - 1, in parallel, and waits for all
 * of them. A task may call it, also within another one. `grain`: at most so many indices are one
 * piece of work; 0: chosen by the number of workers.
 */
int friendlypool_parallel_for(friendlypool_t *pool, size_t begin, size_t end, size_t grain,
			      void (*body)(size_t index, void *arg), void *arg);

/* Workers that take work now; 0 without a pool. */
size_t friendlypool_active_workers(const friendlypool_t *pool);

/*
 * Threads of this process that would run at the same time now, by affinity, quotas of cgroups
 * and neighbours; 1 at least. The first call takes 50 ms where scx_freqlock publishes no page.
 */
size_t friendlypool_available_parallelism(void);

/*
 * Calls omp_set_num_threads() with that, for the parallel regions that the calling thread begins
 * from now on. ENOSYS: the program has no OpenMP.
 */
int friendlypool_size_openmp(void);

#ifdef __cplusplus
}
#endif

#endif /* FRIENDLYPOOL_H */
