/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who holds a lock, as far as its words in user memory show: the mutexes of
 * glibc, whose layout is part of its ABI (struct __pthread_mutex_s). The words
 * may be anything, since everything in user space sleeps in futexes; what is
 * not surely a mutex has no owner here. And the name that a lock has in the graph.
 */
#ifndef __FREQLOCK_POLICY_LOCK_H
#define __FREQLOCK_POLICY_LOCK_H

#include "../intf.h"

/* The first 20 bytes of a mutex; its futex is the first of them. */
struct mutex_words {
	u32 lock;
	u32 count; /* how often a recursive one is locked */
	s32 owner; /* a TID, in the eyes of its process */
	u32 nusers;
	u32 kind;
};

enum {
	/* Of a plain mutex: locked, with waiters. */
	MUTEX_CONTENDED = 2,
	/* linux/futex.h, FUTEX_TID_MASK: the owner in words of robust and PI mutexes. */
	FUTEX_TID = 0x3fffffff,
	/* pthread mutex kinds: normal, recursive, error-checking, adaptive ... */
	MUTEX_RECURSIVE = 1,
	MUTEX_TYPE_MASK = 3,
	/* ... and flags beside them. */
	MUTEX_ROBUST = 16,
	MUTEX_SHARED = 128, /* between processes */
	MUTEX_ELISION = 256 | 512,
};

/* linux/futex.h, FUTEX_WAITERS; it does not fit into an int. */
#define FUTEX_WAITING 0x80000000U

/* True if a wait for the futex value @val may be one for a mutex. */
static inline bool mutex_may_wait(u32 val)
{
	return val == MUTEX_CONTENDED || (val & FUTEX_WAITING);
}

static inline bool mutex_is_shared(const struct mutex_words *m)
{
	return m->kind & MUTEX_SHARED;
}

/*
 * TID of the owner of the mutex with a wait for a value other than
 * @val, 0 if unknown: it is no mutex, the owner is about to be written,
 * or the word has changed already and the wait will not be.
 */
static inline s32 mutex_owner(const struct mutex_words *m, u32 val)
{
	u32 type = m->kind & MUTEX_TYPE_MASK;
	u32 flags = m->kind & ~(u32)(MUTEX_TYPE_MASK | MUTEX_SHARED | MUTEX_ELISION);

	if (m->lock != val)
		return 0;
	if (val & FUTEX_WAITING)
		return flags == MUTEX_ROBUST ? (s32)(val & FUTEX_TID) : 0;
	if (val != MUTEX_CONTENDED || flags || m->owner <= 0 || !m->nusers)
		return 0;
	if ((type == MUTEX_RECURSIVE) != (m->count > 0))
		return 0;
	return m->owner;
}

/* The finaliser of splitmix64 (Steele et al., OOPSLA 2014). */
static inline u64 fl_mix(u64 h, u64 v)
{
	h ^= v;
	h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
	h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
	return h ^ (h >> 31);
}

/* What kind of address is hashed. */
enum lock_space { LOCK_USER, LOCK_KERNEL, LOCK_HINT, LOCK_ANSWER };

/* Set in the names of the kernel's locks; the bits below it are free for counting. */
#define LOCK_OF_KERNEL (FL_SLOT_REFS + 1ULL)
/* Set in the names of what is no lock: the answers of a task (answer.h). */
#define LOCK_OF_ANSWER (LOCK_OF_KERNEL << 1)

/*
 * A lock's name in the graph, never 0. @key is drawn when the scheduler is loaded:
 * choosing addresses and processes does not reveal which of them would have the
 * same name.
 */
static inline u64 lock_hash(u64 key, enum lock_space space, u64 addr, u32 tgid)
{
	u64 hash = fl_mix(fl_mix(key, addr), (u64)tgid << 2 | space);

	hash &= ~(LOCK_OF_ANSWER | LOCK_OF_KERNEL | FL_SLOT_REFS);
	if (space == LOCK_KERNEL)
		return hash | LOCK_OF_KERNEL;
	if (space == LOCK_ANSWER)
		return hash | LOCK_OF_ANSWER;
	return hash ? hash : LOCK_OF_ANSWER << 1;
}

static inline bool lock_is_kernels(u64 hash)
{
	return hash & LOCK_OF_KERNEL;
}

static inline bool lock_is_answer(u64 hash)
{
	return hash & LOCK_OF_ANSWER;
}

#endif /* __FREQLOCK_POLICY_LOCK_H */
