/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hints: what a thread says of its locks where the scheduler cannot see it, since
 * they have no owner word or no futex (ticket and queue locks, spinning).
 *
 * A thread keeps one struct fl_hint, for as long as it lives or until its exec,
 * and shows it once, by
 *
 *	syscall(SYS_futex, &hint, FUTEX_WAIT_PRIVATE, FL_HINT_SHOW, NULL);
 *
 * which comes back at once with EAGAIN, under any scheduler. From then on it
 * writes there, with plain stores and no further system call, what it holds and
 * what it waits for. The scheduler reads it at ticks and when the thread loses its
 * CPU. What it says is believed as a mutex's words are: it can favour threads
 * of its own process alone, within the bounds of lock holders.
 */
#ifndef __FREQLOCK_HINT_H
#define __FREQLOCK_HINT_H

enum fl_hint_consts {
	FL_HINT_VERSION = 1,
	FL_HINT_SHOW = 0x66726c71, /* no value that a mutex has while there are waiters */
};

struct fl_hint {
	u32 version;   /* FL_HINT_VERSION; anything else takes the hint back */
	s32 owner;     /* TID of the holder of the lock waited for, 0 not known */
	u64 holds;     /* the lock that it took last, by its address; 0 none */
	u64 waits_for; /* the lock for which it spins, 0 none */
};

#endif /* __FREQLOCK_HINT_H */
