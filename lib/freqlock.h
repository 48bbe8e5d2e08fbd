/* SPDX-License-Identifier: MIT */
/*
 * libfreqlock: locks that know which CPUs are fast, waiting that knows how long it takes, and
 * what a thread reports of its locks to scx_freqlock. It works under any scheduler.
 *
 * README.md beside this has an example. Functions return 0, or one of the error numbers that
 * stand with them, as pthread_mutex_lock() does; errno stays as it is. Nothing here may be
 * called across processes: locks in shared memory are for the threads of one process alone.
 */
#ifndef FREQLOCK_H
#define FREQLOCK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of what follows. A program may compare it with freqlock_version(). */
#define FREQLOCK_VERSION 1u

uint32_t freqlock_version(void);

/* ---- locks ---- */

/*
 * A lock, no larger than a pthread_mutex_t. All zero it is free: FREQLOCK_INIT, static memory
 * and calloc() will do. It must stay where it is while it is held or waited for.
 */
typedef struct freqlock {
	uint64_t words[5];
} freqlock_t;

#define FREQLOCK_INIT { { 0 } }

/* The longest window, and that of a thread outside of any epoch. */
#define FREQLOCK_WINDOW_MOST_NS 100000000u

/* Makes it free, whatever it was. */
int freqlock_init(freqlock_t *lock);

/* EBUSY: somebody holds it or waits for it, and it stays as it is. Else its memory may go. */
int freqlock_destroy(freqlock_t *lock);

/*
 * Takes it. A thread on a big CPU queues up at once; one on a little CPU lets others take it
 * first, for the window of its epoch at most. A thread waits by spinning for some microseconds,
 * then sleeps. EDEADLK: it has it already.
 *
 * A thread that exits with a lock held leaves it held. A handler of a signal may take no lock that
 * the thread which it interrupts may hold. After fork() the child holds what the thread that
 * forked held; locks that other threads held must be made anew by freqlock_init().
 */
int freqlock_lock(freqlock_t *lock);

/* The same in its turn, whatever CPU it is on. */
int freqlock_lock_immediately(freqlock_t *lock);

/* The same after at most window_ns, in which others may take it first. */
int freqlock_lock_reorder(freqlock_t *lock, uint64_t window_ns);

/* EBUSY: that cannot be done without waiting. */
int freqlock_trylock(freqlock_t *lock);

/* EPERM: the thread does not hold it, and nothing changes. */
int freqlock_unlock(freqlock_t *lock);

/* 1 if the thread is on a big CPU, also where all are alike; else 0. */
int freqlock_is_big(void);

/* ---- epochs ---- */

/*
 * The thread begins work whose latency is to have a bound. `id` is the program's own number for
 * such work, one for each kind of it; within another epoch, the inner one counts. A thread keeps
 * 32 bytes for each number. EBUSY: it is in one of that number already; EINVAL: the number
 * is UINT32_MAX; ENOMEM, also in a thread that is about to exit; EAGAIN: within a signal handler
 * that interrupted a start or an end. With each of these nothing changes.
 */
int freqlock_epoch_start(uint32_t id);

/*
 * It ends that work, which should have taken slo_ns at most. The window for its locks follows: half
 * of it if it took longer, else a little more. EINVAL: there was no start; ENOTEMPTY: epochs within
 * it had not ended, and are dropped without being measured; EAGAIN as above.
 */
int freqlock_epoch_end(uint32_t id, uint64_t slo_ns);

/* For how many ns others may take a lock before the thread, now. */
uint64_t freqlock_epoch_window(void);

/*
 * Which share of the process's epochs is to keep its bound, in thousandths: 990 unless it is set.
 * EINVAL: not from 500 to 999.
 */
int freqlock_set_percentile(uint32_t per_mille);

/* ---- adaptive waiting ---- */

/* Without a timeout. */
#define FREQLOCK_FOREVER UINT64_MAX

/* What is learned of the waits at one place of a program. All zero: nothing yet. */
typedef struct freqlock_wait {
	uint32_t word;
} freqlock_wait_t;

#define FREQLOCK_WAIT_INIT { 0 }

/*
 * Waits until *addr == value, with what an acquire load sees: spins for about as long as waits
 * at `site` take, if that is short; then yields; then sleeps, a millisecond at a time at most.
 * So a thread that stores the value need not know of it; if it calls freqlock_wake() after
 * that, the sleep ends at once. `site` may be NULL, which is one for all such calls.
 * ETIMEDOUT: it was not within timeout_ns.
 */
int freqlock_wait_until(freqlock_wait_t *site, const uint32_t *addr, uint32_t value,
			uint64_t timeout_ns);

/* The same until waiting(arg) returns 0; nobody can end its sleeps. */
int freqlock_wait_while(freqlock_wait_t *site, int (*waiting)(void *arg), void *arg,
			uint64_t timeout_ns);

/* Ends the sleeps of all who wait for *addr, which has been changed. */
void freqlock_wake(const uint32_t *addr);

/* ---- hints ---- */

/*
 * For locks of the program's own: what the thread has just taken, has released, begins to spin
 * for and no longer spins for. scx_freqlock, where it runs, has a holder run before those who
 * wait for it. A lock is any address that its users agree on; owner is the holder's TID, 0
 * if not known. Locks of this library report themselves.
 */
void freqlock_hint_hold(const void *lock);
void freqlock_hint_release(void);
void freqlock_hint_wait(const void *lock, int32_t owner);
void freqlock_hint_wait_over(void);

#ifdef __cplusplus
}
#endif

#endif /* FREQLOCK_H */
